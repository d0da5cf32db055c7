"""Whether one way of doing it is quicker than another, or whether chance alone would look like that. Pure.

What is compared are ratios: a machine that is busier slows both sides by a factor. Pairs are judged by the
median of their ratios, with the interval of the sign test: exact, whatever the distribution, and hardly moved
by the turns that take twice as long. Two runs without pairs are judged by Wilcoxon's rank sum. What else was
tried, and how often each finds what is there: docs/decisions/comparing-runs.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ondam.measure.distribution import is_answered

CONFIDENCE = 0.975
"""Of forty comparisons of a thing with itself at most one may name a winner."""

FEWEST = 10
"""Pairs, or turns on each side. With 10, nine must agree."""

MATTERS = 0.03
"""A difference below this part is nobody's gain, however sure it is: first audio of 600 ms by 18 ms."""

MATTERS_APART = 0.05
"""Likewise between two runs, which two days, two temperatures and two loads keep apart as well."""

EXACT_UP_TO = 1000
"""Pairs for which the binomial distribution is counted out; beyond, the normal one is the same."""

Figure: TypeAlias = Literal["first_audio_ms", "answer_ms"]

FIGURES: tuple[Figure, ...] = ("first_audio_ms", "answer_ms")

Verdict: TypeAlias = Literal["a", "b", "none"]
"""Which side is quicker."""

Reason: TypeAlias = Literal["too_few", "within_noise", "too_small", "beyond_noise"]

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``ratio``: how many times as long B takes as A, ``low`` to ``high`` its interval; None where there is
    too little to say."""

    method: Literal["pairs", "runs"]
    count: int
    """Pairs, or turns on the smaller side."""
    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: Reason

    def as_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "method": self.method,
            "count": self.count,
            "ratio": _rounded(self.ratio),
            "interval": [_rounded(self.low), _rounded(self.high)],
            "confidence": CONFIDENCE,
            "verdict": self.verdict,
            "reason": self.reason,
        }


def paired(pairs: Sequence[tuple[float, float]], *, matters: float = MATTERS) -> Comparison:
    """Times of A and B in turn, pair by pair, made under the same conditions right after each other."""
    logs = np.log([b / a for a, b in pairs if a > 0 and b > 0])
    if len(logs) < FEWEST:
        return _too_few("pairs", len(logs))
    return _judged("pairs", len(logs), logs, _signs(len(logs)), matters)


def unpaired(a: Sequence[float], b: Sequence[float], *, matters: float = MATTERS_APART) -> Comparison:
    """Times of two runs that share nothing but their conditions."""
    one, other = (np.log([value for value in side if value > 0]) for side in (a, b))
    count = min(len(one), len(other))
    if count < FEWEST:
        return _too_few("runs", count)
    shifts = np.subtract.outer(other, one).ravel()
    return _judged("runs", count, shifts, _rank_sum(len(one), len(other)), matters)


def within(
    turns: Sequence[Mapping[str, Any]], against: Sequence[Mapping[str, Any]], figure: Figure
) -> Comparison:
    """Two sides of one run: the n-th turns of both are a pair. Only answered and settled ones count."""
    return paired(
        [
            (one[figure], other[figure])
            for one, other in zip(turns, against, strict=False)
            if _counts(one, figure) and _counts(other, figure)
        ]
    )


def between(
    old: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    figure: Figure,
    *,
    by_clip: bool,
    matters: float = MATTERS_APART,
) -> Comparison:
    """Two runs: with ``by_clip`` the n-th times that each clip was asked are a pair, else nothing is."""
    if not by_clip:
        return unpaired(
            [turn[figure] for turn in old if _counts(turn, figure)],
            [turn[figure] for turn in new if _counts(turn, figure)],
            matters=matters,
        )
    times: list[dict[str, list[Mapping[str, Any]]]] = []
    for side in (old, new):
        asked: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for turn in side:
            asked[str(turn.get("clip"))].append(turn)
        times.append(asked)
    return paired(
        [
            (one[figure], other[figure])
            for clip in times[0]
            for one, other in zip(times[0][clip], times[1].get(clip, ()), strict=False)
            if _counts(one, figure) and _counts(other, figure)
        ],
        matters=matters,
    )


def fails_more(old: tuple[int, int], new: tuple[int, int]) -> bool:
    """Whether ``new`` fails more often than chance explains. ``(failed, all)`` each; Fisher's exact test."""
    (failed, count), (failed_new, count_new) = old, new
    everything, broken = count + count_new, failed + failed_new
    if not count or not count_new or not broken:
        return False
    as_bad = sum(
        math.comb(count_new, bad) * math.comb(count, broken - bad)
        for bad in range(failed_new, min(broken, count_new) + 1)
    )
    return as_bad / math.comb(everything, broken) < 1 - CONFIDENCE


def _counts(turn: Mapping[str, Any], figure: Figure) -> bool:
    return is_answered(turn) and bool(turn.get("settled")) and turn.get(figure) is not None


def _judged(
    method: Literal["pairs", "runs"], count: int, shifts: Floats, outside: int, matters: float
) -> Comparison:
    """``shifts``: all that the data propose; the interval leaves out ``outside`` of them at both ends."""
    ordered = np.sort(shifts)
    ratio = math.exp(float(np.median(ordered)))
    low, high = (math.exp(float(ordered[place])) for place in (outside, len(ordered) - 1 - outside))
    if low <= 1 <= high:
        return Comparison(method, count, ratio, low, high, "none", "within_noise")
    if abs(math.log(ratio)) < math.log1p(matters):
        return Comparison(method, count, ratio, low, high, "none", "too_small")
    return Comparison(method, count, ratio, low, high, "a" if ratio > 1 else "b", "beyond_noise")


def _too_few(method: Literal["pairs", "runs"], count: int) -> Comparison:
    return Comparison(method, count, None, None, None, "none", "too_few")


def _signs(count: int) -> int:
    """The largest k with P(B <= k) at most half of what may be missed, B of ``count`` fair coins."""
    missed = (1 - CONFIDENCE) / 2
    if count > EXACT_UP_TO:
        return math.floor(count / 2 - 0.5 - NormalDist().inv_cdf(1 - missed) * math.sqrt(count) / 2)
    most, ways = missed * 2.0**count, 0
    for heads in range(count):
        ways += math.comb(count, heads)
        if ways > most:
            return heads - 1
    raise AssertionError("half of all coins are heads")


def _rank_sum(count: int, other: int) -> int:
    """Likewise for the rank sum; normal, which is exact enough from ``FEWEST`` on."""
    spread = math.sqrt(count * other * (count + other + 1) / 12)
    return max(0, math.floor(count * other / 2 - 0.5 - NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spread))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
