"""What is asked, and what is answered; this machine's own turns as a preset."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.journal.rows import NOON, row

from ondam.config import load
from ondam.journal.steady import Steadiness
from ondam.measure.budget import timeline
from ondam.measure.budget_answer import BudgetError, Wanted, answer, switch, wanted
from ondam.measure.budget_data import knowledge
from ondam.measure.budget_own import Own, own
from ondam.measure.budget_reading import own_of

KNOWN = knowledge()
STEADY = Steadiness(5, 0.1)


def turn(number: int, **other: Any) -> dict[str, Any]:
    """Begun at 90 ms, 10 ms between the engines, endpoint at 500: the chain of 350 is hidden."""
    shape = {
        "marks_ms": {
            "last_voiced": 0.0,
            "stt_sent": 90.0,
            "stt_final": 192.0,
            "llm_sent": 193.0,
            "llm_first_token": 273.0,
            "first_clause": 333.0,
            "endpoint": 500.0,
            "tts_sent": 335.0,
            "tts_first_audio": 440.0,
            "dac_first_sample": 512.0,
        },
        "stages_ms": dict.fromkeys(("ipc", "stt", "llm_first_token", "first_clause", "tts_first_audio"), 0.0)
        | {"endpoint": 500.0, "playback_buffer": 12.0},
        "engine_ms": {
            "stt": 100.0,
            "llm_first_token": 80.0,
            "llm_first_clause": 140.0,
            "llm_last_token": 700.0,
            "tts_first_audio": 100.0,
            "tts": 400.0,
        },
    }
    return row(number, 512.0, **{**shape, **other})


def mine(rows: list[dict[str, Any]]) -> Own:
    return own(list(reversed(rows)), STEADY, {"stt": 1, "llm": 1, "tts": 1})


def test_this_machine_is_what_its_settled_turns_took_hidden_or_not() -> None:
    told = mine([turn(n) for n in range(12)])
    assert told.preset is not None and (told.settled, told.turns) == (12, 12)
    stages = {stage: figure.ms for stage, figure in told.preset.stages.items()}
    assert stages == {
        "endpoint": 500.0,
        "ipc": 10.0,
        "stt": 100.0,
        "llm_first_token": 80.0,
        "first_clause": 60.0,
        "tts_first_audio": 100.0,
        "playback_buffer": 12.0,
    }
    overlap = told.preset.overlap
    assert (overlap.drafts, overlap.draft_at_ms) == (True, 90.0)
    assert (overlap.answer_rest_ms, overlap.voice_rest_ms) == (560.0, 300.0)
    assert timeline(told.preset).total_ms == 512.0
    assert told.preset.measured is not None and told.preset.measured.p50_ms == 512.0


def test_only_settled_spoken_answered_turns_under_the_newest_conditions_count() -> None:
    rows = [turn(n, conditions="old") for n in range(20)]
    rows += [turn(20 + n, population="cold") for n in range(12)]
    rows += [turn(32 + n, outcome="failed") for n in range(12)]
    assert mine(rows) == Own(None, 0, 24)
    assert mine([]) == Own(None, 0, 0)
    kept = mine([*rows, *(turn(50 + n) for n in range(12)), {"marks_ms": 5}])
    assert kept.settled == 12


def test_turns_of_a_server_that_does_not_tell_are_taken_from_the_marks() -> None:
    untold = dict.fromkeys(turn(0)["engine_ms"])
    told = mine([turn(n, engine_ms=untold) for n in range(12)])
    assert told.preset is not None
    assert told.preset.stages["stt"].ms == 102.0
    assert told.preset.stages["first_clause"].ms == 60.0


def test_without_turns_of_its_own_it_says_so_and_shows_another_preset() -> None:
    told = answer(Wanted(), KNOWN, Own(None, 2, 30), 800.0, "en")
    assert told["preset"] == "embedded-cpu"
    assert [note["code"] for note in told["notes"]] == ["budget_no_own"]
    assert "2 settled spoken turns" in told["notes"][0]["text"]
    with pytest.raises(BudgetError) as told_off:
        answer(Wanted(preset="this-machine"), KNOWN, Own(None, 2, 30), 800.0, "en")
    assert "ondam up" in str(told_off.value.phrase)


def test_with_turns_of_its_own_it_is_this_machine_with_its_p95() -> None:
    told = answer(Wanted(against="embedded-cpu"), KNOWN, mine([turn(n) for n in range(12)]), 800.0, "ko")
    assert (told["preset"], told["notes"], told["total_ms"]) == ("this-machine", [], 512.0)
    assert told["stages"][0]["p95_ms"] == 500.0
    assert told["measured"] == {
        "first_audio_ms": {"p50": 512.0, "p95": 512.0, "n": 12},
        "model_less_p50_ms": 0.0,
        "zone": {"p50": "conversational", "p95": "conversational"},
        "over_target": False,
    }
    assert told["difference"]["total_ms"] == 92.0
    assert told["against"]["preset"] == "embedded-cpu"


def test_a_zone_is_told_of_what_was_measured_too() -> None:
    """The sum of medians is in one zone, and the machine in another."""
    slow = [{**turn(n), "first_audio_ms": 1100.0} for n in range(12)]
    told = answer(Wanted(), KNOWN, mine(slow), 800.0, "en")
    assert (told["zone"], told["over_target"]) == ("conversational", False)
    assert told["measured"]["zone"] == {"p50": "beyond", "p95": "beyond"}
    assert (told["measured"]["over_target"], told["measured"]["model_less_p50_ms"]) == (True, -588.0)


def test_sources_are_told_in_the_language_that_is_asked_for() -> None:
    told = answer(Wanted(against="managed-apis"), KNOWN, mine([turn(n) for n in range(12)]), 800.0, "ko")
    assert (
        told["stages"][2]["source"]
        == "측정, 2026-01-31: 이 컴퓨터 기록의 안정된 음성 턴 12개, 엔진 자체 시간"
    )
    assert told["stages"][2]["usual_source"].startswith("발표된 수치, 2026-11-30 확인: 스트리밍 인식에는")
    for side in (told, told["against"]):
        lines = [stage[key] for stage in side["stages"] for key in ("source", "usual_source")]
        lines += [side["overlap"][key] for key in ("draft_source", "rest_source")]
        lines += [side["zones"][key] for key in ("natural_source", "conversational_source")]
        assert all(re.search("[가-힣]", line) for line in lines)


def test_rows_that_hold_no_numbers_spoil_nothing() -> None:
    rows = [turn(n) for n in range(16)]
    for at, wrong in enumerate((math.nan, math.inf, "soon", None, True, [1])):
        rows[at] = turn(at, marks_ms={**turn(0)["marks_ms"], "stt_final": wrong, "stt_sent": wrong})
        rows[at]["engine_ms"]["llm_first_clause"] = wrong
    rows[7]["stages_ms"]["endpoint"] = -40.0
    told = answer(Wanted(), KNOWN, mine(rows), 800.0, "en")
    assert (told["preset"], told["total_ms"]) == ("this-machine", 512.0)
    assert "NaN" not in json.dumps(told) and all(stage["ms"] >= 0 for stage in told["stages"])


def test_a_journal_that_cannot_be_read_is_not_called_empty(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_bytes(b"SQLite format 3\x00" + b"x" * 4096)
    own = own_of(tmp_path / "journal.sqlite", load(None).measure)
    told = answer(Wanted(), KNOWN, own, 800.0, "en")
    assert (told["preset"], told["notes"][0]["code"]) == ("embedded-cpu", "budget_own_unread")
    assert "holds no turns that can be read" in told["notes"][0]["text"]
    with pytest.raises(BudgetError, match="reason_budget_unread"):
        answer(Wanted(preset="this-machine"), KNOWN, own, 800.0, "ko")


def test_the_answer_has_what_was_promised() -> None:
    told = answer(wanted(KNOWN, preset="h200", speakers="4"), KNOWN, None, 800.0, "en")
    assert {"stages", "total_ms", "bottleneck", "zone", "remedies", "sum_ms"} <= set(told)
    for stage in told["stages"]:
        assert {"stage", "ms", "usual_ms", "source"} <= set(stage)
        assert set(stage["usual_ms"]) == {"low", "high"} and isinstance(stage["source"], str)
    assert sum(stage["ms"] for stage in told["stages"]) == pytest.approx(told["sum_ms"], abs=0.5)
    assert sum(stage["target_ms"] for stage in told["stages"]) == pytest.approx(800.0)
    assert told["load"]["assumption"] == "M/M/c" and "Erlang C" in told["load"]["formula"]
    assert told["remedies"][0]["code"] == "voice_streams"
    assert told["remedies"][0]["gain_ms"] == pytest.approx(387.5)


def test_settings_change_the_first_side_alone() -> None:
    asked = wanted(
        KNOWN,
        preset="laptop",
        against="laptop",
        settings=["stt=10", "draft_at=50"],
        drafts=True,
        target="400",
    )
    told = answer(asked, KNOWN, None, 800.0, "en")
    assert (told["stages"][2]["ms"], told["stages"][2]["source"]) == (10.0, "given")
    assert (told["overlap"]["drafts"], told["overlap"]["draft_at_ms"]) == (True, 50.0)
    assert told["against"]["stages"][2]["ms"] == 190.0
    assert told["against"]["overlap"]["drafts"] is False
    assert told["target_ms"] == told["against"]["target_ms"] == 400.0


def test_what_is_asked_travels_as_a_query_and_back() -> None:
    asked = wanted(
        KNOWN,
        preset="h100",
        settings=["stt=10.5", "ipc=0"],
        drafts=False,
        streaming=True,
        speakers="3",
        every="7.5",
        target="500",
    )
    query = asked.query()
    again = wanted(
        KNOWN,
        settings=[value for name, value in query if name == "set"],
        drafts=switch("drafts", dict(query)["drafts"]),
        streaming=switch("streaming", dict(query)["streaming"]),
        preset=dict(query)["preset"],
        speakers=dict(query)["load"],
        every=dict(query)["every"],
        target=dict(query)["target"],
    )
    assert again == asked


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"settings": ["sst=1"]}, 'did you mean "stt"? Known: endpoint, ipc, stt'),
        ({"settings": ["foo=1"]}, "no stage 'foo'. Known"),
        ({"settings": ["STT=1"]}, 'did you mean "stt"?'),
        ({"settings": ["stt"]}, "STAGE=MS is wanted, not 'stt'"),
        ({"settings": ["stt=1", "stt=1"]}, "stt is set twice"),
        ({"settings": ["stt=-1"]}, "a number from 0 to 600000 is wanted, not '-1'"),
        ({"settings": ["stt=nan"]}, "not 'nan'"),
        ({"settings": ["stt=inf"]}, "not 'inf'"),
        ({"settings": ["stt=1e9"]}, "not '1e9'"),
        ({"settings": ["stt=1_0"]}, "not '1_0'"),
        ({"settings": ["stt="]}, "not ''"),
        ({"settings": ["stt=" + "9" * 5000]}, "not '999"),
        ({"preset": "h10"}, 'did you mean "h100"? Known: this-machine, embedded-cpu'),
        ({"against": "쀍"}, "no preset '쀍'"),
        ({"target": "0"}, "target: a number from 1"),
        ({"speakers": "0"}, "load: a number from 1"),
        ({"speakers": "2.5"}, "load: a whole number"),
        ({"speakers": "2", "every": "0"}, "every: a number from 0.1"),
        ({"every": "5"}, "needs load"),
    ],
)
def test_what_cannot_be_is_told_with_what_could(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(BudgetError) as told:
        wanted(KNOWN, **wrong)
    assert said in str(told.value.phrase) and len(str(told.value.phrase)) < 500


def test_a_switch_is_0_or_1() -> None:
    assert [switch("drafts", given) for given in (None, "0", "1")] == [None, False, True]
    with pytest.raises(BudgetError):
        switch("drafts", "yes")


def test_rows_are_minutes_apart() -> None:
    assert datetime.fromisoformat(turn(1)["started_at"]) == NOON + timedelta(minutes=1)
