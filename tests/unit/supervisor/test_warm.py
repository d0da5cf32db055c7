from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ondam.errors import EngineError
from ondam.places import Places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor import warm as module
from ondam.supervisor.launch import Home
from ondam.supervisor.manifest import EngineFolder, read_engine
from ondam.supervisor.warm import warm

MANIFEST = """
name = "slow"
stage = "tts"
protocol = "wyoming"
licence = "MIT"
summary_en = "x"
summary_ko = "x"
[launch]
command = ["{python}", "serve.py"]
warm = ["{python}", "-c", '''%s''', "{cache}", "{device}"]
[environment]
locks = { cpu = "requirements.lock" }
[capabilities]
languages = ["en"]
[needs]
memory_mib = 1
[limits]
busy_after_cancel_ms = 1
"""


class Told:
    """Implements ``environment.Progress``."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int | None, int | None]] = []

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self.steps.append((text, done, total))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """Where progress goes. Every engine counts as built."""
    monkeypatch.setattr(module, "installed", lambda engine, places: Home(Path(sys.executable), tmp_path))
    return Told()


def engine(folder: Path, script: str) -> EngineFolder:
    (folder / "slow").mkdir()
    (folder / "slow" / "engine.toml").write_text(MANIFEST % script, "utf-8")
    return read_engine(folder / "slow")


def go(folder: Path, told: Told, script: str, *, isolated: bool = True) -> Path:
    planned = PlannedEngine("slow", "tts", "", None, None, "cuda:1", 1, "en")
    log = folder / "logs" / "warm-slow.log"
    places = Places(folder, folder / "data", folder, folder)
    warm(engine(folder, script), planned, places, isolated=isolated, progress=told, log=log)
    return log


def test_what_it_prints_is_progress_and_everything_is_in_the_log(tmp_path: Path, run: Told) -> None:
    script = 'import sys; print("[0/2] begins"); print("a word"); print("[2/2]", *sys.argv[1:])'
    log = go(tmp_path, run, script)
    cache = tmp_path / "data" / "caches" / "slow"
    assert run.steps == [("begins", 0, 2), (f"{cache} cuda:1", 2, 2)]
    assert log.read_text("utf-8").splitlines() == ["[0/2] begins", "a word", f"[2/2] {cache} cuda:1"]


def test_a_look_runs_what_makes_nothing(tmp_path: Path, run: Told) -> None:
    found = engine(tmp_path, "raise SystemExit('made')")
    look = [*found.manifest.launch.warm[:2], "print('error: no plan'); raise SystemExit(1)"]
    own = found.manifest.launch.model_copy(update={"warmed": look})
    folder = EngineFolder(found.path, found.manifest.model_copy(update={"launch": own}))
    planned = PlannedEngine("slow", "tts", "", None, None, "cuda:1", 1, "en")
    places = Places(tmp_path, tmp_path / "data", tmp_path, tmp_path)
    with pytest.raises(EngineError) as caught:
        warm(folder, planned, places, isolated=False, progress=run, log=Path(os.devnull), look=True)
    assert caught.value.facts["reason"] == "no plan"


@pytest.mark.parametrize(("isolated", "network"), [(True, "none"), (False, "unset")])
def test_it_is_cut_off_from_the_network_as_the_engine_is(
    tmp_path: Path, run: Told, isolated: bool, network: str
) -> None:
    script = 'import os; print(os.environ.get("ONDAM_NETWORK", "unset").split()[0])'
    assert go(tmp_path, run, script, isolated=isolated).read_text("utf-8") == f"{network}\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('import sys; print("error: no card", file=sys.stderr); print("bye"); sys.exit(1)', "no card"),
        ("raise SystemExit('gone')", "gone"),
        ("raise SystemExit(3)", "status 3"),
    ],
)
def test_why_it_failed_is_told(tmp_path: Path, run: Told, script: str, reason: str) -> None:
    with pytest.raises(EngineError) as caught:
        go(tmp_path, run, script)
    assert caught.value.code == "engine_warm_failed"
    assert caught.value.facts["reason"] == reason
