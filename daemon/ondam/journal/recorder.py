"""Writes turns to SQLite, off the turn's path: one writer thread, a bounded queue, WAL.

A row holds the turn's figures as JSON beside the columns that reports filter by. No text and no audio unless
``journal.keep_text`` says so.
"""

from __future__ import annotations

import json
import logging
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ondam.journal.turn import Turn

log = logging.getLogger(__name__)

SCHEMA_VERSION = 2
QUEUE_LIMIT = 256
"""Turns waiting to be written. A turn takes seconds, a row a millisecond: full means a hanging disk."""
RECENT = 64
"""Turns kept in memory for ``ondam turns`` with their text, which the file may not hold."""

BROKEN = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
"""What SQLite says of a file that no retry will mend."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS turns (
  number INTEGER PRIMARY KEY,
  session TEXT NOT NULL,
  turn INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  outcome TEXT,
  settled INTEGER NOT NULL,
  first_audio_ms REAL,
  answer_ms REAL,
  record TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS conditions (
  name TEXT PRIMARY KEY,
  facts TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS turns_started_at ON turns (started_at);
"""


class Recorder:
    """The journal's writer. ``record`` never waits; ``close`` writes what is queued."""

    def __init__(self, path: Path, *, keep_text: bool, keep_days: int) -> None:
        self._path = path
        self._keep_text = keep_text
        self._keep_days = keep_days
        self._queue: queue.Queue[Turn | None] = queue.Queue(QUEUE_LIMIT)
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._refused = 0
        self._failed = 0
        self.written = 0
        self.cpu_ns = 0
        """Processor time of the thread that writes, for all turns so far."""
        self._thread = threading.Thread(target=self._write_all, name="journal", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Turns that could not be written; shown in the status (``journal_turns_lost``)."""
        return self._refused + self._failed  # one thread counts each, so that no count is lost

    def record(self, turn: Turn, shown: dict[str, Any]) -> None:
        """Remember a finished turn; ``shown`` is its ``as_json``. Called from the event loop."""
        self._recent.append(shown)
        try:
            self._queue.put_nowait(turn)
        except queue.Full:
            self._refused += 1

    def recent(self, limit: int) -> list[dict[str, Any]]:
        """The last turns of this daemon, newest first, with their text."""
        return list(self._recent)[::-1][:limit]

    def close(self, timeout_s: float = 1.0) -> None:
        """Write what is queued and end; gives up after ``timeout_s``: a hanging disk must not hold a stop."""
        try:
            self._queue.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _write_all(self) -> None:
        while (turn := self._queue.get()) is not None:
            try:
                self._written(turn)
                self.written += 1
                self.cpu_ns = time.thread_time_ns()
            except (sqlite3.Error, OSError) as error:
                # The conversation goes on without its diary; the count of lost rows is shown.
                self._failed += 1
                log.warning("journal: a turn was not written: %s", error)
            except Exception:
                # A fault of ours costs this row, not the thread and with it every later one.
                self._failed += 1
                log.exception("journal: a turn was not written")

    def _written(self, turn: Turn) -> None:
        try:
            with _connection(self._path) as connection:
                self._write(connection, turn)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) not in BROKEN:
                raise
            log.error("journal: %s is broken (%s); kept as %s", self._path, error, _put_aside(self._path))
            with _connection(self._path) as connection:
                self._write(connection, turn)

    def _write(self, connection: sqlite3.Connection, turn: Turn) -> None:
        row = turn.as_json(text=self._keep_text)
        connection.execute(
            "INSERT INTO turns"
            " (session, turn, started_at, outcome, settled, first_audio_ms, answer_ms, record)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                turn.session,
                int(turn.id),
                row["started_at"],
                turn.outcome,
                int(turn.settled),
                row["first_audio_ms"],
                row["answer_ms"],
                json.dumps(row, ensure_ascii=False),
            ),
        )
        if turn.conditions is not None:
            facts = json.dumps(turn.conditions.facts, ensure_ascii=False, sort_keys=True)
            connection.execute(
                "INSERT OR IGNORE INTO conditions (name, facts) VALUES (?, ?)", (turn.conditions.name, facts)
            )
        oldest = turn.started_at - timedelta(days=self._keep_days)
        _delete_before(connection, oldest.isoformat(timespec="milliseconds"))


def _delete_before(connection: sqlite3.Connection, oldest: str) -> None:
    """Turns older than that, and their conditions where no other turn was made under them."""
    gone = [row[0] for row in connection.execute("SELECT record FROM turns WHERE started_at < ?", (oldest,))]
    if not gone:
        return
    connection.execute("DELETE FROM turns WHERE started_at < ?", (oldest,))
    for name in filter(None, set(map(_conditions_of, gone))):
        # As the text has it: JSON of a broken row would end the query. A name that is in use is found in the
        # next rows; only the last turn of a name costs a whole reading, once.
        told = json.dumps({"conditions": name}, ensure_ascii=False)[1:-1]
        used = connection.execute("SELECT 1 FROM turns WHERE instr(record, ?) LIMIT 1", (told,)).fetchone()
        if used is None:
            connection.execute("DELETE FROM conditions WHERE name = ?", (name,))


def _conditions_of(record: str) -> str | None:
    try:
        name = json.loads(record)["conditions"]
    except (ValueError, TypeError, LookupError):
        return None
    return name if isinstance(name, str) else None


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(sqlite3.connect(path, timeout=5.0)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version < SCHEMA_VERSION:
            connection.executescript(SCHEMA)
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        with connection:
            yield connection


def _put_aside(path: Path) -> Path:
    """Rename the file and what SQLite keeps beside it; its new name. A new one can then be begun."""
    kept = path.with_name(f"{path.name}.broken-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    # Its log first: were it left, SQLite would play it into the new file.
    for ending in ("-wal", "-shm", ""):
        beside = path.with_name(path.name + ending)
        if beside.exists():
            beside.replace(kept.with_name(kept.name + ending))
    return kept


def read_turns(path: Path, *, limit: int, since: datetime | None = None) -> list[dict[str, Any]]:
    """Turns from the file, newest first, as ``Turn.as_json`` made them; none before the first was written.

    None of a file that cannot be read either: the log says so, and the writer puts a broken one aside.
    """
    if not path.exists():
        return []
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=5.0)) as connection:
            rows = connection.execute(
                "SELECT record FROM turns WHERE started_at >= ? ORDER BY number DESC LIMIT ?",
                (since.isoformat(timespec="milliseconds") if since else "", limit),
            ).fetchall()
    except sqlite3.Error as error:
        log.warning("journal: %s cannot be read: %s", path, error)
        return []
    turns = []
    for (record,) in rows:
        with suppress(ValueError, TypeError):  # one row is no reason to show none
            turns.append(json.loads(record))
    return turns
