"""Takes over a journal that an earlier Ondam wrote. See ``migrate``."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from ondam.deploy.migrate import Steps
from ondam.errors import MigrationError
from ondam.journal.recorder import SCHEMA, SCHEMA_VERSION

log = logging.getLogger(__name__)


def _tables(journal: sqlite3.Connection) -> None:
    """1 had no table of conditions: tables are made where they are missing, rows stay as they are."""
    # Not ``executescript``: that commits what is under way first.
    for statement in filter(str.strip, SCHEMA.split(";")):
        journal.execute(statement)


JOURNAL: Steps[sqlite3.Connection] = Steps(newest=SCHEMA_VERSION, steps={0: _tables, 1: _tables})
"""0 is what SQLite says of a file that nobody stamped: one that was begun and holds nothing yet."""


def migrate_journal(path: Path, steps: Steps[sqlite3.Connection] | None = None) -> Path | None:
    """Make the journal what today's Ondam writes; the copy of how it was, or None where there was nothing to
    do. Raises MigrationError for one of a later Ondam: its rows would be read wrongly, and it is not touched.

    One that is broken or locked is left to the writer, which says so and begins a new one.
    """
    steps = steps or JOURNAL
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        with closing(sqlite3.connect(path, timeout=5.0, isolation_level=None)) as connection:
            found = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if found > steps.newest:
                raise MigrationError("journal_newer", path=path, found=found, known=steps.newest)
            if found == steps.newest:
                return None
            kept = path.with_name(f"{path.name}.schema-{found}")
            _copied(connection, kept)
            connection.execute("BEGIN IMMEDIATE")
            try:
                steps.apply(found, connection)
                connection.execute(f"PRAGMA user_version={steps.newest}")
                connection.execute("COMMIT")
            except BaseException:  # whatever ended it, the file is as it was
                connection.execute("ROLLBACK")
                raise
            return kept
    except sqlite3.DatabaseError as error:
        log.warning("journal: %s is left as it is: %s", path, error)
        return None  # its writer moves it aside, or waits for whoever has it


def _copied(connection: sqlite3.Connection, kept: Path) -> None:
    """A whole copy, what is still in the write-ahead log included."""
    fresh = kept.with_name(f"{kept.name}.new")
    fresh.unlink(missing_ok=True)  # what was broken off is no file that SQLite could go on in
    fresh.touch(mode=0o600)
    with closing(sqlite3.connect(fresh)) as copy_of:
        connection.backup(copy_of)
    fresh.replace(kept)
