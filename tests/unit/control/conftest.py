from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.control.client import Client
from ondam.control.server import Server


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Short, whatever the test's name: a socket's path may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        yield Path(folder) / "run" / "control.sock"


@pytest.fixture
def daemon() -> FakeDaemon:
    return FakeDaemon()


@pytest.fixture
async def server(daemon: FakeDaemon, socket_path: Path) -> AsyncIterator[Server]:
    server = Server(daemon, socket_path)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(server: Server, socket_path: Path) -> AsyncIterator[Client]:
    async with Client(socket_path) as client:
        yield client
