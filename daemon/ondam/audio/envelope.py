"""How loud a speaker made of arithmetic plays at which moment. Pure: times come in as arguments."""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from ondam.types import Nanoseconds

RAMP_NS = 10_000_000
"""A change of level takes so long: a step would click."""


class Envelope:
    """Straight lines between moments whose gain is known; before the first and after the last it stays."""

    def __init__(self, rate_hz: int, now_ns: Nanoseconds) -> None:
        self._rate_hz = rate_hz
        # The last sample of a ramp has its end's gain.
        self._ramp_ns = RAMP_NS - 1_000_000_000 // rate_hz
        self._points: deque[tuple[Nanoseconds, float]] = deque([(now_ns, 1.0)])

    def ramp(self, at_ns: Nanoseconds, gain: float) -> None:
        """From ``at_ns`` on go to ``gain``; what was planned for later is forgotten."""
        begin = float(self.gains(at_ns, 1)[0])
        self._forget_from(at_ns)
        self._points += [(at_ns, begin), (at_ns + self._ramp_ns, gain)]

    def jump(self, at_ns: Nanoseconds, gain: float) -> None:
        """From ``at_ns`` on it is ``gain``; what was planned for later is forgotten."""
        begin = float(self.gains(at_ns - 1, 1)[0])
        self._forget_from(at_ns)
        self._points += [(at_ns - 1, begin), (at_ns, gain)]

    def gains(self, at_ns: Nanoseconds, count: int) -> npt.NDArray[np.float64]:
        """Of ``count`` samples from ``at_ns`` on, shape (count,)."""
        # Distances: a moment in nanoseconds has more digits than a float.
        times = np.arange(count) * (1e9 / self._rate_hz)
        gains: npt.NDArray[np.float64] = np.interp(
            times, [at - at_ns for at, _ in self._points], [gain for _, gain in self._points]
        )
        return gains

    def forget_before(self, at_ns: Nanoseconds) -> None:
        """Nobody will ask for a gain before ``at_ns`` again."""
        while len(self._points) > 1 and self._points[1][0] <= at_ns:
            self._points.popleft()

    def _forget_from(self, at_ns: Nanoseconds) -> None:
        while self._points and self._points[-1][0] >= at_ns:
            self._points.pop()
