"""One publisher, many subscribers, each with a bounded queue; who reads too slowly is let go."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ondam.control.wire import FLEETING, Event
from ondam.errors import ControlError

CAPACITY = 256
"""Events that may wait for one subscriber: minutes of a conversation."""

LEVELS_ROOM = 4
"""Whoever has more waiting is not told how loud it is: that was 0.4 s ago."""


@dataclass(slots=True, eq=False)
class _Subscriber:
    """``over``: nothing follows what waits; ``lost``: because it was too slow."""

    fleeting: bool
    waiting: deque[Event] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False
    lost: bool = False

    def take(self, event: Event) -> None:
        self.waiting.append(event)
        self.news.set()

    def end(self, *, lost: bool = False) -> None:
        self.over, self.lost = True, lost
        if lost:
            self.waiting.clear()
        self.news.set()


class Broadcast:
    """Hands every published event to every subscriber. One event loop, no locks."""

    def __init__(
        self, capacity: int = CAPACITY, *, followed: Callable[[bool], None] = lambda anybody: None
    ) -> None:
        """``followed`` is told whenever there is somebody who wants what is fleeting, and when no more."""
        self._capacity = capacity
        self._followed = followed
        self._subscribers: set[_Subscriber] = set()
        self._followers = 0

    @property
    def subscribers(self) -> int:
        """How many are listening."""
        return len(self._subscribers)

    @property
    def followers(self) -> int:
        """How many of them want what is fleeting."""
        return self._followers

    def publish(self, event: Event) -> None:
        """Never waits. What is fleeting goes to those who asked and keep up, all else to everybody."""
        fleeting = event["type"] in FLEETING
        for subscriber in tuple(self._subscribers):
            if fleeting:
                room = LEVELS_ROOM if event["type"] == "levels" else self._capacity // 2
                if subscriber.fleeting and len(subscriber.waiting) < room:
                    subscriber.take(event)
                continue
            if len(subscriber.waiting) >= self._capacity:
                lasting = [one for one in subscriber.waiting if one["type"] not in FLEETING]
                subscriber.waiting = deque(lasting)
            if len(subscriber.waiting) < self._capacity:
                subscriber.take(event)
            else:
                self._leave(subscriber)
                subscriber.end(lost=True)

    def close(self) -> None:
        """End every subscription after what is queued."""
        for subscriber in tuple(self._subscribers):
            self._leave(subscriber)
            subscriber.end()

    @asynccontextmanager
    async def subscribe(
        self, snapshot: Callable[[], Event], *, fleeting: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """``snapshot()`` taken now, then everything published from now on; the ``fleeting`` only if asked.

        The iterator ends when the publisher closes; ControlError ``control_reader_too_slow`` when let go.
        """
        subscriber = _Subscriber(fleeting)
        subscriber.take(snapshot())
        self._subscribers.add(subscriber)
        self._count(+fleeting)
        try:
            yield self._events(subscriber)
        finally:
            self._leave(subscriber)

    async def _events(self, subscriber: _Subscriber) -> AsyncIterator[Event]:
        while True:
            while subscriber.waiting:
                yield subscriber.waiting.popleft()
            if subscriber.over:
                break
            subscriber.news.clear()
            await subscriber.news.wait()
        if subscriber.lost:
            raise ControlError("control_reader_too_slow", limit=self._capacity)

    def _leave(self, subscriber: _Subscriber) -> None:
        if subscriber in self._subscribers:
            self._subscribers.discard(subscriber)
            self._count(-subscriber.fleeting)

    def _count(self, change: int) -> None:
        before, self._followers = self._followers, self._followers + change
        if bool(before) != bool(self._followers):
            self._followed(bool(self._followers))
