"""The date that decides what is old enough to be deleted: the machine's, once it has held for an hour.

A clock that is wrong for a moment (a dead battery, a server of times that errs, somebody's hand) must not
delete a year of turns that nobody can bring back. Pure: both clocks are arguments.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

JUMP = timedelta(minutes=2)
"""The two clocks differ by so much from what they did before: somebody has set one. Slewing is far slower."""

HOLDS = timedelta(hours=1)
"""A date that holds for so long is meant."""


def uptime() -> timedelta:
    """Since the machine was started, its sleep included where the system tells that."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return timedelta(seconds=time.clock_gettime(clock))


class Believed:
    """Call it for the date."""

    def __init__(
        self,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        passed: Callable[[], timedelta] = uptime,
    ) -> None:
        """``passed`` only goes forward, whatever is set."""
        self._now = now
        self._passed = passed
        self._base = now() - passed()
        """The date at which ``passed`` was nothing, as it is believed."""
        self._claimed, self._since = self._base, passed()
        """The same as the machine says it, and since when it has."""

    def __call__(self) -> datetime:
        """The date now. After a jump for an hour what it would be without."""
        passed = self._passed()
        base = self._now() - passed
        if abs(base - self._claimed) > JUMP:
            self._claimed, self._since = base, passed
        if abs(base - self._base) <= JUMP or passed - self._since >= HOLDS:
            self._base = self._claimed = base
        return self._base + passed
