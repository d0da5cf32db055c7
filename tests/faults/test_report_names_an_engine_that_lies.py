"""An engine that got something else than the plan asked for is a finding in the report of the same run.

The engine is a real process; what the daemon does with a turn (its conditions, the journal) and the report
are the real ones, and so is the process that the daemon makes its report in.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fakes.engine.rig import Rig, planned

from ondam.cli import command
from ondam.cli.frame import run
from ondam.config import load
from ondam.errors import JournalError
from ondam.house.conditions import lasting_of
from ondam.journal.apart import report_apart
from ondam.journal.conditions import Conditions
from ondam.journal.keep import Keep
from ondam.journal.reading import Selection
from ondam.journal.recorder import Recorder
from ondam.journal.turn import Turn
from ondam.places import Places
from ondam.types import TurnId

LIES: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[str, str, object, object]]]] = {
    # name: (its options, what it reports, the findings: stage, what, wanted, got)
    "provider": (
        {},
        {"providers": {"main": ["CUDAExecutionProvider"]}},
        [("stt", "provider of main", "cpu", "CUDAExecutionProvider")],
    ),
    "graph": ({"cuda_graphs": True}, {"cuda_graphs": False}, [("stt", "cuda_graphs", True, False)]),
    "a lost card": (
        {"device": "cuda:0"},
        {"device": "cpu", "why": {"main": "no NVIDIA driver"}},
        [("stt", "device", "cuda:0", "cpu")],
    ),
    "a field that is not told": ({"kv_dtype": "fp8"}, {}, [("stt", "kv_dtype", "fp8", None)]),
    "two loads": ({}, {"weight_loads": 2}, [("stt", "weight_loads", 0, 2)]),
    "nothing": ({}, {}, []),
}


@pytest.fixture
async def journal(home: Places, request: pytest.FixtureRequest) -> list[tuple[str, str, object, object]]:
    """A turn in the journal, answered while that engine served."""
    options, report, expected = LIES[request.param]
    config = load(None)
    plans = (planned("stt", report=report, **options), planned("llm"), planned("tts"))
    async with Rig(home, *plans) as rig:
        await rig.start()
        facts = lasting_of(config, "en", rig.plan, rig.fleet.crew)
    turn = Turn(TurnId(1), "run-1", datetime.now(UTC), outcome="answered", conditions=Conditions.of(facts))
    recorder = Recorder(home.journal, Keep(1))
    recorder.record(turn, turn.as_json())
    recorder.close(5)
    assert recorder.lost == 0
    return expected


def fallbacks(report: Any) -> list[tuple[str, str, object, object]]:
    (group,) = report["groups"]
    found = [one["evidence"] for one in group["findings"] if one["code"] == "fallback"]
    return [(one["stage"], one["what"], one["wanted"], one["got"]) for one in found]


@pytest.mark.parametrize("journal", LIES, indirect=True)
async def test_a_provider_or_a_graph_that_differs_is_a_finding(
    home: Places,
    journal: list[tuple[str, str, object, object]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")
    assert run(command, ["report", "--journal", str(home.journal), "--json"]) == 0
    assert fallbacks(json.loads(capsys.readouterr().out)) == journal
    # The daemon's own way to it, in the language of whoever asks.
    made = await report_apart(home.journal, Selection(session="run"), "ko")
    assert fallbacks(made) == journal
    texts = [one["text"] for one in made["groups"][0]["findings"] if one["code"] == "fallback"]
    assert all("계획과 다릅니다" in text for text in texts)
    # In words, and with what the engine itself says about it.
    assert not [text for text in texts if "kv_dtype" in text or "None" in text or "{" in text]
    assert ["no NVIDIA driver" in text for text in texts] == [what == "device" for _, what, _, _ in journal]
    assert (await report_apart(home.journal, Selection(session="other"), "en"))["groups"] == []


async def test_what_the_process_says_of_a_broken_journal_is_told(home: Places) -> None:
    home.state.mkdir(parents=True)
    home.journal.write_text("no journal")
    with pytest.raises(JournalError, match="no turns that can be read"):
        await report_apart(home.journal, Selection(), "en")
