"""llama.cpp's ``timings`` in the chunks of vLLM's streamed answers: what the engine itself took so far."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

EVENT, END = b"data: {", b"}"
BETWEEN = b"\n\n"

STREAM = b"text/event-stream"


class Timings:
    """An ASGI ``send`` for one chat. ``clock`` gives seconds; made when the request has come.

    Every chunk gets ``prompt_ms`` (to the first chunk, which vLLM sends with the first token),
    ``predicted_ms`` (since) and ``predicted_n`` (chunks so far that may hold text: tokens, or the few that
    were guessed right together). How long the prompt was and what of it was cached stand in the ``usage``
    at the end.
    """

    def __init__(
        self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]], clock: Callable[[], float]
    ) -> None:
        self._send = send
        self._clock = clock
        self._began = clock()
        self._first: float | None = None
        self._chunks = -1  # the first names the role and holds nothing
        self._streams = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Pass ``message`` on."""
        if message["type"] == "http.response.start":
            self._streams = any(
                name.lower() == b"content-type" and value.startswith(STREAM)
                for name, value in message["headers"]
            )
        elif self._streams and message.get("body"):
            message = {**message, "body": self._timed(message["body"])}
        await self._send(message)

    def _timed(self, body: bytes) -> bytes:
        """vLLM sends whole events. What is no chunk stays as it is."""
        return BETWEEN.join(self._chunk(event) for event in body.split(BETWEEN))

    def _chunk(self, event: bytes) -> bytes:
        if not (event.startswith(EVENT) and event.endswith(END)) or event.startswith(b'data: {"error"'):
            return event
        now = self._clock()
        if self._first is None:
            self._first = now
        if b'"choices":[]' not in event:
            self._chunks += 1
        timings = {
            "prompt_ms": round((self._first - self._began) * 1000, 3),
            "predicted_ms": round((now - self._first) * 1000, 3),
            "predicted_n": max(self._chunks, 0),
        }
        return event[:-1] + b',"timings":' + json.dumps(timings).encode() + END
