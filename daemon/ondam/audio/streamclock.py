"""Turns the jittery times that a sound server reports into one steady clock per stream. Pure.

Two things are known at each callback: when it came, and when the server says that its samples pass the
converter. A callback may come late but never early, so the earliest of the last second gives a clock that
is steady to 0.1 ms. How far that is from the converter, only the reports tell; they wander by 5 ms and more
within seconds, their mean less so.
"""

from __future__ import annotations

from collections import deque

from ondam.types import Nanoseconds

EARLIEST_OF = 100
"""Callbacks: a second of 10 ms blocks. Longer, and a stream that fell behind is believed too late."""

SETTLING = 25
"""Callbacks that count only until there are more: a speaker's buffer is filled at once, before time goes by
(the first callbacks come 20-37 ms early), and a microphone's first reports are off by up to 20 ms."""

MEAN_OF = 1000
"""Reports. PulseAudio's wander by 5 ms in a few seconds, by 12 on a busy machine."""

BROKEN_NS = 40_000_000
"""A callback this much later than the clock says is no mere delay ..."""

BROKEN_REPORTS = 5
"""... when so many follow each other: sound was lost, or the stream stood still. The clock is set anew."""


class StreamClock:
    """The moment a stream's position passes the converter."""

    def __init__(self) -> None:
        self._earliest: deque[tuple[int, int]] = deque()
        self._callbacks = 0
        self._settling = SETTLING
        self._proven = False
        self._broken = 0
        self._reports = 0
        self._distance_ns = 0.0

    def gap(self) -> None:
        """Sound was lost or held up: positions no longer follow from what was before."""
        self._settling = SETTLING
        self._earliest.clear()

    def observe(self, position_ns: Nanoseconds, at_ns: Nanoseconds, now_ns: Nanoseconds) -> None:
        """The callback for ``position_ns`` (length of the stream so far) came at ``now_ns``.

        The server said that the position passes the converter at ``at_ns``.
        """
        offset_ns = now_ns - position_ns
        if self._earliest and offset_ns - self._earliest[0][1] > BROKEN_NS:
            self._broken += 1
            if self._broken < BROKEN_REPORTS:
                return
            self._earliest.clear()
        self._broken = 0
        self._settle()
        # The usual queue of falling candidates: its head is the least of the window.
        while self._earliest and self._earliest[-1][1] >= offset_ns:
            self._earliest.pop()
        self._earliest.append((self._callbacks, offset_ns))
        self._callbacks += 1
        while self._earliest[0][0] < self._callbacks - EARLIEST_OF:
            self._earliest.popleft()
        if self._settling and self._proven:
            return
        self._reports = min(self._reports + 1, MEAN_OF)
        distance_ns = at_ns - position_ns - self._earliest[0][1]
        self._distance_ns += (distance_ns - self._distance_ns) / self._reports

    def at_ns(self, position_ns: Nanoseconds) -> Nanoseconds:
        """When ``position_ns`` is or was at the converter. Only after a callback."""
        return position_ns + self._earliest[0][1] + round(self._distance_ns)

    def _settle(self) -> None:
        if not self._settling:
            return
        self._settling -= 1
        if not self._settling:
            self._earliest.clear()
            if not self._proven:
                self._proven = True
                self._reports = 0
