"""The supervisor's time: injected, so that three minutes of loading take a test no three minutes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Seconds that only go forward, and waiting for some of them to pass."""

    def now(self) -> float:
        """Seconds since some fixed moment."""

    async def sleep(self, seconds: float) -> None:
        """Return when ``seconds`` have passed."""


class MonotonicClock:
    """The machine's own."""

    def now(self) -> float:
        """``time.monotonic``."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """``asyncio.sleep``."""
        await asyncio.sleep(seconds)


async def within(clock: Clock, seconds: float, doing: Coroutine[Any, Any, T]) -> T:
    """``doing``'s result. Raises TimeoutError, ``doing`` cancelled, when ``clock`` says that time is up."""
    work, alarm = asyncio.ensure_future(doing), asyncio.ensure_future(clock.sleep(max(seconds, 0)))
    try:
        await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise TimeoutError
        return work.result()
    finally:
        for task in (work, alarm):
            task.cancel()
        await asyncio.gather(work, alarm, return_exceptions=True)
