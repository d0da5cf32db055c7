"""Figures over time, worked out by hand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ondam.journal.figures import Figures, figures
from ondam.journal.marks import STAGES
from ondam.journal.recorder import SCHEMA
from ondam.journal.series import series
from ondam.journal.series_reading import read_series
from ondam.journal.steady import Steadiness

ANY = Steadiness(0, 0.1)
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)  # a Monday


def row(at: datetime, first_ms: float, **others: Any) -> dict[str, Any]:
    return {
        "started_at": at.isoformat(timespec="milliseconds"),
        "session": "s",
        "outcome": "answered",
        "population": "settled",
        "conditions": "a",
        "marks_ms": {"last_voiced": 0.0, "llm_sent": 1.0},
        "first_audio_ms": first_ms,
        "answer_ms": first_ms + 1000,
        "stages_ms": dict.fromkeys(STAGES, first_ms / 7),
        "over_budget": first_ms > 800,
        "engines": {"x": {"pid": 1, "started_at": "t"}},
        **others,
    }


def made(rows: Sequence[dict[str, Any]], **asked: Any) -> dict[str, Any]:
    turns: list[Figures] = [figures(one) for one in rows]
    settings: dict[str, Any] = {"since": None, "until": NOON, "offset": timedelta(), "budget_ms": 800.0}
    return series(turns, {}, ANY, **{**settings, **asked})


def test_turns_are_gathered_by_the_minute_when_they_span_an_hour() -> None:
    begin = NOON - timedelta(minutes=59)
    told = made(
        [
            row(begin, 500),
            row(begin + timedelta(seconds=20), 700),
            row(begin + timedelta(seconds=61), 900, population="cold"),
        ]
    )
    assert told["bucket_s"] == 60
    first, second = told["buckets"]
    assert first["at"] == "2026-01-05T11:01:00+00:00"
    assert first["populations"]["settled"]["first_audio_ms"] == {"n": 2, "p50": 600, "p90": 680, "p95": 690}
    assert set(second["populations"]) == {"cold"}
    assert second["populations"]["cold"]["stages_ms"]["stt"]["p50"] == round(900 / 7, 1)


def test_days_begin_at_local_midnight() -> None:
    seoul = timedelta(hours=9)
    late = datetime(2026, 1, 4, 14, 59, tzinfo=UTC)  # 23:59 there
    told = made(
        [row(NOON - timedelta(days=50), 500), row(late, 500), row(late + timedelta(minutes=2), 500)],
        since=NOON - timedelta(days=60),
        offset=seoul,
    )
    assert told["bucket_s"] == 86_400
    assert [bucket["at"] for bucket in told["buckets"]][1:] == [
        "2026-01-03T15:00:00+00:00",
        "2026-01-04T15:00:00+00:00",
    ]


def test_weeks_begin_on_monday() -> None:
    told = made(
        [row(NOON - timedelta(days=days), 500) for days in (380, 1, 0)], since=NOON - timedelta(days=400)
    )
    assert [bucket["at"][:10] for bucket in told["buckets"]][1:] == ["2025-12-29", "2026-01-05"]


def test_totals_and_histogram_are_of_the_newest_conditions_and_the_stretches_of_all() -> None:
    rows = [row(NOON - timedelta(minutes=5), 2000, conditions="old"), row(NOON, 500), row(NOON, 850)]
    told = made(rows)
    assert told["turns"] == 3 and told["chosen"] == "a"
    assert [one["name"] for one in told["conditions"]] == ["a", "old"]
    whole = told["populations"]["settled"]["first_audio_ms"]
    assert (whole["n"], whole["p50"], whole["over_budget"]) == (2, 675, 1)
    assert sum(told["histogram"]["counts"]["settled"]) == 2
    assert [bucket["conditions"] for bucket in told["buckets"]] == ["old", "a"]
    assert made(rows, plan="ol")["populations"]["settled"]["first_audio_ms"]["n"] == 1


def test_the_last_bin_holds_all_that_is_longer() -> None:
    told = made([*(row(NOON, 100.0 + n) for n in range(200)), row(NOON, 90_000)])
    histogram = told["histogram"]
    assert histogram["step_ms"] == 20
    assert histogram["counts"]["settled"][5] == 20
    assert histogram["counts"]["settled"][-1] == 1
    assert sum(histogram["counts"]["settled"]) == 201


def test_typed_questions_are_counted_and_in_no_distribution() -> None:
    told = made([row(NOON, 500), row(NOON, 40, marks_ms={"llm_sent": 0.0})])
    settled = told["populations"]["settled"]
    assert (settled["turns"], settled["first_audio_ms"]["n"]) == (2, 1)


def test_nothing_yet_is_an_empty_series() -> None:
    told = made([])
    assert (told["turns"], told["buckets"], told["chosen"]) == (0, [], None)
    assert told["populations"]["settled"]["first_audio_ms"]["p50"] is None


def read(journal: Path, **asked: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "since": None,
        "until": NOON,
        "offset": timedelta(),
        "plan": None,
        "budget_ms": 800.0,
        "most": 100,
    }
    return read_series(journal, ANY, **{**settings, **asked})


def test_what_is_read_from_a_journal_is_what_its_rows_say(tmp_path: Path) -> None:
    journal = tmp_path / "turns.sqlite"
    rows = [row(NOON - timedelta(minutes=n), 500 + n) for n in range(5)]
    records = [*map(json.dumps, rows), "no json", '{"started_at": 7}', "[]", '{"population": "odd"}']
    with closing(sqlite3.connect(journal)) as connection, connection:
        connection.executescript(SCHEMA)
        for number, record in enumerate(records):
            connection.execute(
                "INSERT INTO turns (session, turn, started_at, settled, record) VALUES ('s', ?, ?, 1, ?)",
                (number, NOON.isoformat(timespec="milliseconds"), record),
            )
    told = read(journal)
    expected = made(rows)
    assert told["skipped"] == 4
    assert {key: told[key] for key in expected} == expected
    assert not told["more"]
    assert read(journal, most=3)["more"]


def test_a_journal_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "none.sqlite")["turns"] == 0


def test_a_period_begins_when_somebody_spoke_first() -> None:
    told = made([row(NOON - timedelta(minutes=30), 500), row(NOON, 500)], since=NOON - timedelta(days=7))
    assert (told["bucket_s"], told["since"]) == (60, "2026-01-05T11:30:00+00:00")
