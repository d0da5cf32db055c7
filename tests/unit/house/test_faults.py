"""The board of faults: what is told when, and to whom it still stands there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from ondam.control import wire
from ondam.house.faults import Faults
from ondam.supervisor.status import Change, EngineStatus, Fault

READY = EngineStatus("whisper", "stt", "ready", "unix:///s")
MISSING = Fault("microphone_missing", {"name": "default"})
DOWN = Fault("engine_down_stt", {"name": "whisper"})
NO_CARD = Fault("engine_lost_gpu", {"name": "whisper", "wanted": "cuda:0", "why": "no driver"})
BACK = Fault("engine_back_stt", {"name": "whisper"})


def board() -> tuple[Faults, list[wire.Event]]:
    events: list[wire.Event] = []
    return Faults("en", events.append), events


def codes(faults: Faults) -> list[str]:
    return [shape["code"] for shape in faults.shapes("en")]


def told(events: Sequence[wire.Event]) -> list[tuple[str, str]]:
    """(type, code) of each."""
    made = []
    for event in events:
        if event["type"] == "fault":
            made.append(("fault", event["fault"]["code"]))
        elif event["type"] == "fault_cleared" or event["type"] == "notice":
            made.append((str(event["type"]), event["code"]))
    return made


def test_a_fault_is_an_event_and_stands_there_until_it_is_over() -> None:
    faults, events = board()
    faults.begin("microphone", MISSING)
    assert "microphone" in faults
    [shape] = faults.shapes("en")
    assert datetime.fromisoformat(shape["since"]).utcoffset() is not None
    assert events == [{"type": "fault", "fault": shape}]
    faults.clear("microphone")
    faults.clear("microphone")  # over once
    assert events[1:] == [{"type": "fault_cleared", "code": "microphone_missing"}]
    assert faults.shapes("en") == []


def test_who_asks_is_answered_in_their_language_and_the_log_has_the_daemons(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults, _ = board()
    faults.language = "ko"
    faults.begin("microphone", MISSING)
    korean, english = faults.shapes("ko")[0]["text"], faults.shapes("en")[0]["text"]
    assert korean != english
    assert korean in caplog.text and english not in caplog.text


def test_what_is_told_once_stays_as_it_was_told() -> None:
    faults, events = board()
    for count in (1, 2):
        faults.begin_once("journal", Fault("journal_turns_lost", {"count": count, "path": "j"}))
    assert told(events) == [("fault", "journal_turns_lost")]
    faults.begin("journal", MISSING)  # this one is another
    assert codes(faults) == ["microphone_missing"]


def test_with_a_fault_ends_what_belongs_to_it_and_nothing_that_is_only_spelt_alike() -> None:
    faults, _ = board()
    for key in ("microphone", "microphone:notice", "microphones"):
        faults.begin(key, MISSING)
    faults.clear("microphone")
    assert ["microphone" in faults, "microphone:notice" in faults, "microphones" in faults] == [
        False, False, True
    ]  # fmt: skip


def test_an_engine_that_is_back_is_told_and_its_fault_is_over() -> None:
    faults, events = board()
    faults.engine_changed(Change(replace(READY, state="restarting"), DOWN), "s-1")
    assert codes(faults) == ["engine_down_stt"]
    faults.engine_changed(Change(READY, BACK), "s-1")
    assert codes(faults) == []
    assert told(events)[1:] == [("fault_cleared", "engine_down_stt"), ("notice", "engine_back_stt")]
    assert events[-1] == {"type": "notice", "session": "s-1", "code": "engine_back_stt"}


def test_what_a_ready_engine_did_not_get_stands_there_while_it_serves() -> None:
    faults, events = board()
    differs = replace(READY, faults=(NO_CARD,))
    faults.engine_changed(Change(differs, NO_CARD), "")
    assert told(events) == [("fault", "engine_lost_gpu")]  # and it is no notice beside
    faults.engine_changed(Change(replace(READY, state="loading")), "")
    assert codes(faults) == ["engine_lost_gpu"]  # nobody knows better yet
    faults.engine_changed(Change(READY), "")
    assert codes(faults) == []


def test_beside_what_a_user_lost_stands_why_the_engine_was_refused() -> None:
    faults, _ = board()
    refused = Fault("engine_refused_by_plan", {"name": "whisper", "why": "no driver"})
    engine = replace(READY, state="failed", fit="refused", faults=(NO_CARD, refused))
    faults.engine_changed(Change(engine, DOWN), "")
    assert codes(faults) == ["engine_down_stt", "engine_refused_by_plan"]


def test_faults_of_engines_that_serve_no_more_are_over() -> None:
    faults, _ = board()
    for key in ("engine:piper", "engine:piper2:engine_lost_gpu", "engine:whisper", "speaker"):
        faults.begin(key, MISSING)
    faults.only_engines(["piper2", "qwen"])
    assert [key in faults for key in ("engine:piper", "engine:piper2:engine_lost_gpu", "engine:whisper")] == [
        False, True, False
    ]  # fmt: skip
    assert "speaker" in faults
