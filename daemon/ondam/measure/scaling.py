"""Where more conversations at once stop being worth it, and what waits where. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

WORTH = 0.1
"""A step whose throughput grows by less than this part of what its sessions grew by is no gain: twice the
sessions must give a tenth more turns."""

Door: TypeAlias = Literal["stt", "llm", "tts"]

DOORS: Mapping[Door, tuple[str, str, str]] = {
    "stt": ("stt_sent", "stt_final", "stt"),
    "llm": ("llm_sent", "llm_first_token", "llm_first_token"),
    "tts": ("tts_sent", "tts_first_audio", "tts_first_audio"),
}
"""Marks of a request and of its first answer, and the engine's own time between them."""

Reason: TypeAlias = Literal["failed", "over_budget", "throughput"]


@dataclass(frozen=True, slots=True)
class Load:
    """What one number of sessions came to."""

    sessions: int
    turns_per_min: float | None
    first_audio_p50_ms: float | None
    first_audio_p95_ms: float | None
    failed: int


@dataclass(frozen=True, slots=True)
class Limit:
    """``serves``: the most sessions before ``stops_at``; None where it stops at the first."""

    serves: int | None
    stops_at: int | None
    """None: more may be served than were tried."""
    reason: Reason | None

    def as_json(self) -> dict[str, Any]:
        """As ``ondam bench --concurrency --json`` prints it."""
        stops = None if self.stops_at is None else {"sessions": self.stops_at, "reason": self.reason}
        return {"serves": self.serves, "stops_at": stops}


def limit(loads: Sequence[Load], *, budget_ms: float) -> Limit:
    """The first of ``loads`` (in rising order) that is no good: a turn failed, half of the first audio comes
    later than the budget, or throughput hardly grows while first audio at p95 does."""
    before: Load | None = None
    for load in loads:
        reason = _reason(load, before, budget_ms)
        if reason is not None:
            return Limit(before.sessions if before else None, load.sessions, reason)
        before = load
    return Limit(before.sessions if before else None, None, None)


def _reason(load: Load, before: Load | None, budget_ms: float) -> Reason | None:
    if load.failed or load.first_audio_p50_ms is None:
        return "failed"
    if load.first_audio_p50_ms > budget_ms:
        return "over_budget"
    if before is None or not before.turns_per_min or load.turns_per_min is None:
        return None
    gained = load.turns_per_min / before.turns_per_min - 1
    more = load.sessions / before.sessions - 1
    later = (load.first_audio_p95_ms or 0.0) > (before.first_audio_p95_ms or 0.0)
    return "throughput" if gained < WORTH * more and later else None


def waited_ms(turn: Mapping[str, Any], door: Door) -> float | None:
    """How long the answer's request to an engine took beyond the engine's own time: in its queue, and on the
    way. None where the turn had no such request, or the engine does not tell its own time.

    ``turn`` as ``Turn.as_json`` gives it. A draft waits as well, and its user may not notice.
    """
    sent, first, own = DOORS[door]
    marks, engine = turn["marks_ms"], turn["engine_ms"].get(own)
    if marks.get(sent) is None or marks.get(first) is None or engine is None:
        return None
    return max(0.0, float(marks[first] - marks[sent] - engine))


def turns_per_min(sessions: int, cycles_s: Sequence[float], answered: int) -> float | None:
    """Answered turns a minute, ``sessions`` of them always under way: J. D. C. Little's law.

    ``cycles_s``: from the begin of a turn to that of its session's next, for every counted turn; ``answered``
    of them were. Counted out of a clock's window instead, the turns at its edges would be lost or won.
    """
    if not cycles_s or not sum(cycles_s):
        return None
    return round(60 * sessions * answered / sum(cycles_s), 2)
