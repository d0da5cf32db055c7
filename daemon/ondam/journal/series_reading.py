"""Reads of each turn what a series needs, and no more: ten thousand rows in a third of a second.

    python -m ondam.journal.series_reading JOURNAL JSON

prints the series as JSON. The daemon runs it as a process of its own, as it does a report: see
``journal.apart``.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ondam.errors import JournalError
from ondam.journal.figures import Figures, RowError, figures
from ondam.journal.reading import opened
from ondam.journal.series import series
from ondam.journal.steady import Steadiness

KEYS = (
    "started_at",
    "session",
    "outcome",
    "population",
    "settled",
    "conditions",
    "canned",
    "over_budget",
    "first_audio_ms",
    "answer_ms",
    "stages_ms",
    "engines",
)
MARKS = ("last_voiced", "llm_sent")
"""They say who spoke and who typed."""

WANTED = ",".join([*(f"'$.{key}'" for key in KEYS), *(f"'$.marks_ms.{mark}'" for mark in MARKS)])


def read_series(
    journal: Path,
    steadiness: Steadiness,
    *,
    since: datetime | None,
    until: datetime,
    offset: timedelta,
    plan: str | None,
    budget_ms: float,
    most: int,
) -> dict[str, Any]:
    """The series of a journal's newest ``most`` turns. Raises JournalError."""
    turns: list[Figures] = []
    facts: dict[str | None, Mapping[str, Any]] = {}
    skipped = 0
    try:
        if journal.exists() and journal.stat().st_size:
            with closing(opened(journal)) as connection:
                for row in _rows(connection, since, most):
                    try:
                        turn = figures(row)
                        datetime.fromisoformat(turn.started_at)
                        turns.append(turn)
                    except (RowError, ValueError):  # one row is no reason to show none
                        skipped += 1
                for name, told in connection.execute("SELECT name, facts FROM conditions"):
                    if isinstance(known := json.loads(told), dict):
                        facts[name] = known
    except (sqlite3.Error, OSError, ValueError) as error:
        raise JournalError("journal_unreadable", path=journal, reason=error) from error
    made = series(
        turns, facts, steadiness, since=since, until=until, offset=offset, plan=plan, budget_ms=budget_ms
    )
    return {**made, "skipped": skipped, "more": len(turns) + skipped >= most}


def _rows(connection: sqlite3.Connection, since: datetime | None, most: int) -> Iterator[object]:
    begin = "" if since is None else since.astimezone(UTC).isoformat(timespec="milliseconds")
    # SQLite takes apart what is wanted: Python would make objects of all the rest first.
    chosen = connection.execute(
        f"SELECT CASE WHEN json_valid(record) THEN json_extract(record, {WANTED}) END"
        " FROM turns WHERE started_at >= ? ORDER BY number DESC LIMIT ?",
        (begin, most),
    )
    for (record,) in chosen:
        values: Sequence[Any] = json.loads(record) if record else [None] * (len(KEYS) + len(MARKS))
        row = dict(zip(KEYS, values, strict=False))
        row["marks_ms"] = {
            mark: at for mark, at in zip(MARKS, values[len(KEYS) :], strict=True) if at is not None
        }
        # What is no turn has no time; figures() says so of everything else.
        yield row if row["started_at"] else None


def main(arguments: Sequence[str]) -> int:
    """Of a process of its own: JSON on stdout, an error as JSON with status 1."""
    gc.disable()  # nothing is thrown away before the end of it all
    journal, wanted = Path(arguments[0]), json.loads(arguments[1])
    now = datetime.now(UTC)
    try:
        made = read_series(
            journal,
            Steadiness(wanted["steady_turns"], wanted["steady_within"]),
            since=None if wanted["since"] is None else datetime.fromisoformat(wanted["since"]),
            until=now,
            offset=now.astimezone().utcoffset() or timedelta(),
            plan=wanted["plan"],
            budget_ms=wanted["budget_ms"],
            most=wanted["most"],
        )
    except JournalError as error:
        print(json.dumps({"error": {"text": str(error)}}))
        return 1
    print(json.dumps(made, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
