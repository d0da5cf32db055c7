"""The auditors' lines: what is in them, how many there are, and what happens when they cannot be written."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ondam.journal.audit import AuditLog
from ondam.journal.keep import Keep
from ondam.journal.recorder import Recorder
from ondam.journal.turn import Turn
from ondam.types import TurnId

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def turn(number: int) -> Turn:
    made = Turn(
        TurnId(number), "run-1", NOON, transcript="비밀번호는?", heard="말하지 않아요.", outcome="answered"
    )
    made.mode, made.utterance_s, made.answer_s, made.llm_calls = "push", 1.25, 0.5, 1
    made.engines = {"piper": {"pid": 7, "started_at": "2026-01-31"}}
    return made


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_a_line_tells_when_how_and_by_whom_and_no_word(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    AuditLog(path, most_bytes=10_000, files=1).add(turn(3))
    assert lines(path) == [
        {
            "time": "2026-01-31T12:00:00.000+00:00",
            "session": "run-1",
            "turn": 3,
            "mode": "push",
            "outcome": "answered",
            "fault": None,
            "cause": None,
            "aloud": True,
            "canned": False,
            "utterance_s": 1.25,
            "answer_s": 0.5,
            "asked_characters": 6,
            "answered_characters": 8,
            "llm_calls": 1,
            "voice": None,
            "engines": {"piper": 7},
            "conditions": None,
        }
    ]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_is_turned_over_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path, most_bytes=1000, files=2)
    for number in range(20):
        log.add(turn(number))
    files = [path, tmp_path / "audit.jsonl.1", tmp_path / "audit.jsonl.2"]
    assert sorted(tmp_path.iterdir()) == files
    assert all(file.stat().st_size <= 1000 for file in files)
    told = [line["turn"] for file in files[::-1] for line in lines(file)]
    assert told == list(range(20 - len(told), 20))


def test_no_older_file_is_kept_where_none_is_wanted(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", most_bytes=400, files=0)
    log.add(turn(1))
    log.add(turn(2))
    assert [line["turn"] for line in lines(tmp_path / "audit.jsonl")] == [2]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_line_that_cannot_be_written_is_known_until_one_can(tmp_path: Path) -> None:
    path = tmp_path / "audit" / "audit.jsonl"
    path.parent.write_text("in the way")
    recorder = Recorder(tmp_path / "j.sqlite", Keep(9, audit=path), now=lambda: NOON)
    recorder.record(turn(1), turn(1).as_json())
    recorder.close(5)
    assert (recorder.unkept, recorder.written) == ({"audit": (path, "File exists")}, 1)
    path.parent.unlink()
    recorder = Recorder(tmp_path / "j.sqlite", Keep(9, audit=path), now=lambda: NOON)
    recorder.unkept["audit"] = path, "?"
    recorder.record(turn(2), turn(2).as_json())
    recorder.close(5)
    assert recorder.unkept == {}
    assert [line["turn"] for line in lines(path)] == [2]


def test_half_a_line_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ondam.journal.audit.os.write", lambda descriptor, line: 3)
    with pytest.raises(OSError, match="No space"):
        AuditLog(tmp_path / "audit.jsonl", most_bytes=10_000, files=1).add(turn(1))


def test_a_pipe_that_nobody_reads_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="No such device"):
        AuditLog(path, most_bytes=1000, files=1).add(turn(1))
