"""How long to wait before a device is tried again. Pure."""

from __future__ import annotations

from ondam.types import Nanoseconds


class Backoff:
    """Waits that double from ``first_s`` to ``last_s``; a device that worked for ``proven_s`` starts over.

    The first try is soon (a server that restarts is back within a second), the last often enough that a
    person who plugs the microphone in again need not wonder, and seldom enough to cost nothing.
    """

    def __init__(self, first_s: float = 0.25, last_s: float = 4.0, proven_s: float = 3.0) -> None:
        self.first_s = first_s
        self._last_s = last_s
        self._proven_ns = round(proven_s * 1e9)
        self._next_s = first_s
        self._worked_since: Nanoseconds | None = None

    def worked(self, now_ns: Nanoseconds) -> None:
        """The device delivers sound."""
        if self._worked_since is None:
            self._worked_since = now_ns

    def failed(self, now_ns: Nanoseconds) -> float:
        """The device is gone or could not be opened. Returns the seconds to wait before the next try."""
        if self._worked_since is not None and now_ns - self._worked_since >= self._proven_ns:
            self._next_s = self.first_s
        self._worked_since = None
        wait_s, self._next_s = self._next_s, min(self._next_s * 2, self._last_s)
        return wait_s
