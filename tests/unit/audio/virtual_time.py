"""A clock and a sleep that take no time: sleepers are woken in order, and the clock jumps to each."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class VirtualTime:
    """``clock`` and ``sleep`` for whatever takes them injected; ``advance`` lets time pass."""

    def __init__(self, now_ns: int = 1_000_000_000) -> None:
        self.now_ns = now_ns
        self._sleepers: list[tuple[int, int, asyncio.Event]] = []
        self._order = itertools.count()

    def clock(self) -> int:
        return self.now_ns

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self.now_ns + round(seconds * 1e9), next(self._order), woken))
        await woken.wait()

    async def advance(self, ms: float) -> None:
        """Time passes, each sleeper waking at its own moment."""
        end_ns = self.now_ns + round(ms * 1e6)
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end_ns:
            at_ns, _, woken = heapq.heappop(self._sleepers)
            self.now_ns = max(self.now_ns, at_ns)
            woken.set()
            await settle()
        self.now_ns = end_ns


async def settle() -> None:
    """Let every task run until it waits for time."""
    for _ in range(10):
        await asyncio.sleep(0)
