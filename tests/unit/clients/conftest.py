from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clients.scripted import Script, Serve, Server
from tests.unit.clients.virtual_loop import VirtualLoop


def pytest_asyncio_loop_factories(
    config: Any, item: Any
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """``await serve(script)`` on a Unix socket, ``serve(script, scheme="tcp")`` or ``"http"`` on loopback."""
    running: list[tuple[asyncio.AbstractServer, Server]] = []

    async def start(script: Script, scheme: str = "unix") -> Server:
        server = Server(script)
        listener: asyncio.Server
        if scheme == "unix":
            path = tmp_path / f"{len(running)}.sock"
            listener = await asyncio.start_unix_server(server, path)
            server.address = f"unix://{path}"
        else:
            listener = await asyncio.start_server(server, "127.0.0.1", 0)
            port = listener.sockets[0].getsockname()[1]
            server.address = f"{scheme}://127.0.0.1:{port}" + ("/v1" if scheme == "http" else "")
        running.append((listener, server))
        return server

    yield start
    for listener, server in running:
        listener.close()
        for task in list(server.tasks):
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
        assert not server.failures, server.failures
