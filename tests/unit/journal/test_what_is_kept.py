"""Words and sounds that the user wants kept: where, how long, and that nothing of them stays behind."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from ondam.config import load
from ondam.journal import recorder as module
from ondam.journal.keep import Keep
from ondam.journal.recorder import SCHEMA, Recorder, read_turns
from ondam.journal.texts import Texts
from ondam.journal.turn import Turn
from ondam.places import places
from ondam.types import Samples, TurnId

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
WORD = "차돌박이"


class Clock:
    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> datetime:
        return self.at


def turn(number: int, days_ago: float = 0, sound: Samples | None = None) -> Turn:
    made = Turn(
        TurnId(number), "s", NOON - timedelta(days=days_ago), transcript=WORD, heard="네.", outcome="answered"
    )
    made.sound = sound
    return made


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def keep(folder: Path, **wanted: object) -> Keep:
    values = {"texts": folder / "kept" / "texts.sqlite", "sounds": folder / "kept" / "sounds", **wanted}
    return Keep(90, **values)  # type: ignore[arg-type]  # of several types


def record(recorder: Recorder, *turns: Turn) -> None:
    for one in turns:
        recorder.record(one, one.as_json())
    recorder.close(10)


def test_words_expire_before_timings_and_leave_nothing_behind(tmp_path: Path) -> None:
    clock, wanted = Clock(), keep(tmp_path, text=True, text_days=2)
    record(Recorder(tmp_path / "j.sqlite", wanted, now=clock), turn(1))
    assert WORD.encode() in everything(tmp_path)
    clock.at += timedelta(days=1, hours=23)
    record(Recorder(tmp_path / "j.sqlite", keep(tmp_path, text_days=2), now=clock))  # is not kept any more
    assert WORD.encode() in everything(tmp_path)
    clock.at += timedelta(hours=1, seconds=1)
    record(Recorder(tmp_path / "j.sqlite", keep(tmp_path, text_days=2), now=clock))
    assert WORD.encode() not in everything(tmp_path)
    assert [t["id"] for t in read_turns(tmp_path / "j.sqlite", limit=9)] == [1]


def test_what_is_old_goes_while_nobody_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXPIRE_EVERY_S", 0.01)
    clock = Clock()
    wanted = keep(tmp_path, text=True, text_days=2, audio=True, audio_days=1)
    recorder = Recorder(tmp_path / "j.sqlite", wanted, now=clock)
    seen = threading.Event()
    one = turn(1, sound=np.zeros(1600, np.int16))
    recorder.record(one, one.as_json())
    while recorder.written < 1:
        seen.wait(0.01)
    assert len(list((tmp_path / "kept" / "sounds").iterdir())) == 1
    clock.at += timedelta(days=3)
    for _ in range(1000):
        gone = not any((tmp_path / "kept" / "sounds").iterdir())
        if gone and Texts(tmp_path / "kept" / "texts.sqlite").count() == (0, None):
            break
        seen.wait(0.01)
    else:
        pytest.fail("it is still there")
    recorder.close(10)


def test_sounds_are_flac_that_their_owner_alone_may_read_and_the_oldest_go_first(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(-3000, 3000, 16_000).astype(np.int16)
    one = len(_flac(tmp_path, noise))
    wanted = keep(tmp_path, audio=True, audio_bytes=2 * one + 100)
    turns = [turn(n, days_ago=1 / n, sound=noise) for n in (1, 2, 3)]
    record(Recorder(tmp_path / "j.sqlite", wanted, now=Clock()), *turns)
    files = sorted((tmp_path / "kept" / "sounds").iterdir())
    assert [path.stem.rsplit("-", 1)[1] for path in files] == ["2", "3"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    samples, rate = soundfile.read(files[0], dtype="int16")
    assert rate == 16_000
    assert np.array_equal(samples, noise)


def _flac(folder: Path, samples: Samples) -> bytes:
    path = folder / "one.flac"
    soundfile.write(path, samples, 16_000, subtype="PCM_16")
    return path.read_bytes()


def test_nothing_is_kept_of_a_sound_that_is_not_wanted(tmp_path: Path) -> None:
    record(Recorder(tmp_path / "j.sqlite", keep(tmp_path), now=Clock()), turn(1, sound=np.ones(9, np.int16)))
    assert not (tmp_path / "kept").exists()


def old_journal(path: Path, count: int) -> None:
    """As it was written before words had a file of their own."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(SCHEMA)
        connection.execute("PRAGMA user_version=2")
        for number in range(count):
            row = {**turn(number).as_json(), "slots": {"dish": WORD}}
            connection.execute(
                "INSERT INTO turns (session, turn, started_at, outcome, settled, record)"
                " VALUES ('s', ?, ?, 'answered', 1, ?)",
                (number, row["started_at"], json.dumps(row, ensure_ascii=False)),
            )


def test_words_that_an_older_ondam_kept_in_the_journal_are_moved_to_their_own_file(tmp_path: Path) -> None:
    path, wanted = tmp_path / "j.sqlite", keep(tmp_path)
    old_journal(path, 300)
    record(Recorder(path, wanted, now=Clock()), turn(300))
    journal = b"".join(file.read_bytes() for file in tmp_path.glob("j.sqlite*"))
    assert WORD.encode() not in journal
    turns = read_turns(path, limit=999, texts=wanted.texts)
    assert len(turns) == 301
    assert [turns[0]["transcript"], turns[1]["transcript"], turns[-1]["slots"]] == [
        None,
        WORD,
        {"dish": WORD},
    ]
    record(Recorder(path, wanted, now=Clock()))  # once
    assert wanted.texts is not None
    assert Texts(wanted.texts).count() == (300, NOON.isoformat(timespec="milliseconds"))


def test_words_that_cannot_be_kept_are_told_and_cost_no_timings(
    tmp_path: Path,
) -> None:
    (tmp_path / "kept").write_text("in the way")
    recorder = Recorder(tmp_path / "j.sqlite", keep(tmp_path, text=True, audio=True), now=Clock())
    record(recorder, turn(1, sound=np.ones(9, np.int16)), turn(2, sound=np.ones(9, np.int16)))
    assert set(recorder.unkept) == {"text", "audio"}
    assert (recorder.written, recorder.lost) == (2, 0)


def test_by_default_there_is_nothing_but_timings(tmp_path: Path) -> None:
    kept = Keep.of(load(None), places({"ONDAM_HOME": str(tmp_path)}))
    assert (kept.text, kept.audio, kept.audit) == (False, False, None)
    assert (kept.days, kept.text_days, kept.audio_days) == (90, 30, 7)


def test_words_never_outlive_their_timings(tmp_path: Path) -> None:
    config = load(None, {"journal": {"keep_days": 5, "text_days": 9, "audio_days": 3}})
    kept = Keep.of(config, places({"ONDAM_HOME": str(tmp_path)}))
    assert (kept.days, kept.text_days, kept.audio_days) == (5, 5, 3)


def test_what_was_kept_while_the_clock_was_a_year_ahead_goes_all_the_same(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(-3000, 3000, 1_600).astype(np.int16)
    clock, wanted = Clock(), keep(tmp_path, text=True, text_days=2, audio=True, audio_days=2)
    clock.at += timedelta(days=400)
    record(Recorder(tmp_path / "j.sqlite", wanted, now=clock), turn(1, days_ago=-400, sound=noise))
    for later, there in ((0, True), (47, True), (49, False)):
        clock.at = NOON + timedelta(hours=later)
        record(Recorder(tmp_path / "j.sqlite", wanted, now=clock))
        assert (WORD.encode() in everything(tmp_path)) == there, later
        assert (list((tmp_path / "kept" / "sounds").iterdir()) != []) == there, later


def test_a_clock_that_stands_in_1970_for_a_while_costs_nobody_what_is_kept(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(-3000, 3000, 1_600).astype(np.int16)
    clock, wanted = Clock(), keep(tmp_path, text=True, text_days=2, audio=True, audio_days=2)
    record(Recorder(tmp_path / "j.sqlite", wanted, now=clock), turn(1, sound=noise))
    for at, there in (
        (datetime(1970, 1, 1, tzinfo=UTC), True),
        (datetime(1970, 1, 9, tzinfo=UTC) - timedelta(days=7), True),
        (NOON + timedelta(hours=47), True),
        (NOON + timedelta(hours=49), False),
    ):
        clock.at = at
        record(Recorder(tmp_path / "j.sqlite", wanted, now=clock))
        assert (WORD.encode() in everything(tmp_path)) == there, at
        assert (list((tmp_path / "kept" / "sounds").iterdir()) != []) == there, at


def test_copies_of_a_journal_go_when_words_would(tmp_path: Path) -> None:
    clock, wanted = Clock(), keep(tmp_path, text_days=2)
    for name in ("j.sqlite.broken-20260131T120000", "j.sqlite.schema-1", "mine.sqlite"):
        (tmp_path / name).write_text(WORD)
        os.utime(tmp_path / name, (NOON.timestamp(), NOON.timestamp()))
    clock.at += timedelta(days=1)
    Recorder(tmp_path / "j.sqlite", wanted, now=clock).close(10)
    assert len(list(tmp_path.iterdir())) == 3
    clock.at += timedelta(days=2)
    Recorder(tmp_path / "j.sqlite", wanted, now=clock).close(10)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.sqlite"]


@pytest.mark.parametrize("disk", ["takes turns", "refuses"])
def test_copies_of_a_journal_go_as_well_while_turns_come_and_while_they_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: str
) -> None:
    copy = tmp_path / "j.sqlite.broken-20260131T120000"
    copy.write_text(WORD)
    os.utime(copy, (NOON.timestamp(), NOON.timestamp()))
    if disk == "refuses":
        (tmp_path / "j.sqlite").mkdir()
    clock = Clock()

    def later() -> datetime:  # so long after each look that the queue is never empty for an hour
        clock.at += timedelta(hours=2)
        return clock.at

    def monotonic() -> float:
        return (clock.at - NOON).total_seconds()

    passed = SimpleNamespace(monotonic=monotonic, thread_time_ns=time.thread_time_ns)
    monkeypatch.setattr(module, "time", passed)
    recorder = Recorder(tmp_path / "j.sqlite", keep(tmp_path, text_days=1), now=later)
    record(recorder, *(turn(number) for number in range(12)))
    assert not copy.exists()


def test_a_broken_file_of_words_costs_no_timings_and_a_new_one_is_begun(tmp_path: Path) -> None:
    wanted = keep(tmp_path, text=True)
    assert wanted.texts is not None
    wanted.texts.parent.mkdir()
    wanted.texts.write_bytes(b"no database" * 999)
    recorder = Recorder(tmp_path / "j.sqlite", wanted, now=Clock())
    record(recorder, turn(1), turn(2))
    assert (recorder.unkept, recorder.written) == ({}, 2)
    assert [t["transcript"] for t in read_turns(tmp_path / "j.sqlite", limit=9, texts=wanted.texts)] == [
        WORD
    ] * 2
    (aside,) = wanted.texts.parent.glob("texts.sqlite.broken-*")
    assert aside.read_bytes() == b"no database" * 999
    assert list(tmp_path.glob("j.sqlite.broken-*")) == []
    clock = Clock()
    clock.at = datetime.now(UTC) + timedelta(days=31)
    Recorder(tmp_path / "j.sqlite", wanted, now=clock).close(10)
    assert list(wanted.texts.parent.iterdir()) == [wanted.texts]
    assert Texts(wanted.texts).count() == (0, None)


def test_what_is_set_later_counts_from_the_next_turn_on(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "j.sqlite", keep(tmp_path), now=Clock())
    recorder.record(turn(1), turn(1).as_json())
    while recorder.written < 1:
        threading.Event().wait(0.01)
    recorder.keep = keep(tmp_path, text=True, audit=tmp_path / "audit.jsonl")
    record(recorder, turn(2))
    turns = read_turns(tmp_path / "j.sqlite", limit=9, texts=recorder.keep.texts)
    assert [told["transcript"] for told in turns] == [WORD, None]
    assert (tmp_path / "audit.jsonl").read_text().count("\n") == 1
