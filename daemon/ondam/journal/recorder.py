"""Writes turns to SQLite, off the turn's path: one writer thread, a bounded queue, WAL.

A row holds the turn's figures as JSON beside the columns that reports filter by: no text and no audio, ever.
Where the user wants those kept they go into files of their own (``texts``, ``sounds``), and so does the line
for auditors (``audit``).
"""

from __future__ import annotations

import json
import logging
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ondam.journal.audit import AuditLog
from ondam.journal.keep import Keep
from ondam.journal.sounds import Sounds
from ondam.journal.texts import TEXT_KEYS, Texts, moment, private_file, written_at
from ondam.journal.turn import Turn

log = logging.getLogger(__name__)

SCHEMA_VERSION = 2
"""2: conditions."""
WORDLESS = 0x4F6E646D
"""``PRAGMA application_id`` of a journal known to hold no words: an older Ondam may have kept some."""
ASIDE = (".broken-*", ".schema-*")
"""What copies of the journal end in: put aside because it was broken, or as an earlier version had it."""

BESIDE = ("audit", "text", "audio")
"""What may be kept in other files than the journal."""

EXPIRE_EVERY_S = 3600.0
"""How often it is looked for what has been kept long enough, whether turns come, wait or neither."""

LOCKED_S = 0.5
"""How long another program's lock is waited for before the next try."""

RETRY_S = 5.0
"""A disk that had no room, or a file that somebody else held, is tried again so much later."""

QUEUE_LIMIT = 256
"""Turns waiting to be written. A turn takes seconds, a row a millisecond: full means a hanging disk. As many
more wait for one that refuses."""
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

    def __init__(
        self, path: Path, keep: Keep, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """``now`` decides what is old; it is asked with every turn, and every hour."""
        self._path = path
        self._now = now
        self.keep = keep
        self.unkept: dict[str, tuple[Path | None, str]] = {}
        """Of ``BESIDE`` what could not be kept of the last turn though it is wanted: where, and why."""
        self._queue: queue.Queue[Turn | None] = queue.Queue(QUEUE_LIMIT)
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._waiting: deque[Turn] = deque()
        """Could not be written yet, the oldest first. The writer's own."""
        self.trouble = ""
        """Why turns wait to be written; empty when none does."""
        self.aside: Path | None = None
        """What this daemon last put aside, because it was broken."""
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

    @property
    def waiting(self) -> int:
        """Turns that will be written when that is possible again."""
        return len(self._waiting)

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

    @property
    def keep(self) -> Keep:
        """What is kept, and for how long all of it is. What is set counts from the next turn on."""
        return self._keep

    @keep.setter
    def keep(self, keep: Keep) -> None:
        self._texts = None if keep.texts is None else Texts(keep.texts)
        self._sounds = None if keep.sounds is None else Sounds(keep.sounds, most_bytes=keep.audio_bytes)
        self._audit = (
            None
            if keep.audit is None
            else AuditLog(keep.audit, most_bytes=keep.audit_bytes, files=keep.audit_files)
        )
        self._keep = keep

    def close(self, timeout_s: float = 1.0) -> None:
        """Write what is queued and end; gives up after ``timeout_s``: a hanging disk must not hold a stop."""
        try:
            self._queue.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _write_all(self) -> None:
        expire_at = time.monotonic()
        while True:
            if time.monotonic() >= expire_at:
                self._expire()
                expire_at = time.monotonic() + EXPIRE_EVERY_S
            left_s = max(0.0, expire_at - time.monotonic())
            try:
                turn = self._queue.get(timeout=min(left_s, RETRY_S) if self._waiting else left_s)
            except queue.Empty:
                self._catch_up()
                continue
            if turn is None:
                self._catch_up()
                self._failed += len(self._waiting)
                return
            self._keep_beside(turn)
            turn.sound = None
            self._waiting.append(turn)
            if len(self._waiting) > QUEUE_LIMIT:
                self._waiting.popleft()
                self._failed += 1
            self._catch_up()

    def _catch_up(self) -> None:
        """Write what waits, in its order. Where that cannot be done now the conversation goes on without."""
        while self._waiting:
            try:
                self._written(self._waiting[0])
                self.written += 1
                self.cpu_ns = time.thread_time_ns()
            except (sqlite3.Error, OSError) as error:
                if not self.trouble:
                    log.warning("journal: turns wait to be written: %s", error)
                self.trouble = str(error)
                return
            except Exception:
                # A fault of ours costs this row, not the thread and with it every later one.
                self._failed += 1
                log.exception("journal: a turn was not written")
            self._waiting.popleft()
        if self.trouble:
            log.info("journal: all turns are written")
            self.trouble = ""

    def _keep_beside(self, turn: Turn) -> None:
        """What goes into other files than the journal. A failure of one is told, and costs nothing else."""
        keep = self.keep
        work: list[tuple[str, Path | None, Callable[[], None]]] = []
        if self._audit is not None:
            work.append(("audit", keep.audit, partial(self._audit.add, turn)))
        if self._texts is not None and keep.text:
            work.append(("text", keep.texts, partial(self._texts.add, [turn.as_json()])))
        if self._sounds is not None and keep.audio:
            work.append(("audio", keep.sounds, partial(self._sounds.add, turn)))
        for what, path, write in work:
            try:
                write()
                self.unkept.pop(what, None)
            except (sqlite3.Error, OSError) as error:
                self.unkept[what] = path, getattr(error, "strerror", None) or type(error).__name__
                log.warning("%s: nothing is kept of a turn: %s", what, error)
            except Exception:
                # The row itself is written; what is kept beside it must not end the thread.
                self.unkept[what] = path, "?"
                log.exception("%s: nothing is kept of a turn", what)
        self._expire_beside()

    def _expire(self) -> None:
        """Delete what has been kept long enough, also of what is kept no more. Failing, it is tried again."""
        now, keep = self._now(), self.keep
        with _tried_again():
            if self._path.exists():
                with _connection(self._path, self._texts) as connection:
                    _delete_before(connection, moment(now - _days(keep.days, now)))
        with _tried_again():  # copies go also while the journal itself cannot be written
            oldest = now - _days(min(keep.text_days, keep.days), now)
            for ending in ASIDE:  # nobody knows what is in them
                for path in self._path.parent.glob(self._path.name + ending):
                    if written_at(path, now) < oldest:
                        path.unlink(missing_ok=True)
        self._expire_beside()

    def _expire_beside(self) -> None:
        now, keep = self._now(), self.keep
        with _tried_again():
            if self._texts is not None:
                self._texts.forget_before(now - _days(keep.text_days, now), now)
        with _tried_again():
            if self._sounds is not None:
                self._sounds.forget_before(now - _days(keep.audio_days, now), now)

    def _written(self, turn: Turn) -> None:
        try:
            with _connection(self._path, self._texts) as connection:
                self._write(connection, turn)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) not in BROKEN:
                raise
            self.aside = _put_aside(self._path)
            log.error("journal: %s is broken (%s); kept as %s", self._path, error, self.aside)
            with _connection(self._path, self._texts) as connection:
                self._write(connection, turn)

    def _write(self, connection: sqlite3.Connection, turn: Turn) -> None:
        row = turn.as_json(text=False)
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
        now = self._now()
        _delete_before(connection, moment(now - _days(self.keep.days, now)))


@contextmanager
def _tried_again() -> Iterator[None]:
    """What cannot be deleted now is told, and costs no turn: the next look tries again."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if getattr(error, "sqlite_errorcode", None) not in BROKEN:  # the next turn puts that aside
            log.warning("what is too old was not deleted: %s", error)
    except Exception:
        # A fault of ours must not end the thread that writes.
        log.exception("what is too old was not deleted")


def _days(days: int, now: datetime) -> timedelta:
    """``days``, or less: no further back than there are dates."""
    return min(timedelta(days=days), now - datetime.min.replace(tzinfo=UTC))


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
def _connection(path: Path, texts: Texts | None = None) -> Iterator[sqlite3.Connection]:
    """``texts``: where words go that an older Ondam wrote into the journal."""
    private_file(path)
    with closing(sqlite3.connect(path, timeout=LOCKED_S)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version < SCHEMA_VERSION:
            connection.executescript(SCHEMA)
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        if connection.execute("PRAGMA application_id").fetchone()[0] != WORDLESS:
            _move_texts(connection, texts)
            connection.execute(f"PRAGMA application_id={WORDLESS}")
        with connection:
            yield connection


def _move_texts(connection: sqlite3.Connection, texts: Texts | None) -> None:
    """Words of turns, out of the journal and, where there is a place for them, into theirs.

    Nothing of them is left in the file, free pages and write-ahead log included. Broken off, it begins anew.
    """
    rows = []
    for number, record in connection.execute("SELECT number, record FROM turns").fetchall():
        with suppress(ValueError, TypeError):  # a broken row is not readable either
            row = json.loads(record)
            if isinstance(row, dict) and any(row.get(key) for key in TEXT_KEYS):
                rows.append((number, row))
    if not rows:
        return
    if texts is not None:
        texts.add([row for _, row in rows])
    connection.execute("PRAGMA secure_delete=ON")
    for number, row in rows:
        silent = {**row, "transcript": None, "reply": None}
        silent.pop("slots", None)
        connection.execute(
            "UPDATE turns SET record = ? WHERE number = ?", (json.dumps(silent, ensure_ascii=False), number)
        )
    connection.commit()
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log.info("moved the words of %d turns out of the journal", len(rows))


def _put_aside(path: Path) -> Path:
    """Rename the file and what SQLite keeps beside it; its new name. A new one can then be begun."""
    kept = path.with_name(f"{path.name}.broken-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    # Its log first: were it left, SQLite would play it into the new file.
    for ending in ("-wal", "-shm", ""):
        beside = path.with_name(path.name + ending)
        if beside.exists():
            beside.replace(kept.with_name(kept.name + ending))
    return kept


def read_turns(
    path: Path, *, limit: int, since: datetime | None = None, texts: Path | None = None
) -> list[dict[str, Any]]:
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
    if texts is not None:
        Texts(texts).of([turn for turn in turns if "started_at" in turn])
    return turns
