"""How warm the engines were when a turn began, and to which of three populations it belongs. Pure.

Figures of the three are never mixed: a turn right after a load may be slow (caches to fill) or quick (nothing
to remember yet, a clock not yet throttled), and one after a long rest pays for caches that others have taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

Population: TypeAlias = Literal["cold", "after_idle", "settled"]
"""``cold``: an engine has not served long enough since its weights were loaded. ``after_idle``: nothing had
been asked for a while. ``settled``: neither; what people mean when they ask how quick it is."""

POPULATIONS: tuple[Population, ...] = get_args(Population)


@dataclass(frozen=True, slots=True)
class Warmth:
    """What a turn found: the least of its engines, each counted since it became ready (warm-up done)."""

    answers: int
    """Answers given to the daemon."""
    ready_s: float | None
    """Seconds since it became ready; None where all are outside and nobody can tell."""
    idle_s: float | None
    """Seconds since the last answer of any engine; None when there was none."""

    def as_json(self) -> dict[str, Any]:
        """As it stands in a turn."""
        return {
            "answers": self.answers,
            "ready_s": None if self.ready_s is None else round(self.ready_s, 1),
            "idle_s": None if self.idle_s is None else round(self.idle_s, 1),
        }


@dataclass(frozen=True, slots=True)
class Settling:
    """When an engine's numbers count: ``[measure]`` of the configuration."""

    answers: int
    seconds: float
    idle_s: float


def population(warmth: Warmth, settling: Settling) -> Population:
    """Where a turn that began so belongs."""
    ready = warmth.ready_s is None or warmth.ready_s >= settling.seconds
    if warmth.answers < settling.answers or not ready:
        return "cold"
    if warmth.idle_s is not None and warmth.idle_s >= settling.idle_s:
        return "after_idle"
    return "settled"
