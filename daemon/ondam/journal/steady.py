"""From where on a running median stands still. Pure.

Turns count as settled by count and time (``journal.warmth``), and only from where the median no longer
drifts: caches that are still empty, or a clock that has not throttled yet, make the first minute after a
start quicker than all that follows, and no count of answers shows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

AHEAD = 4
"""Windows that the median of the turns ahead is taken over: long enough that a drift that goes on is seen."""

BY_CHANCE = 1.75
"""Standard deviations that the rank sum of a window may be away from what chance makes of it (Mann and
Whitney, Annals of Mathematical Statistics 18, 1947: one window in twelve is further). Ranks, since clips that
differ and turns of two modes make medians of five jump however steady the machine is. What it takes for a
drift where there is none, and what it lets pass: docs/report.md."""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """``[measure]``: windows of ``turns``, whose median may differ by ``within`` of it. 0 turns: not looked
    at."""

    turns: int
    within: float


def steady_from(values: Sequence[float], steadiness: Steadiness) -> int | None:
    """Index of the first value from which the median stands still; None where that cannot be seen.

    A window stands still when its median differs from that of up to ``AHEAD`` windows after it by no more
    than ``within``, or than chance makes it. There has to be one whole window after it: before that nobody
    knows. Where others drifted before it, the first that stands still may hold the end of the drift, and is
    left out with them.
    """
    size = steadiness.turns
    if size == 0:
        return 0
    for begin in range(0, len(values) - 2 * size + 1, size):
        here = float(np.median(values[begin : begin + size]))
        after = np.asarray(values[begin + size : begin + size + AHEAD * size])
        level = float(np.median(after))
        if abs(here - level) <= steadiness.within * level or _mixed(values[begin : begin + size], after):
            return begin + size if begin else 0
    return None


def _mixed(window: Sequence[float], after: np.ndarray) -> bool:
    """Whether chance alone may have put ``window`` before what came after it: Mann and Whitney's U."""
    n, m = len(window), len(after)
    here = np.asarray(window)[:, None]
    above = np.count_nonzero(here > after) + np.count_nonzero(here == after) / 2
    return bool(abs(above - n * m / 2) <= BY_CHANCE * math.sqrt(n * m * (n + m + 1) / 12))
