"""Turns the jittery times that a sound server reports into one steady clock per stream. Pure."""

from __future__ import annotations

from ondam.types import Nanoseconds

MEMORY = 200
"""Reports averaged: 2 s of 10 ms blocks. PulseAudio's jitter by 3 ms (standard deviation), 17 ms at worst."""

BROKEN_NS = 40_000_000
"""A report this far off the average is no jitter: sound was lost, or the stream stood still."""

BROKEN_REPORTS = 5
"""So many of those in a row, and the clock is set anew."""


class StreamClock:
    """The moment a stream's position was at the converter: position + offset, the offset being averaged."""

    def __init__(self) -> None:
        self._offset_ns = 0.0
        self._reports = 0
        self._broken = 0

    def observe(self, position_ns: Nanoseconds, at_ns: Nanoseconds) -> None:
        """The server says that ``position_ns`` (length of the stream so far) passes at ``at_ns``."""
        offset_ns = at_ns - position_ns
        error_ns = offset_ns - self._offset_ns
        if self._reports and abs(error_ns) > BROKEN_NS:
            self._broken += 1
            if self._broken < BROKEN_REPORTS:
                return
            self._reports = 0
        self._broken = 0
        if not self._reports:
            error_ns, self._offset_ns = 0, offset_ns
        self._reports = min(self._reports + 1, MEMORY)
        self._offset_ns += error_ns / self._reports

    def at_ns(self, position_ns: Nanoseconds) -> Nanoseconds:
        """When ``position_ns`` is or was at the converter. Only after a report."""
        return position_ns + round(self._offset_ns)
