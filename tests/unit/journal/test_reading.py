"""Where the turns of a report come from, and what is said when they cannot be read."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.journal.rows import FACTS, NOON, row
from tests.unit.journal.test_report import sqlite

from ondam.errors import JournalError
from ondam.journal import reading
from ondam.journal.conditions import Conditions
from ondam.journal.keep import Keep
from ondam.journal.reading import Read, Selection, moment, read
from ondam.journal.recorder import Recorder
from ondam.journal.turn import Turn
from ondam.types import TurnId


def ids(found: Read) -> list[float]:
    """Told apart by their first audio."""
    return sorted(turn.first_audio_ms or 0.0 for turn in found.turns)


def file(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=2), "utf-8")
    return path


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    return path


FIVE = [row(n, 100.0 * n, session=f"run{n % 2}-{n}", conditions=f"c{n % 2}") for n in range(1, 6)]


@pytest.fixture(params=["sqlite", "json", "lines"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "sqlite":
        return sqlite(tmp_path / "j.sqlite", FIVE)
    return file(tmp_path / "j.json", FIVE) if request.param == "json" else lines(tmp_path / "j.jsonl", FIVE)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), [100, 200, 300, 400, 500]),
        (Selection(since=NOON + timedelta(minutes=4)), [400, 500]),
        (Selection(until=NOON + timedelta(minutes=4)), [100, 200, 300]),
        (Selection(session="run0-2"), [200]),
        (Selection(session="run0"), [200, 400]),
        (Selection(session="run"), []),
        (Selection(plan="c1"), [100, 300, 500]),
        (Selection(plan="%"), []),
        (Selection(most=2), [400, 500]),
        (Selection(most=1, plan="c0"), [400]),
    ],
)
def test_turns_are_selected_alike_in_every_kind_of_file(
    journal: Path, selection: Selection, expected: list[float]
) -> None:
    found = read(journal, selection)
    assert ids(found) == expected
    assert found.more == (selection.most < 5)


def test_the_recorders_own_file_is_read_with_its_conditions(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    recorder = Recorder(path, Keep(9), now=lambda: NOON)
    turn = Turn(TurnId(1), "s", NOON, outcome="answered", conditions=Conditions("c1", FACTS))
    recorder.record(turn, turn.as_json())
    recorder.close(5)
    found = read(path, Selection())
    assert ([t.started_at for t in found.turns], found.facts) == (
        [NOON.isoformat(timespec="milliseconds")],
        {"c1": FACTS},
    )


def test_a_stored_run_brings_its_conditions_and_the_other_side_under_its_own(tmp_path: Path) -> None:
    told = {"name": "c1", **FACTS, "load_average_1min": 0.5, "uptime_s": 9.0}
    settings = {"drafts": {"most_per_turn": 0}}
    stored = {"conditions": told, "turns": [row(1)], "against": {"settings": settings, "turns": [row(2)]}}
    found = read(file(tmp_path / "run.json", stored), Selection())
    ours, other = sorted(found.turns, key=lambda turn: turn.started_at)
    assert found.facts[ours.conditions] == FACTS
    assert found.facts[other.conditions] == {**FACTS, "drafts": {"most_per_turn": 0}}
    assert ours.conditions != other.conditions
    # In one line, as another program would write it.
    (tmp_path / "line.json").write_text(json.dumps(stored), "utf-8")
    assert len(read(tmp_path / "line.json", Selection()).turns) == 2


def test_a_broken_row_of_the_journal_is_counted_and_of_a_given_file_is_named(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "j.sqlite", FIVE)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE turns SET record = 'no json' WHERE number = 2")
    found = read(path, Selection())
    assert (ids(found), found.skipped) == ([100, 300, 400, 500], 1)
    given = lines(tmp_path / "j.jsonl", [row(1), {**row(2), "first_audio_ms": "soon"}])
    with pytest.raises(JournalError) as raised:
        read(given, Selection())
    assert (raised.value.code, raised.value.facts["row"]) == ("journal_row_broken", 2)
    assert "soon" in str(raised.value) and str(given) in str(raised.value) and raised.value.message("ko").next


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "journal_unreadable"),
        (b"hello", "journal_unreadable"),
        (b"\xff\xfe\x00", "journal_unreadable"),
        (b'{"conditions": {}, "turns": 3}', "journal_unreadable"),
        (b"[" * 100_000, "journal_unreadable"),
        (b"[1, 2]", "journal_row_broken"),
        (b'{"outcome": "answered"}\n{"outcome"', "journal_row_broken"),
        (b"SQLite format 3\x00" + b"x" * 4096, "journal_unreadable"),
        (None, "journal_absent"),
    ],
)
def test_what_is_no_journal_is_refused_in_words(tmp_path: Path, content: bytes | None, code: str) -> None:
    path = tmp_path / "given"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(JournalError) as raised:
        read(path, Selection())
    assert raised.value.code == code and raised.value.message().next


def test_a_file_that_somebody_is_writing_is_not_read_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LOCKED_S", 0.01)
    path = sqlite(tmp_path / "j.sqlite", FIVE)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(JournalError, match="locked"):
            read(path, Selection())
        writer.execute("ROLLBACK")
    assert len(read(path, Selection()).turns) == 5


def test_a_journal_that_nothing_was_written_to_yet_holds_no_turns(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").touch()
    assert read(tmp_path / "journal.sqlite", Selection()).turns == []


def test_an_sqlite_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    with pytest.raises(JournalError, match="turns"):
        read(path, Selection())


def test_moments_are_ago_or_dates_or_dates_and_times() -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert moment("90m", now) == now - timedelta(minutes=90)
    assert moment("7d", now) == now - timedelta(days=7)
    assert moment("2026-01-30T10:00+09:00", now) == datetime(2026, 1, 30, 1, tzinfo=UTC)
    day = moment("2026-01-30", now)
    assert day.astimezone() == datetime(2026, 1, 30).astimezone()
    assert moment("2026-01-30", now, end=True).astimezone() == datetime(2026, 1, 31).astimezone()
    for far in ("999999999w", "0001-01-01", "0001-01-01T00:00:00"):
        assert moment(far, now) < datetime(2, 1, 1, tzinfo=UTC)
    assert moment("9999-12-31", now, end=True) > datetime(9999, 12, 30, tzinfo=UTC)
    for wrong in ("", "yesterday", "2 h", "7y", "2026-13-01", "٣h"):
        with pytest.raises(ValueError):
            moment(wrong, now)
