"""One question to a Wyoming server over one connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from wyoming.error import Error
from wyoming.event import Event, async_write_event

from ondam.clients.address import TcpAddress, UnixAddress
from ondam.clients.json_text import one_line, text_at
from ondam.clients.wyoming_frames import LONGEST_LINE, Frames
from ondam.errors import EngineError

CONNECT_TIMEOUT_S = 5.0
"""A machine in the same house answers in milliseconds; one that is switched off never does."""


class Answers:
    """What the server says to the question."""

    def __init__(self, frames: Frames, address: str) -> None:
        self._frames = frames
        self._address = address

    async def next(self, timeout_s: float, *, of_s: float | None = None) -> Event:
        """The next event that is no error. ``of_s``: how long was waited in all, where this is only the rest.

        Raises EngineError: ``engine_silent`` after ``timeout_s`` without one, ``engine_refused`` when the
        server says why it will not, ``engine_hung_up``, ``engine_broken_frame``.
        """
        try:
            async with asyncio.timeout(timeout_s):
                event = await self._frames.next()
        except TimeoutError as error:
            raise EngineError(
                "engine_silent", address=self._address, seconds=f"{of_s or timeout_s:g}"
            ) from error
        if Error.is_type(event.type):
            try:
                code, text = text_at(event.data, "code"), text_at(event.data, "text")
            except ValueError as error:
                raise self.broken(str(error)) from error
            reason = one_line(text or "") or "?"
            kind = one_line(code or "failed", 40)
            raise EngineError("engine_refused", address=self._address, reason=reason, kind=kind)
        return event

    def broken(self, reason: str) -> EngineError:
        """What to raise when an event is well-formed and still not usable."""
        return self._frames.broken(reason)


@asynccontextmanager
async def exchange(
    place: UnixAddress | TcpAddress, address: str, question: Iterable[Event]
) -> AsyncIterator[Answers]:
    """Opens a connection, sends ``question`` while the answer is already awaited, closes at once on leaving.

    Raises EngineError ``engine_unreachable``.
    """
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            reader, writer = await place.open(LONGEST_LINE)
    except OSError as error:  # TimeoutError is one
        reason = error.strerror or f"no answer within {CONNECT_TIMEOUT_S:g} s"
        raise EngineError("engine_unreachable", address=address, reason=reason) from error
    sender = asyncio.create_task(_send(question, writer))
    try:
        yield Answers(Frames(reader, address), address)
    finally:
        # Not close(): that waits until the server has read the whole question, which a hung one never does.
        writer.transport.abort()
        sender.cancel()
        await asyncio.wait([sender])
        if not sender.cancelled() and (failure := sender.exception()):
            raise failure


async def _send(question: Iterable[Event], writer: asyncio.StreamWriter) -> None:
    try:
        for event in question:
            await async_write_event(event, writer)
    except ConnectionError:
        # The server refused before it had heard everything. Its answer, or its silence, tells why.
        return
    except ValueError:
        # Half a character in a text of ours: a mistake to be seen, not a silence to be waited for.
        writer.transport.abort()
        raise
