"""A server that does exactly what a test says, byte by byte, on a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from wyoming.event import Event, async_read_event, async_write_event

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = SSE + b"Transfer-Encoding: chunked\r\n\r\n"


def framed(body: bytes) -> bytes:
    """One chunk of HTTP's chunked transfer."""
    return b"%x\r\n%s\r\n" % (len(body), body)


END_OF_BODY = b"0\r\n\r\n"


def said(content: str | None = None, finish_reason: str | None = None, **more: Any) -> bytes:
    """A chunk of an answer as a server-sent event."""
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice], **more}, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


@dataclass
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        """Each piece in a packet of its own."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def http_request(self) -> dict[str, Any]:
        """Reads one request; its JSON body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        body: dict[str, Any] = json.loads(await self.reader.readexactly(length))
        return body

    async def event(self) -> Event:
        """Reads one Wyoming event."""
        event = await async_read_event(self.reader)
        assert event is not None
        return event

    async def tell(self, kind: str, data: dict[str, Any] | None = None, payload: bytes | None = None) -> None:
        """Writes one Wyoming event."""
        await async_write_event(Event(kind, data or {}, payload), self.writer)

    async def left(self) -> None:
        """Returns when the client has closed the connection."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass  # gone is gone

    def reset(self) -> None:
        """Closes a TCP connection with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class Server:
    """``accepted`` and ``open`` count connections; ``failures`` are a script's own exceptions."""

    script: Script
    address: str = ""
    accepted: int = 0
    open: int = 0
    failures: list[BaseException] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.accepted += 1
        self.open += 1
        try:
            await self.script(Connection(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # a client may leave at any time; what it should have sent is asserted by the test
        except Exception as failure:  # noqa: BLE001 - handed to the test, which fails with it
            self.failures.append(failure)
        finally:
            self.open -= 1
            self.tasks.discard(task)
            writer.close()


Serve = Callable[..., Awaitable[Server]]
"""``await serve(script)``: see the fixture."""
