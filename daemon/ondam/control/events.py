"""One publisher, many subscribers, each with a bounded queue; who reads too slowly is let go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ondam.control.wire import Event
from ondam.errors import ControlError

CAPACITY = 256
"""Events that may wait for one subscriber: minutes of a conversation."""


@dataclass(slots=True, eq=False)
class _Subscriber:
    """``None`` in the queue is the end; ``lost`` says that it is the end of somebody too slow."""

    queue: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    lost: bool = False


class Broadcast:
    """Hands every published event to every subscriber. One event loop, no locks."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._subscribers: set[_Subscriber] = set()

    @property
    def subscribers(self) -> int:
        """How many are listening."""
        return len(self._subscribers)

    def publish(self, event: Event) -> None:
        """Never waits."""
        for subscriber in tuple(self._subscribers):
            if subscriber.queue.qsize() < self._capacity:
                subscriber.queue.put_nowait(event)
                continue
            subscriber.lost = True
            while not subscriber.queue.empty():
                subscriber.queue.get_nowait()
            self._end(subscriber)

    def close(self) -> None:
        """End every subscription after what is queued."""
        for subscriber in tuple(self._subscribers):
            self._end(subscriber)

    @asynccontextmanager
    async def subscribe(self, snapshot: Callable[[], Event]) -> AsyncIterator[AsyncIterator[Event]]:
        """``snapshot()`` taken now, then everything published from now on.

        The iterator ends when the publisher closes; ControlError ``control_reader_too_slow`` when let go.
        """
        subscriber = _Subscriber()
        subscriber.queue.put_nowait(snapshot())
        self._subscribers.add(subscriber)
        try:
            yield self._events(subscriber)
        finally:
            self._subscribers.discard(subscriber)

    async def _events(self, subscriber: _Subscriber) -> AsyncIterator[Event]:
        while (event := await subscriber.queue.get()) is not None:
            yield event
        if subscriber.lost:
            raise ControlError("control_reader_too_slow", limit=self._capacity)

    def _end(self, subscriber: _Subscriber) -> None:
        self._subscribers.discard(subscriber)
        subscriber.queue.put_nowait(None)
