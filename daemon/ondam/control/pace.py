"""How often one client may knock and ask: beyond that it waits, and nobody else does.

A token bucket per process (the kernel tells whose connection it is). Who is quick for a moment is not
noticed; who is quick for ever gets the rate.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

MOST_KNOWN = 1024
"""Processes that are remembered; the one that was seen longest ago is forgotten, and begins anew."""


@dataclass(frozen=True, slots=True)
class Rate:
    """``per_s`` for ever, after ``at_once``."""

    per_s: float
    at_once: float


CONNECTIONS = Rate(500, 600)
"""A connection costs the daemon about 0.1 ms: so many are a twentieth of its loop."""

REQUESTS = Rate(200, 400)
"""A status costs about 1 ms. What people and their tools do is below ten a second."""

LONGEST_WAIT_S = 5.0
"""Who would have to wait longer is refused: its requests must not pile up here."""


class Pace:
    """One rate, for every process apart."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._owed: OrderedDict[int, tuple[float, float]] = OrderedDict()
        """Process to (tokens taken and not come back yet, when that was so)."""

    def wait_s(self, process: int, now_s: float) -> float:
        """Take one token; how long to wait before it is there. Above LONGEST_WAIT_S none is taken."""
        owed, at = self._owed.pop(process, (0.0, now_s))
        owed = max(0.0, owed - (now_s - at) * self.rate.per_s)
        wait = max(0.0, (owed + 1 - self.rate.at_once) / self.rate.per_s)
        self._owed[process] = (owed + (wait <= LONGEST_WAIT_S), now_s)
        if len(self._owed) > MOST_KNOWN:
            self._owed.popitem(last=False)
        return wait
