"""Two populations in one column: a median between them describes no turn at all. Pure.

Why this and not a dip test: docs/decisions/modes.md, with how often it errs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEWEST = 20
"""Turns below which nothing is said."""

MANY = 40
"""From here on the plain thresholds hold; below, chance makes gaps, and the strict ones do."""

APART, APART_FEW = 4.0, 5.0
"""Ashman's D of the two halves in logarithms. A uniform distribution cut in two has 3.5, a normal one 2.7."""

BETWEEN, BETWEEN_FEW = 0.2, 0.15
"""Turns in the middle third of the way from one median to the other, per turn of the smaller half. A uniform
distribution has 0.33, a normal one 0.36."""

SMALLEST = 0.1
"""Share of the smaller mode: below it are outliers, which p95 and p99 show."""

WORTH = 1.1
"""Ratio of the medians below which two modes make no difference to anybody."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One of two: its share of the turns, their median, and the least and the greatest of them."""

    share: float
    p50: float
    least: float
    most: float

    def as_json(self) -> dict[str, float]:
        """As it stands in a report."""
        return {
            "share": round(self.share, 3),
            "p50": round(self.p50, 1),
            "from": round(self.least, 1),
            "to": round(self.most, 1),
        }


def two_modes(values: Sequence[float]) -> tuple[Mode, Mode] | None:
    """The quicker and the slower mode of positive ``values``; None where there is but one, or too few
    turns."""
    known = np.sort(np.asarray(values, dtype=float))
    count = len(known)
    if count < FEWEST or known[0] <= 0:
        return None
    logs = np.log(known)
    cut = _cut(logs, fewest=int(np.ceil(SMALLEST * count)))
    low, high = logs[:cut], logs[cut:]
    spread = float(np.sqrt(low.var() + high.var()))
    apart = float(high.mean() - low.mean()) * float(np.sqrt(2)) / max(spread, 1e-9)
    first, last = float(np.median(low)), float(np.median(high))
    third = (last - first) / 3
    between = np.count_nonzero((logs > first + third) & (logs < last - third)) / min(len(low), len(high))
    few = count < MANY
    if (
        apart < (APART_FEW if few else APART)
        or between > (BETWEEN_FEW if few else BETWEEN)
        or last - first < np.log(WORTH)
    ):
        return None
    return _mode(known[:cut], count), _mode(known[cut:], count)


def _cut(ordered: np.ndarray, *, fewest: int) -> int:
    """Where two groups of ``ordered`` have the least sum of squares: two means in one dimension, exactly."""
    count = len(ordered)
    sizes = np.arange(fewest, count - fewest + 1)
    sums, squares = np.cumsum(ordered), np.cumsum(ordered**2)
    left = squares[sizes - 1] - sums[sizes - 1] ** 2 / sizes
    right = squares[-1] - squares[sizes - 1] - (sums[-1] - sums[sizes - 1]) ** 2 / (count - sizes)
    return int(sizes[np.argmin(left + right)])


def _mode(values: np.ndarray, of: int) -> Mode:
    return Mode(len(values) / of, float(np.median(values)), float(values[0]), float(values[-1]))
