"""The check that needs a card is rehearsed on every machine without one, so that it does not rot."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.fakes.standins import supertonic
from tests.gpu.step import ROOT, Given, run

from ondam.places import places
from ondam.supervisor.environment import environment_folder

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

CHECK = ROOT / "tests" / "gpu" / "check.sh"


@pytest.fixture
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is one."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def given(tmp_path: Path, no_card: None) -> Given:
    """As the check tells its steps on a machine with a card, which is not there."""
    python = environment_folder("supertonic", places()) / "bin" / "python"
    return Given(
        work=str(tmp_path),
        carry=str(tmp_path / "none"),
        rehearsal=False,
        card=0,
        threads=1,
        pythons={"supertonic": str(python)},
        models={"supertonic": str(supertonic.build(tmp_path / "voice", 1))},
        tensorrt="somewhere",
    )


@pytest.mark.slow
def test_the_rehearsal_holds_and_says_what_it_is(tmp_path: Path, no_card: None) -> None:
    out = tmp_path / "told.json"
    steps = ["facts", "sessions", "speech", "warming", "memory"]
    done = subprocess.run(
        [
            CHECK,
            "--cpu",
            "--work",
            tmp_path / "work",
            "--out",
            out,
            "--carry",
            tmp_path / "none",
            "--only",
            *steps,
        ],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("A REHEARSAL on the processor")
    told = json.loads(out.read_text("utf-8"))
    assert told["verdict"] == "rehearsal without a card: held"
    assert {name: step["status"] for name, step in told["steps"].items()} == {
        "equipment": "held",
        "facts": "held",
        "sessions:cpu": "held",
        "sessions:cuda": "held",
        "sessions:tensorrt": "held",
        "speech:cpu": "held",
        "speech:cuda": "skipped",
        "warming": "held",
        "speech:tensorrt": "skipped",
        "memory": "skipped",
    }
    spoken = told["steps"]["speech:cpu"]["facts"]
    # Four texts, fifteen times each.
    assert spoken["first_audio_ms"]["n"] == 60
    # A syllable of two letters, a stop, nine for the tags: 44,100 × 12 × 60 ms / 1.05. It counts in 32
    # bits, so that one sample may be missing.
    assert spoken["samples"][0] in {30_239, 30_240}


def test_sessions_that_were_refused_their_card_differ(given: Given) -> None:
    found, _ = run("sessions:cuda", given, 60)
    assert found.status == "differs"
    assert all("refused: no cuda" in line for line in found.differs)
    assert len(found.differs) == 4


def test_an_engine_that_fell_to_the_processor_differs(given: Given) -> None:
    found, _ = run("speech:cuda", given, 60)
    assert found.status == "differs"
    assert "vocoder: CPUExecutionProvider instead of CUDAExecutionProvider" in found.differs
    assert any(line.startswith("vocoder: no cuda: ") for line in found.differs)


def test_engines_of_tensorrt_that_cannot_be_built_differ(given: Given) -> None:
    found, _ = run("warming", given, 60)
    assert found.status == "differs"
    assert "ended with status 1: error: no TensorRT" in found.differs[0]
