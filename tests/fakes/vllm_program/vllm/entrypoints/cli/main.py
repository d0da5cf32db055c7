"""``vllm serve``: takes the real arguments, says what a recorded run said, and answers as the recording does.

``FAKE_VLLM`` is a JSON object: ``recording`` (folder), ``ends`` (status to end with while loading),
``loads`` (without end), ``file`` (gets the arguments and the core's process id), ``bodies`` (route to what
it answers instead). The engine core is a process of its own: when it is killed, ``/health`` is 503 and
the server lives on, as vLLM's does for seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import MutableMapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Message = MutableMapping[str, Any]


class App:
    """The routes, as an ASGI application."""

    def __init__(
        self, recording: Path, core: subprocess.Popen[bytes], model: str, bodies: dict[str, str]
    ) -> None:
        self.recording = recording
        self.core = core
        self.model = model
        self.bodies = bodies
        info = recording / "server_info.json"
        # A run that ended while it loaded has none.
        config = json.loads(info.read_bytes())["vllm_config"] if info.exists() else {}
        self.state = SimpleNamespace(vllm_config=config)

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        path = scope["path"]
        asked = json.loads((await receive())["body"] or b"{}")
        kind, status = "application/json", 200
        if path == "/health":
            body, status = b"", 200 if self.core.poll() is None else 503
        elif path == "/metrics":
            body = (self.recording / "metrics.txt").read_bytes()
        elif path == "/v1/models":
            body = json.dumps({"data": [{"id": self.model}]}).encode()
        elif path == "/v1/chat/completions" and asked.get("stream"):
            kind, body = (
                "text/event-stream; charset=utf-8",
                (self.recording / "thinking-off.sse").read_bytes(),
            )
        elif path == "/v1/chat/completions":
            message = {"role": "assistant", "content": "Hello.", "reasoning": None}
            body = json.dumps({"choices": [{"message": message}], "asked": asked}).encode()
        elif path == "/collective_rpc":
            body = b'{"results":["anything"]}'
        else:
            body, status = b'{"detail":"Not Found"}', 404
        body = self.bodies.get(path, "").encode("latin-1") or body
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def answer(app: Any, outer: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request of HTTP/1.1, then the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = [tuple(line.split(": ", 1)) for line in head[1:] if line]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        body = await reader.readexactly(length)

        async def receive() -> Message:
            return {"type": "http.request", "body": body}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                lines = [f"HTTP/1.1 {message['status']} X", "connection: close"]
                lines += [f"{name.decode()}: {value.decode()}" for name, value in message["headers"]]
                writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
            else:
                writer.write(message["body"])
                await writer.drain()

        raw = [(name.lower().encode(), value.encode()) for name, value in headers]
        scope = {
            "type": "http",
            "method": method,
            "path": path.partition("?")[0],
            "headers": raw,
            "app": outer,
        }
        await app(scope, receive, send)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # a client that only looked whether somebody listens
    finally:
        writer.close()


async def serve(given: Any, told: dict[str, Any], core: subprocess.Popen[bytes]) -> None:
    """Listen first, load then, as vLLM does: connections wait, unanswered."""
    recording = Path(told["recording"])
    ready = asyncio.Event()
    outer = App(recording, core, given.served_model_name, told.get("bodies", {}))
    module, _, name = given.middleware.rpartition(".")
    app = getattr(import_module(module), name)(outer)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ready.wait()
        await answer(app, outer, reader, writer)

    async with await asyncio.start_unix_server(connected, given.uds):
        sys.stdout.buffer.write((recording / "log.txt").read_bytes())
        sys.stdout.buffer.flush()
        if "ends" in told:
            os._exit(told["ends"])
        if not told.get("loads"):
            ready.set()
        await asyncio.Event().wait()


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model", type=Path)
    parser.add_argument("--uds", required=True)
    parser.add_argument("--served-model-name")
    parser.add_argument("--middleware", required=True)
    given, _ = parser.parse_known_args()
    told = json.loads(os.environ["FAKE_VLLM"])
    # Of this process's group, and not tied to its life, like vLLM's engine core.
    core = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if "file" in told:
        Path(told["file"]).write_text(json.dumps({"arguments": sys.argv[1:], "core": core.pid}))
    asyncio.run(serve(given, told, core))
