"""Which of vLLM's routes may be asked from outside. ASGI middleware inside vLLM's process: ``--middleware``.

One process listens on one socket, and renaming it changes nothing about its routes. So everything that is
not on the list below is 404, also what a later vLLM adds, but for one route of our own: vLLM's
configuration as it really is, for who knows the key of this launch. vLLM itself shows it as
``/server_info`` in its development mode alone; that opens
``/collective_rpc`` (any method of any worker) and ``/sleep`` beside it, and answers 500 in an environment
without pip (0.32.0: it lists the installed packages). docs/decisions/vllm.md.
"""

from __future__ import annotations

import hmac
import json
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from ondam_engines.vllm.timings import Timings

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

CHAT = "/v1/chat/completions"

PUBLIC = frozenset(
    {CHAT, "/v1/completions", "/v1/models", "/health", "/ping", "/version", "/metrics", "/tokenize"}
)
"""Compared with the path letter by letter, before anything takes it apart."""

KEY = "ONDAM_VLLM_KEY"
"""Variable with the key. Without it nobody passes."""

HEADER = b"x-ondam-key"

CONFIG = "/ondam/vllm_config"
"""Answers ``{"vllm_config": …}``, as ``/server_info?config_format=json`` does."""


class Doors:
    """``app``, seen from outside. The answer's chunks of a chat get ``timings`` on their way."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._key = os.environ.get(KEY, "").encode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request, one WebSocket, or the server's own start and end."""
        kind = scope["type"]
        if kind == "lifespan":
            await self._app(scope, receive, send)
        elif kind == "http" and scope["path"] == CHAT:
            await self._app(scope, receive, Timings(send, time.monotonic))
        elif kind == "http" and scope["path"] in PUBLIC:
            await self._app(scope, receive, send)
        elif kind == "http" and scope["path"] == CONFIG and self._knows(scope):
            await answer(send, 200, configuration(scope["app"]))
        elif kind == "http":
            await answer(send, 404, NOT_FOUND)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _knows(self, scope: Message) -> bool:
        given = [value for name, value in scope["headers"] if name == HEADER]
        return bool(self._key) and len(given) == 1 and hmac.compare_digest(given[0], self._key)


async def answer(send: Send, status: int, body: bytes) -> None:
    """A whole answer in JSON."""
    await send({"type": "http.response.start", "status": status, "headers": [CONTENT_TYPE]})
    await send({"type": "http.response.body", "body": body})


def configuration(app: Any) -> bytes:
    """Of vLLM's application: what it was started with, after everything that changes its mind."""
    import pydantic
    from vllm.config import VllmConfig

    config = pydantic.TypeAdapter(VllmConfig).dump_python(app.state.vllm_config, mode="json", fallback=str)
    return json.dumps({"vllm_config": config}).encode()


CONTENT_TYPE = (b"content-type", b"application/json")
NOT_FOUND = b'{"detail":"Not Found"}'
