"""What was said and answered, where the user wants it kept: in a file of its own, and not for ever.

``journal.sqlite`` never holds any of it. Rows that an older Ondam wrote there are moved here.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BROKEN = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
"""What SQLite says of a file that no retry will mend."""

TEXT_KEYS = ("transcript", "reply", "slots")
"""What of a turn's JSON is text."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS texts (
  session TEXT NOT NULL,
  turn INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  transcript TEXT,
  reply TEXT,
  slots TEXT,
  PRIMARY KEY (session, turn, started_at)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS texts_started_at ON texts (started_at);
CREATE TABLE IF NOT EXISTS ahead (
  session TEXT NOT NULL,
  turn INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  seen TEXT NOT NULL,
  PRIMARY KEY (session, turn, started_at)
) WITHOUT ROWID;
"""
"""``ahead``: texts of days that have yet to come, and when they were first seen so."""

AHEAD = timedelta(days=1)
"""Dated further ahead than this, something was kept while the clock was wrong: its days count from when it is
first seen. Not deleted at once: it may be today's clock that is wrong."""

EXPIRED = """
DELETE FROM ahead WHERE started_at <= :soon;
UPDATE ahead SET seen = :now WHERE seen > :soon;
INSERT OR IGNORE INTO ahead SELECT session, turn, started_at, :now FROM texts WHERE started_at > :soon;
DELETE FROM texts WHERE started_at < :oldest OR (session, turn, started_at) IN
  (SELECT session, turn, started_at FROM ahead WHERE seen < :oldest);
DELETE FROM ahead WHERE seen < :oldest
"""


class Texts:
    """The file of texts. Made when the first is kept; every call opens and closes it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, turns: Sequence[Mapping[str, Any]]) -> None:
        """Keep the texts of ``turns`` (``Turn.as_json``). Those without any are left out.

        Raises sqlite3.Error or OSError.
        """
        rows = [
            (
                turn["session"],
                turn["id"],
                turn["started_at"],
                turn.get("transcript"),
                turn.get("reply"),
                None if turn.get("slots") is None else json.dumps(turn["slots"], ensure_ascii=False),
            )
            for turn in turns
            if any(turn.get(key) for key in TEXT_KEYS)
        ]
        if not rows:
            return
        private_file(self.path)
        with self._connection() as connection:
            connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?, ?, ?)", rows)

    def forget_before(self, oldest: datetime, now: datetime) -> int:
        """Delete what is older than ``oldest``, broken files that were put aside too; how many turns it was.

        Raises sqlite3.Error or OSError.
        """
        for aside in self.path.parent.glob(f"{self.path.name}.broken-*"):
            if written_at(aside, now) < oldest:
                aside.unlink(missing_ok=True)
        if not self.path.exists():
            return 0
        with self._connection() as connection:
            given = {"oldest": moment(oldest), "now": moment(now), "soon": moment(now + AHEAD)}
            before = connection.execute("SELECT count(*) FROM texts").fetchone()[0]
            for statement in EXPIRED.split(";"):
                connection.execute(statement, given)
            return int(before - connection.execute("SELECT count(*) FROM texts").fetchone()[0])

    def of(self, turns: Sequence[dict[str, Any]]) -> None:
        """Put the texts of ``turns`` (``Turn.as_json``) into them, where they are kept.

        A file that cannot be read adds nothing: the timings are shown without it.
        """
        if not turns or not self.path.exists():
            return
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        oldest, newest = (pick(str(turn["started_at"]) for turn in turns) for pick in (min, max))
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=5.0)) as connection:
                found = connection.execute(
                    "SELECT session, turn, transcript, reply, slots FROM texts"
                    " WHERE started_at BETWEEN ? AND ?",
                    (oldest, newest),
                ).fetchall()
        except sqlite3.Error:
            return
        by_turn = {(session, number): rest for session, number, *rest in found}
        for turn in turns:
            kept = by_turn.get((turn.get("session"), turn.get("id")))
            if kept is None:
                continue
            turn["transcript"], turn["reply"] = kept[:2]
            if kept[2] is not None:
                turn["slots"] = json.loads(kept[2])

    def count(self) -> tuple[int, str | None]:
        """How many turns it holds, and when the oldest was. Raises sqlite3.Error."""
        if not self.path.exists():
            return 0, None
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=5.0)) as connection:
            count, oldest = connection.execute("SELECT count(*), min(started_at) FROM texts").fetchone()
        return int(count), oldest

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Of a broken file a new one is begun; it is kept beside it for as long as words are."""
        try:
            opened = self._opened()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) not in BROKEN:
                raise
            self.path.replace(self.path.with_name(f"{self.path.name}.broken-{time.time_ns()}"))
            private_file(self.path)
            opened = self._opened()
        with closing(opened) as connection, connection:
            yield connection

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=5.0)
        try:
            # No write-ahead log: it would go on holding what is deleted. What is deleted is overwritten.
            connection.execute("PRAGMA secure_delete=ON")
            connection.executescript(SCHEMA)
        except BaseException:  # the connection has no other owner yet
            connection.close()
            raise
        return connection


def moment(at: datetime) -> str:
    """``at`` as turns have it, so that texts compare as times do."""
    return at.isoformat(timespec="milliseconds")


def written_at(path: Path, now: datetime) -> datetime:
    """When a file was written. What says that it will be is taken to be written now, and says so from now on.

    Raises OSError.
    """
    at = path.stat().st_mtime
    if at > (now + AHEAD).timestamp():
        at = now.timestamp()
        os.utime(path, (at, at))
    return datetime.fromtimestamp(at, UTC)


def private_file(path: Path) -> None:
    """Make ``path`` an empty file that its owner alone may read, where there is none yet."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A pipe that nobody reads is refused, and not waited for.
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
