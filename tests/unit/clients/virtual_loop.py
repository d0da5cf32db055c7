"""An event loop whose time passes only while nobody has anything to do: real sockets, no waiting."""

from __future__ import annotations

import asyncio
import selectors


class _Selector(selectors.DefaultSelector):
    """Where a loop would sleep, time is skipped instead."""

    skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        # A moment of real time, for what the kernel still has on its way.
        ready = super().select(min(timeout, 0.001))
        if not ready:
            self.skipped_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """``time()`` begins at 1000 s and jumps to each timer."""

    def __init__(self) -> None:
        self._skipping = _Selector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return 1000.0 + self._skipping.skipped_s
