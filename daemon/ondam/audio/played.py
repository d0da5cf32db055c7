"""What passed the converter in the last seconds, at 16 kHz, to be asked for by time."""

from __future__ import annotations

import numpy as np

from ondam.audio.resample import Resampler
from ondam.types import HEARING_RATE_HZ, Nanoseconds, Samples

KEPT = 4 * HEARING_RATE_HZ
"""Samples remembered: the latest echo that is looked for, a hop of the search, and what is still to sound."""

SLACK = HEARING_RATE_HZ * 16 // 1000
"""Samples by which time stamps may disagree with an unbroken stream before it is believed that it broke.

Stamps wander by 5 ms where the sound does not; every correction would make the canceller learn anew.
"""


def sample_at(at_ns: Nanoseconds) -> int:
    """The number of the 16 kHz sample at a moment, counted from the clock's zero."""
    return at_ns * HEARING_RATE_HZ // 1_000_000_000


class Played:
    """A ring. Silence stands where nothing was played, or where nothing is known yet."""

    def __init__(self) -> None:
        self._ring: Samples = np.zeros(KEPT, np.int16)
        self._resampler: Resampler | None = None
        self.end: int | None = None
        """The number after the last sample that is known."""

    def add(self, at_ns: Nanoseconds, samples: Samples, rate_hz: int) -> int:
        """What passes from ``at_ns`` on. Returns the number of its first sample at 16 kHz."""
        at = sample_at(at_ns)
        resampler = self._resampler
        if (
            self.end is None
            or resampler is None
            or resampler.rate_in_hz != rate_hz
            or abs(at - self.end) > SLACK
        ):
            self.end, resampler = self._begin(at, rate_hz)
        first = self.end
        out = resampler.process(np.ascontiguousarray(samples))[-KEPT:]
        self._put(first, out)
        self.end = first + len(out)
        return first

    def at(self, first: int, count: int) -> Samples:
        """``count`` samples from number ``first`` on, at most ``KEPT``."""
        out = np.zeros(count, np.int16)
        if self.end is None:
            return out
        begin, end = max(first, self.end - KEPT), min(first + count, self.end)
        if begin < end:
            out[begin - first : end - first] = self._ring[np.arange(begin, end) % KEPT]
        return out

    def _begin(self, at: int, rate_hz: int) -> tuple[int, Resampler]:
        """A new stretch of sound: silence between the last one and it."""
        self._resampler = Resampler(rate_hz, HEARING_RATE_HZ)
        if self.end is None or abs(at - self.end) >= KEPT:
            self._ring[:] = 0
        elif at > self.end:
            self._put(self.end, np.zeros(at - self.end, np.int16))
        return at, self._resampler

    def _put(self, first: int, samples: Samples) -> None:
        self._ring[np.arange(first, first + len(samples)) % KEPT] = samples
