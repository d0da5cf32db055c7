"""What turns come to over time, for plots: percentiles per stretch of time, and a histogram. Pure.

Made from the same populations as a report, so that both say the same of the same turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ondam.journal.figures import Figures
from ondam.journal.marks import STAGES
from ondam.journal.report import ORDER, Group, population, report
from ondam.journal.steady import Steadiness

BUCKETS_S = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400)
"""Lengths of a stretch of time that people think in."""

MOST_BUCKETS = 60
"""As many as can be told apart on a phone."""

STEPS_MS = (10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10_000, 20_000)

MOST_BINS = 30

KEPT = ("n", "p50", "p90", "p95")
"""Of a distribution, in a stretch of time."""


def series(
    turns: Iterable[Figures],
    facts: Mapping[str | None, Mapping[str, Any]],
    steadiness: Steadiness,
    *,
    since: datetime | None,
    until: datetime,
    offset: timedelta,
    plan: str | None = None,
    budget_ms: float,
) -> dict[str, Any]:
    """Of ``turns`` in any order, those of one set of conditions: the newest, or that whose name begins with
    ``plan``. The stretches of time hold all of them; ``conditions`` of a stretch are those of its last turn.

    ``offset``: of local time from UTC, so that days begin at midnight.
    """
    groups = report(turns, facts, steadiness).groups
    chosen = next((g for g in groups if plan is None or (g.conditions or "").startswith(plan)), None)
    every = sorted((turn for group in groups for turn in group.turns), key=lambda turn: turn.started_at)
    # Of a week in which nobody spoke before today, today is enough.
    begin = max(_at(every[0]), since or _at(every[0])) if every else (since or until)
    length_s = _length_s((until - begin).total_seconds())
    kinds: dict[str, set[int]] = {name: _of(groups, name) for name in ORDER}
    return {
        "turns": len(every),
        "since": begin.isoformat(timespec="seconds"),
        "until": until.isoformat(timespec="seconds"),
        "bucket_s": length_s,
        "budget_ms": budget_ms,
        "conditions": [
            {
                "name": group.conditions,
                "turns": len(group.turns),
                "oldest": group.turns[0].started_at,
                "newest": group.turns[-1].started_at,
            }
            for group in groups
        ],
        "chosen": chosen.conditions if chosen else None,
        "drifting": chosen.drifting if chosen else 0,
        "populations": {
            name: _whole(chosen.populations[name] if chosen else (), budget_ms) for name in ORDER
        },
        "buckets": _buckets(every, kinds, length_s, offset),
        "histogram": _histogram(chosen),
    }


def _of(groups: Sequence[Group], name: Any) -> set[int]:
    return {id(turn) for group in groups for turn in group.populations[name]}


def _whole(turns: Sequence[Figures], budget_ms: float) -> dict[str, Any]:
    made = population(turns, budget_ms)
    return {key: made[key] for key in ("turns", "answered", "first_audio_ms", "answer_ms", "stages_ms")}


def _buckets(
    turns: Sequence[Figures], kinds: Mapping[str, set[int]], length_s: int, offset: timedelta
) -> list[dict[str, Any]]:
    """Those in which somebody spoke, the oldest first."""
    by_time: dict[int, list[Figures]] = {}
    for turn in turns:
        local = _at(turn).timestamp() + offset.total_seconds()
        # A week begins on Monday; the first of January 1970 was a Thursday.
        shift = 3 * 86_400 if length_s == 7 * 86_400 else 0
        by_time.setdefault(int((local + shift) // length_s) * length_s - shift, []).append(turn)
    made = []
    for begin, members in sorted(by_time.items()):
        at = datetime.fromtimestamp(begin - offset.total_seconds(), UTC)
        apart = {name: [turn for turn in members if id(turn) in ids] for name, ids in kinds.items()}
        made.append(
            {
                "at": at.isoformat(timespec="seconds"),
                "conditions": members[-1].conditions,
                "populations": {name: _figures(some) for name, some in apart.items() if some},
            }
        )
    return made


def _figures(turns: Sequence[Figures]) -> dict[str, Any]:
    spoken = [turn for turn in turns if turn.answered and not turn.typed]
    return {
        "turns": len(turns),
        "first_audio_ms": _few(turn.first_audio_ms for turn in spoken),
        "answer_ms": _few(turn.answer_ms for turn in spoken),
        "stages_ms": {
            stage: _few(turn.stages_ms[place] for turn in spoken) for place, stage in enumerate(STAGES)
        },
    }


def _few(values: Iterable[float | None]) -> dict[str, float | int | None]:
    """As ``distribution`` has it, without numpy's cost for each of hundreds of small ones."""
    known = sorted(value for value in values if value is not None)
    made: dict[str, float | int | None] = {"n": len(known)}
    for percent in (50, 90, 95):
        made[f"p{percent}"] = round(_between(known, percent / 100), 1) if known else None
    return made


def _between(known: Sequence[float], share: float) -> float:
    place = share * (len(known) - 1)
    low = int(place)
    high = min(low + 1, len(known) - 1)
    return known[low] + (known[high] - known[low]) * (place - low)


def _histogram(group: Group | None) -> dict[str, Any]:
    """First audio of the spoken turns. The last bin holds everything from there on."""
    firsts = {
        name: [
            turn.first_audio_ms
            for turn in (group.populations[name] if group else ())
            if turn.answered and not turn.typed and turn.first_audio_ms is not None
        ]
        for name in ORDER
    }
    known = sorted(value for values in firsts.values() for value in values)
    most = _between(known, 0.99) if known else 0.0
    step = next((step for step in STEPS_MS if most < step * (MOST_BINS - 1)), STEPS_MS[-1])
    bins = min(MOST_BINS, int(most // step) + 2)
    counts = {name: [0] * bins for name in ORDER}
    for name, values in firsts.items():
        for value in values:
            counts[name][min(bins - 1, max(0, int(value // step)))] += 1
    return {"step_ms": step, "counts": counts}


def _length_s(seconds: float) -> int:
    return next((length for length in BUCKETS_S if seconds <= length * MOST_BUCKETS), BUCKETS_S[-1])


def _at(turn: Figures) -> datetime:
    return datetime.fromisoformat(turn.started_at)
