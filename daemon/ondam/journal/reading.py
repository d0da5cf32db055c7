"""Reads turns for a report: from the journal's file, or from one that somebody kept (JSON, JSON lines).

Rows are read one by one and only their figures are kept, so that a long journal takes about a kilobyte a
turn.
"""

from __future__ import annotations

import heapq
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from ondam.errors import JournalError
from ondam.journal.conditions import Conditions
from ondam.journal.figures import Figures, RowError, figures
from ondam.messages import Phrase

MOST = 20_000
"""Turns of a report where nobody says otherwise: weeks of talk, and about two seconds."""

LARGEST = 512 * 1024 * 1024
"""Bytes of a JSON file that has to be held as a whole; a turn is about two kilobytes. JSON lines have no
limit."""

LOCKED_S = 5.0
"""How long a file that somebody else has locked is waited for."""

MAGIC = b"SQLite format 3\x00"

OF_THE_MOMENT = frozenset(
    {"name", "load_average_1min", "power", "uptime_s", "daemon_rss_mib", "measuring_ms", "run"}
)
"""What ``status["conditions"]`` holds beside what stays the same; ``run`` is what ``ondam bench`` adds."""

EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
"""What is before or after all that a calendar holds."""

AGO = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which turns. ``session``: its whole name, or that of the daemon's run (the part before the dash).
    ``plan``: the beginning of the conditions' name. ``most``: of more than so many, the newest."""

    since: datetime | None = None
    until: datetime | None = None
    session: str | None = None
    plan: str | None = None
    most: int = MOST


@dataclass(slots=True)
class Read:
    """What was read. ``skipped``: rows of the journal that could not be; ``more``: older turns were left
    out."""

    turns: list[Figures] = field(default_factory=list)
    facts: dict[str | None, Mapping[str, Any]] = field(default_factory=dict)
    skipped: int = 0
    more: bool = False


def moment(text: str, now: datetime, *, end: bool = False) -> datetime:
    """``2h`` or ``7d`` ago (m, h, d, w), an ISO date, or an ISO date and time; local time where no offset
    is given.

    A date alone is its first moment, or with ``end`` its last. Beyond the calendar is its beginning or its
    end. Raises ValueError for anything else.
    """
    if ago := re.fullmatch(r"([0-9]{1,9})([mhdw])", text.strip()):
        try:
            return now - timedelta(**{AGO[ago[2]]: int(ago[1])})
        except OverflowError:
            return EARLIEST
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        return _utc(datetime.fromisoformat(text.strip()))
    try:
        return _utc(datetime.combine(day + timedelta(days=end), time()))
    except OverflowError:
        return LATEST


def _utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except (OverflowError, ValueError):  # in the first or the last year, a zone away from UTC
        return EARLIEST if at.year < LATEST.year else LATEST


def read(path: Path, selection: Selection) -> Read:
    """Turns of an SQLite journal, a JSON list, ``{"conditions", "turns"}`` as ``ondam bench --json``
    prints, or JSON lines. Raises JournalError: what is wrong, and where."""
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
        if not head and path.suffix == ".sqlite":
            return Read()  # as SQLite makes it: nothing has been written yet
        if head == MAGIC:
            return _from_sqlite(path, selection)
        return _from_json(path, selection)
    except FileNotFoundError as error:
        raise JournalError("journal_absent", path=path) from error
    except OSError as error:
        raise JournalError("journal_unreadable", path=path, reason=error.strerror or error) from error
    except UnicodeDecodeError as error:
        raise JournalError("journal_unreadable", path=path, reason=Phrase("reason_no_text")) from error


def _from_sqlite(path: Path, selection: Selection) -> Read:
    made = Read()
    try:
        with closing(opened(path)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if "turns" not in tables:
                raise JournalError("journal_unreadable", path=path, reason='no table "turns"')
            where, values = _where(selection)
            rows = connection.execute(
                f"SELECT record FROM turns {where} ORDER BY number DESC LIMIT ?",
                (*values, selection.most + 1),
            )
            for place, (record,) in enumerate(rows):
                if place == selection.most:
                    made.more = True
                    break
                try:
                    made.turns.append(figures(json.loads(record)))
                except (ValueError, TypeError, RecursionError):  # one row is no reason to show none
                    made.skipped += 1
            if "conditions" in tables:
                wanted = {turn.conditions for turn in made.turns}
                for name, facts in connection.execute("SELECT name, facts FROM conditions"):
                    if name in wanted and isinstance(told := json.loads(facts), dict):
                        made.facts[name] = told
    except (sqlite3.Error, ValueError) as error:
        raise JournalError("journal_unreadable", path=path, reason=error) from error
    return made


def newest(path: Path, most: int) -> list[Mapping[str, Any]]:
    """Rows of an SQLite journal as they were written, newest first; what is no JSON object is left out.
    Raises JournalError."""
    if not path.stat().st_size:
        return []  # as SQLite makes it: nothing has been written yet
    try:
        with closing(opened(path)) as connection:
            told = connection.execute("SELECT record FROM turns ORDER BY number DESC LIMIT ?", (most,))
            records = [record for (record,) in told]
    except (sqlite3.Error, OSError) as error:
        raise JournalError("journal_unreadable", path=path, reason=error) from error
    rows = []
    for record in records:
        with suppress(ValueError, TypeError, RecursionError):  # one row is no reason to show none
            rows.append(json.loads(record))
    return [row for row in rows if isinstance(row, dict)]


def opened(path: Path) -> sqlite3.Connection:
    """Read-only. SQLite wants to write beside a WAL file even then: where it may not, the file is taken as
    it is."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=LOCKED_S)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise  # somebody writes: as it is, it may be half of something
        if path.with_name(path.name + "-wal").exists():
            raise  # what is in there would be missing without a word
        return sqlite3.connect(f"{address}&immutable=1", uri=True)
    return connection


def _where(selection: Selection) -> tuple[str, list[object]]:
    tests: list[str] = []
    values: list[object] = []
    for column, bound in ((">=", selection.since), ("<", selection.until)):
        if bound is not None:
            tests.append(f"started_at {column} ?")
            values.append(bound.astimezone(UTC).isoformat(timespec="milliseconds"))
    if selection.session is not None:
        tests.append("(session = ? OR substr(session, 1, ?) = ?)")
        values += [selection.session, len(selection.session) + 1, selection.session + "-"]
    if selection.plan is not None:
        tests.append("substr(json_extract(record, '$.conditions'), 1, ?) = ?")
        values += [len(selection.plan), selection.plan]
    return (f"WHERE {' AND '.join(tests)}" if tests else ""), values


def _from_json(path: Path, selection: Selection) -> Read:
    with path.open(encoding="utf-8") as file:
        first = file.readline()
    if not first.strip() and path.stat().st_size == 0:
        raise JournalError("journal_unreadable", path=path, reason=Phrase("reason_empty"))
    made = Read()
    if _is_turn(first):
        rows = _lines(path)
    else:
        whole = _whole(path)
        rows = enumerate(_rows(path, whole, made), 1)
    chosen = (turn for turn in _figures(path, rows) if _wanted(turn, selection))
    newest = heapq.nlargest(
        selection.most + 1, enumerate(chosen), key=lambda numbered: (numbered[1].started_at, numbered[0])
    )
    made.more = len(newest) > selection.most
    made.turns = [turn for _, turn in newest[: selection.most]]
    return made


def _is_turn(line: str) -> bool:
    """Whether a line is a whole JSON object, and no run with its turns inside."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "turns" not in value


def _lines(path: Path) -> Iterator[tuple[int, object]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise JournalError("journal_row_broken", path=path, row=number, reason=error) from error


def _whole(path: Path) -> object:
    if path.stat().st_size > LARGEST:
        raise JournalError("journal_unreadable", path=path, reason=f"over {LARGEST // 2**20} MiB")
    try:
        return json.loads(path.read_text("utf-8"))
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise JournalError(
            "journal_unreadable", path=path, reason=Phrase("reason_no_json", detail=error)
        ) from error


def _rows(path: Path, whole: object, made: Read) -> Iterable[object]:
    """The rows of a list or of a run; what the run says of its conditions goes to ``made``."""
    if isinstance(whole, list):
        return whole
    if not isinstance(whole, dict) or not isinstance(rows := whole.get("turns"), list):
        raise JournalError("journal_unreadable", path=path, reason='no list and no {"conditions", "turns"}')
    told = whole.get("conditions")
    if not isinstance(told, dict):
        return rows
    name = told.get("name")
    facts = {key: value for key, value in told.items() if key not in OF_THE_MOMENT}
    made.facts |= {None: facts, name if isinstance(name, str) else None: facts}
    against = whole.get("against")
    if isinstance(against, dict) and isinstance(others := against.get("turns"), list):
        if isinstance(own := against.get("conditions"), dict) and isinstance(own.get("name"), str):
            made.facts[own["name"]] = {key: value for key, value in own.items() if key not in OF_THE_MOMENT}
            return [*rows, *others]
        settings = against.get("settings")
        laid = _over(facts, settings if isinstance(settings, dict) else {})
        other = Conditions.of(laid).name
        made.facts[other] = laid
        return [*rows, *({**row, "conditions": other} if isinstance(row, dict) else row for row in others)]
    return rows


def _over(facts: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    laid = dict(facts)
    for key, value in settings.items():
        known = laid.get(key)
        laid[key] = _over(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return laid


def _figures(path: Path, rows: Iterable[tuple[int, object]]) -> Iterator[Figures]:
    for number, row in rows:
        try:
            yield figures(row)
        except RowError as error:
            raise JournalError("journal_row_broken", path=path, row=number, reason=error) from error


def _wanted(turn: Figures, selection: Selection) -> bool:
    if selection.session is not None and selection.session not in (turn.session, turn.session.split("-")[0]):
        return False
    if selection.plan is not None and not (turn.conditions or "").startswith(selection.plan):
        return False
    if selection.since is None and selection.until is None:
        return True
    try:
        at = datetime.fromisoformat(turn.started_at).astimezone(UTC)
    except ValueError:
        return False
    return (selection.since is None or at >= selection.since) and (
        selection.until is None or at < selection.until
    )


def chosen(selection: Selection, plan: str) -> Selection:
    """The same turns of another plan."""
    return replace(selection, plan=plan)
