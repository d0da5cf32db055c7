"""When an engine that ended is started again, and when it stays down. Pure: every time is an argument.

The exit status plays no part: an engine that dies with status 0 is missed like any other. A start counts
against the limit until the engine has been in good health for a while; then its past is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Ending: TypeAlias = Literal["died", "hung", "slow", "short"]
"""Ended by itself or was killed from outside; answered no ping, or no request; was not ready in time; the
machine had no room for it (disk, memory, descriptors), which is no fault of the engine's: it is tried for as
long as that lasts.
"""

HEALTHY_S = 10.0
"""Ready for so long, an engine has proved that it can serve. Two pings at the shipped setting."""

SLOW_STARTS = 2
"""An engine that twice in a row was not ready in time would only load for ever: it stays down."""

UNANSWERED = frozenset({"engine_silent", "llm_no_first_token", "llm_stalled"})
"""Errors of a request that was never answered. Any other says that somebody is there who answers."""

UNANSWERED_LIMIT = 2
"""One may be a request too long for this machine. Pings tell nothing: they do not pass through the model."""

ILL = frozenset(
    {
        "engine_broken_frame",
        "engine_hung_up",
        "engine_refused",
        "llm_broken_answer",
        "llm_cut_off",
        "llm_failed",
        "llm_gave_up",
    }
)
"""Errors of a request that was answered with what is no answer. What a request is to blame for (it is too
long, it was refused, it wants a tool) is not among them."""

ILL_LIMIT = 3
"""One may be a text that this engine cannot do. So many in a row: it answers nothing any more (no memory
left, a broken session), and weights that are loaded anew may help."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Seconds, and how many starts within ``window_s``. From ``[supervisor]`` of the configuration."""

    first_s: float
    last_s: float
    limit: int
    window_s: float


@dataclass(frozen=True, slots=True)
class Past:
    """What counts of an engine's life so far."""

    starts: tuple[float, ...] = ()
    """When it was started, oldest first, since it last was in good health."""
    slow: int = 0
    """How many of the latest starts in a row were too slow."""
    short: int = 0
    """How many of the latest in a row found no room."""


@dataclass(frozen=True, slots=True)
class Again:
    """Start it after ``wait_s``."""

    wait_s: float
    past: Past


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Leave it down until a person asks. ``starts`` within the window were made."""

    starts: int


def started(past: Past, at: float) -> Past:
    """The past of an engine that is started now."""
    return Past((*past.starts, at), past.slow, past.short)


def ended(policy: Policy, past: Past, ending: Ending, ready_s: float, at: float) -> Again | GiveUp:
    """What to do about an engine that ended at ``at`` after having been ready for ``ready_s`` (0: never)."""
    if ready_s >= HEALTHY_S:
        # The start that just ended in good health is forgotten with the rest.
        return Again(policy.first_s, Past())
    slow = past.slow + 1 if ending == "slow" else 0
    recent = tuple(start for start in past.starts if at - start < policy.window_s)
    if ending == "short":
        # Its start does not count: where there was no room nothing was tried.
        return Again(
            back_off(policy.first_s, policy.last_s, past.short), Past(recent[:-1], short=past.short + 1)
        )
    if len(recent) >= policy.limit or slow >= SLOW_STARTS:
        return GiveUp(len(past.starts))
    return Again(back_off(policy.first_s, policy.last_s, max(len(recent) - 1, 0)), Past(recent, slow))


def back_off(first_s: float, last_s: float, before: int) -> float:
    """How long to wait after so many waits ``before``: doubling from ``first_s`` up to ``last_s``."""
    # min() on the exponent: 2.0 ** 2000 would overflow under an absurd limit.
    return min(first_s * 2.0 ** min(before, 60), last_s)


def unanswered(before: int, code: str) -> int:
    """How many requests in a row were not answered, now that another has failed with ``code``."""
    return before + 1 if code in UNANSWERED else before


def ill(before: int, code: str) -> int:
    """How many requests in a row got what is no answer, now that another has failed with ``code``."""
    return before + 1 if code in ILL else before


def most_mib(ready_mib: float, needs_mib: float, headroom_mib: float) -> float:
    """Memory from which an engine leaks: twice what it should take, by its first answer or by its plan, and
    ``headroom_mib`` more. 0 of that: it may take what it likes."""
    return 2 * max(ready_mib, needs_mib) + headroom_mib if headroom_mib else float("inf")
