"""Work that is wanted again and again, and costs something: one at a time, seldom, in quiet moments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

SHARE = 0.05
"""Of the time, that such work may take while it goes on being wanted."""


class Seldom:
    """Does ``work`` while ``run`` runs. Wanted ten times meanwhile, it is done once more."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        """``work`` raises nothing."""
        self._work = work
        self._wanted = asyncio.Event()
        self._quiet = asyncio.Event()

    def want(self) -> None:
        """Once more, as soon as may be."""
        self._wanted.set()

    def quiet(self, now: bool) -> None:
        """Whether this is a moment for it. What has begun goes on."""
        if now:
            self._quiet.set()
        else:
            self._quiet.clear()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            await self._quiet.wait()
            self._wanted.clear()
            began = loop.time()
            await self._work()
            await asyncio.sleep((loop.time() - began) * (1 / SHARE - 1))
