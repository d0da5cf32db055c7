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

BY_CHANCE = 2.0
"""Standard errors of the difference of the two medians (1.2533 sigma * sqrt(1/n + 1/m)): clips that differ
make medians differ by that. Sigma is taken from the differences of neighbours, which a slow drift hardly
changes. Where nothing drifts one window in ten is taken for a drift by that; it costs two windows of
turns."""


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
        sigma = 1.4826 * float(np.median(np.abs(np.diff(after)))) / math.sqrt(2)
        chance = BY_CHANCE * 1.2533 * sigma * math.sqrt(1 / size + 1 / len(after))
        if abs(here - level) <= max(steadiness.within * level, chance):
            return begin + size if begin else 0
    return None
