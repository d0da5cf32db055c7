"""Whether something grows: a line through quiet moments that no single reading can bend. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

SETTLING = 0.2
"""Part of the course that is left out: caches fill, threads are made when they are first needed."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What became of one quantity from its settled beginning to the end."""

    first: float
    """Where the line begins."""
    last: float
    readings: int

    @property
    def share(self) -> float:
        """Growth as a part of the beginning: 0.05 is 5 %. Negative where it shrank."""
        return 0.0 if not self.first else (self.last - self.first) / self.first


def over(ceiling: float, values: Sequence[float]) -> Growth:
    """What came on top of ``ceiling``, the level at which something had settled before.

    Nine readings of ten are below ``last``. For what falls back now and then (an engine that is started anew,
    its caches empty), so that no line can be laid through it.
    """
    ordered = sorted(values)
    return Growth(ceiling, ordered[int(0.9 * (len(ordered) - 1))] if ordered else ceiling, len(ordered))


def growth(readings: Sequence[tuple[float, float]]) -> Growth:
    """``readings`` of (turns so far, value), oldest first; the first ``SETTLING`` of the turns do not count.

    The line is Theil and Sen's: the median of the slopes of all pairs, through the median of what it leaves.
    Up to 29 % of the readings may be wild (Sen 1968).
    """
    if not readings:
        return Growth(0.0, 0.0, 0)
    begin = readings[0][0] + SETTLING * (readings[-1][0] - readings[0][0])
    settled = [reading for reading in readings if reading[0] >= begin] or [readings[-1]]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(settled, 2) if b[0] > a[0]]
    slope = statistics.median(slopes) if slopes else 0.0
    middle = statistics.median(value - slope * at for at, value in settled)
    return Growth(middle + slope * settled[0][0], middle + slope * settled[-1][0], len(settled))
