"""The journal's file: what is kept in it, for how long, and what happens when it cannot be written."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ondam.journal import recorder as module
from ondam.journal.conditions import Conditions
from ondam.journal.keep import Keep
from ondam.journal.reading import newest
from ondam.journal.recorder import Recorder, read_turns
from ondam.journal.turn import Turn
from ondam.messages import message
from ondam.types import TurnId

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def turn(number: int, started_at: datetime = NOON) -> Turn:
    return Turn(
        TurnId(number), "s", started_at, transcript="몇 시야?", heard="세 시입니다.", outcome="answered"
    )


def written(path: Path, *turns: Turn, keep: Keep | None = None, keep_days: int = 30) -> Recorder:
    recorder = Recorder(path, keep or Keep(keep_days), now=lambda: NOON)
    for one in turns:
        recorder.record(one, one.as_json())
    recorder.close(5)
    return recorder


def test_what_was_said_is_in_the_file_only_where_the_configuration_wants_it(tmp_path: Path) -> None:
    silent, speaking, texts = (tmp_path / name for name in ("a.sqlite", "b.sqlite", "texts.sqlite"))
    recorder = written(silent, turn(1), keep=Keep(30, texts=texts))
    assert not texts.exists()
    written(speaking, turn(1), keep=Keep(30, text=True, texts=texts))
    for path in (silent, speaking):
        assert [(t["transcript"], t["reply"]) for t in read_turns(path, limit=9)] == [(None, None)]
        assert "몇 시야?".encode() not in path.read_bytes()
    (told,) = read_turns(speaking, limit=9, texts=texts)
    assert (told["transcript"], told["reply"]) == ("몇 시야?", "세 시입니다.")
    assert texts.stat().st_mode & 0o777 == speaking.stat().st_mode & 0o777 == 0o600
    assert recorder.recent(9)[0]["transcript"] == "몇 시야?"  # in memory, until the daemon ends


def test_turns_older_than_keep_days_are_deleted_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    written(path, turn(1, NOON - timedelta(days=3)), turn(2, NOON - timedelta(days=1, hours=23)), keep_days=9)
    assert [t["id"] for t in read_turns(path, limit=9)] == [2, 1]
    written(path, turn(3), keep_days=2)
    assert [t["id"] for t in read_turns(path, limit=9)] == [3, 2]


def test_conditions_go_with_the_last_turn_that_was_made_under_them(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"

    def under(number: int, days_ago: float, conditions: str) -> Turn:
        made = turn(number, NOON - timedelta(days=days_ago))
        made.conditions = Conditions(conditions, {"of": conditions})
        return made

    def names() -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            return [name for (name,) in connection.execute("SELECT name FROM conditions ORDER BY name")]

    written(path, under(1, 3, "gone"), under(2, 3, "used"), under(3, 1, "used"), keep_days=9)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('UPDATE turns SET record = \'torn "conditions": "g\' WHERE turn = 3')
        connection.execute(
            "INSERT INTO turns SELECT 9, session, 9, ?, outcome, settled, 1, 1, record"
            " FROM turns WHERE turn = 2",
            (NOON.isoformat(),),
        )
    assert names() == ["gone", "used"]
    written(path, under(4, 0, "new"), keep_days=2)
    assert names() == ["new", "used"]


def test_turns_are_read_newest_first_up_to_a_limit_and_since_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    assert read_turns(path, limit=9) == []
    written(path, *(turn(n, NOON + timedelta(minutes=n)) for n in range(1, 5)))
    assert [t["id"] for t in read_turns(path, limit=2)] == [4, 3]
    assert [t["id"] for t in read_turns(path, limit=9, since=NOON + timedelta(minutes=3))] == [4, 3]


def test_a_row_that_is_torn_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    written(path, turn(1), turn(2), turn(3))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE turns SET record = '{\"id\": 2' WHERE turn = 2")
    assert [t["id"] for t in read_turns(path, limit=9)] == [3, 1]
    assert [t["id"] for t in newest(path, 9)] == [3, 1]


def test_a_path_may_hold_what_has_a_meaning_in_a_url(tmp_path: Path) -> None:
    path = tmp_path / "온담 %41#?mode=memory" / "journal.sqlite"
    written(path, turn(7))
    assert [t["id"] for t in read_turns(path, limit=9)] == [7]


def test_a_hanging_disk_loses_turns_counts_them_and_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "journal.sqlite", module._connection
    hanging, goes_on = threading.Event(), threading.Event()

    @contextmanager
    def connection(path: Path, texts: object = None) -> Iterator[sqlite3.Connection]:
        hanging.set()
        assert goes_on.wait(10)
        with real(path) as opened:
            yield opened

    monkeypatch.setattr(module, "_connection", connection)
    monkeypatch.setattr(module, "QUEUE_LIMIT", 4)
    recorder = Recorder(path, Keep(30), now=lambda: NOON)
    recorder.record(turn(0), turn(0).as_json())
    assert hanging.wait(10)
    for number in range(1, 8):  # four fit the queue
        recorder.record(turn(number), turn(number).as_json())
    assert (recorder.lost, recorder.written) == (3, 0)
    recorder.close(0.01)  # gives up: a stop is not held up either
    goes_on.set()
    recorder.close(10)  # what was queued is written
    assert (recorder.lost, recorder.written) == (3, 5)
    assert [t["id"] for t in read_turns(path, limit=9)] == [4, 3, 2, 1, 0]


def test_turns_wait_for_a_disk_that_refuses_and_are_written_in_their_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    folder = tmp_path / "file"
    folder.write_text("")
    recorder = Recorder(folder / "journal.sqlite", Keep(30), now=lambda: NOON)
    for number in (1, 2):
        recorder.record(turn(number), turn(number).as_json())
    while recorder.waiting < 2 or not recorder.trouble:
        time.sleep(0.001)
    folder.unlink()
    while recorder.waiting or recorder.trouble:
        time.sleep(0.001)
    recorder.close(10)
    assert (recorder.lost, recorder.written) == (0, 2)
    assert [t["id"] for t in read_turns(folder / "journal.sqlite", limit=9)] == [2, 1]
    assert [r.levelno for r in caplog.records if r.levelno > logging.INFO] == [logging.WARNING]


def test_of_turns_that_wait_for_ever_the_oldest_are_given_up_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUEUE_LIMIT", 3)
    (tmp_path / "file").write_text("")
    recorder = written(tmp_path / "file" / "journal.sqlite", *map(turn, range(3)))
    assert (recorder.lost, recorder.written) == (3, 0)
    told = message("journal_turns_lost", "ko", count=recorder.lost, path="/a")
    assert "3건" in told.text and told.next


def test_a_broken_file_is_put_aside_told_and_a_new_one_begun(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"no database" * 999)
    assert read_turns(path, limit=9) == []
    caplog.clear()
    recorder = written(path, turn(1))
    assert (recorder.lost, recorder.written) == (0, 1)
    assert [t["id"] for t in read_turns(path, limit=9)] == [1]
    (kept,) = tmp_path.glob("journal.sqlite.broken-*")
    assert kept.read_bytes() == b"no database" * 999
    (told,) = caplog.records
    assert told.levelno == logging.ERROR and str(kept) in told.getMessage()


def test_pages_that_were_overwritten_are_noticed_too(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    written(path, turn(1), turn(2))
    size = path.stat().st_size
    with path.open("r+b") as file:  # everything but the header that says what the file is
        file.seek(100)
        file.write(b"\xff" * (size - 100))
    assert written(path, turn(3)).written == 1
    assert len(list(tmp_path.glob("journal.sqlite.broken-*"))) == 1
    assert [t["id"] for t in read_turns(path, limit=9)] == [3]


def test_a_file_that_is_only_locked_is_left_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    written(path, turn(1))
    with closing(sqlite3.connect(path)) as other, closing(sqlite3.connect(path, timeout=0)) as ours:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as met:
            ours.execute("BEGIN IMMEDIATE")
    assert met.value.sqlite_errorcode not in module.BROKEN
