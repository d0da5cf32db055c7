"""Which written sample passed the converter when. Pure: times come in as arguments."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ondam.types import Nanoseconds

SAME_STRETCH_NS = 2_000_000
"""A block that begins this close to where the last one ends continues it; further off there was a gap.

Small against the ±25 ms that time stamps must keep, large against a clock's drift within a block.
"""

LONGEST_MEMORY = 1024
"""Stretches remembered. One is one answer's worth of sound unless the device stutters."""


@dataclass(slots=True)
class Stretch:
    """``count`` samples from number ``first``, the first of which passes at ``at_ns``, without a gap."""

    first: int
    count: int
    at_ns: Nanoseconds


class Timeline:
    """The stretches that were, or are about to be, heard. Numbers only grow; those left out were dropped."""

    def __init__(self, rate_hz: int, slack_ns: Nanoseconds = SAME_STRETCH_NS) -> None:
        self.rate_hz = rate_hz
        self._slack_ns = slack_ns
        self._stretches: deque[Stretch] = deque()
        self._forgotten = 0

    def play(self, first: int, count: int, at_ns: Nanoseconds) -> None:
        """Samples ``first`` to ``first + count`` pass from ``at_ns`` on."""
        if self._stretches:
            last = self._stretches[-1]
            if first == last.first + last.count and abs(at_ns - self._end_ns(last)) <= self._slack_ns:
                last.count += count
                return
        self._stretches.append(Stretch(first, count, at_ns))
        if len(self._stretches) > LONGEST_MEMORY:
            self._forgotten += self._stretches.popleft().count

    def cut(self, at_ns: Nanoseconds) -> int | None:
        """Whatever would pass at or after ``at_ns`` does not. Returns its first number; None without any."""
        first: int | None = None
        while self._stretches and self._stretches[-1].at_ns >= at_ns:
            first = self._stretches.pop().first
        if self._stretches:
            last = self._stretches[-1]
            count = self._samples(at_ns - last.at_ns)
            if count < last.count:
                last.count = count
                first = last.first + count
        return first

    @property
    def end_ns(self) -> Nanoseconds | None:
        """When the last sample has passed; None when there never was one."""
        return self._end_ns(self._stretches[-1]) if self._stretches else None

    def heard(self, now_ns: Nanoseconds) -> int:
        """How many samples have wholly passed by ``now_ns``."""
        count = self._forgotten
        for stretch in self._stretches:
            if stretch.at_ns >= now_ns:
                break
            count += min(stretch.count, self._samples(now_ns - stretch.at_ns))
        return count

    def heard_at_ns(self, sample: int, now_ns: Nanoseconds) -> Nanoseconds | None:
        """When ``sample`` passed; None when it has not by ``now_ns``, was dropped, or is long forgotten."""
        for stretch in reversed(self._stretches):
            if stretch.first <= sample < stretch.first + stretch.count:
                at_ns = stretch.at_ns + self._ns(sample - stretch.first)
                return at_ns if at_ns <= now_ns else None
        return None

    def _end_ns(self, stretch: Stretch) -> Nanoseconds:
        return stretch.at_ns + self._ns(stretch.count)

    def _ns(self, samples: int) -> Nanoseconds:
        return samples * 1_000_000_000 // self.rate_hz

    def _samples(self, ns: Nanoseconds) -> int:
        return ns * self.rate_hz // 1_000_000_000
