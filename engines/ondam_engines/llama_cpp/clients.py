"""Who asked, what for, and whether they are still there: an ASGI wrapper around the server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

CHAT = "/v1/chat/completions"

LONGEST_BODY = 4 * 2**20
"""Bytes of a request; a context of 100,000 tokens fits several times."""


@dataclass(eq=False, slots=True)
class Client:
    """One chat request. Written by the event loop, read by the thread that computes."""

    wants_usage: bool = False
    """``stream_options.include_usage``, which the server itself does not know."""
    gone: bool = False


ASKING: ContextVar[Client | None] = ContextVar("asking", default=None)
"""The request being served. Threads that the server starts for it inherit it."""


class Flag(Protocol):
    """What stops the computing (``abort.StopFlag``)."""

    def up(self) -> None:
        """Stop it."""

    def down(self) -> None:
        """Let it go on."""


class Floor:
    """The one client that is being computed for; one that leaves stops its own request and no other's."""

    def __init__(self, flag: Flag) -> None:
        self._flag = flag
        self._lock = threading.Lock()
        self._speaking: Client | None = None

    def take(self, client: Client) -> bool:
        """Compute for ``client`` from now on. False when it has left already."""
        with self._lock:
            self._speaking = client
            self._flag.down()
            return not client.gone

    def leave(self, client: Client) -> None:
        """``client`` closed its connection."""
        with self._lock:
            client.gone = True
            if self._speaking is client:
                self._flag.up()


class Clients:
    """Reads a chat request before the server does, and watches its connection until it is answered."""

    def __init__(self, app: App, floor: Floor) -> None:
        self._app = app
        self._floor = floor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http" or scope["path"] != CHAT or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:
            return  # it left while it was still asking
        if len(body) > LONGEST_BODY:
            await _refuse(send)
            return

        client = Client(_wants_usage(body))
        left = asyncio.Event()

        async def watch() -> None:
            # Nobody else may wait on the connection: of two that wait, uvicorn wakes one.
            while (await receive())["type"] != "http.disconnect":
                pass
            self._floor.leave(client)
            left.set()

        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> MutableMapping[str, Any]:
            if messages:
                return messages.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        token = ASKING.set(client)
        watching = asyncio.create_task(watch())
        try:
            await self._app(scope, replay, send)
        finally:
            watching.cancel()
            ASKING.reset(token)


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or a byte more than allowed of it. None when the client left."""
    body = b""
    while len(body) <= LONGEST_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return body


def _wants_usage(body: bytes) -> bool:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return False  # the server refuses it, in OpenAI's words
    options = request.get("stream_options") if isinstance(request, dict) else None
    return isinstance(options, dict) and options.get("include_usage") is True


async def _refuse(send: Send) -> None:
    text = json.dumps(
        {"error": {"message": f"longer than {LONGEST_BODY} bytes", "type": "invalid_request_error"}}
    )
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
