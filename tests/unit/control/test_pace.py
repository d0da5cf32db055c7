"""Who knocks or asks too often waits, and nobody else does."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.control import pace
from ondam.control.client import Client
from ondam.control.pace import LONGEST_WAIT_S, Pace, Rate
from ondam.control.server import Server
from ondam.errors import ControlError


def test_a_burst_is_free_and_then_comes_the_rate() -> None:
    rate = Pace(Rate(per_s=10, at_once=3))
    assert [rate.wait_s(1, 100.0) for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    assert rate.wait_s(1, 100.2) == pytest.approx(0.1)  # two have come back, and three are ahead of it
    assert rate.wait_s(1, 200.0) == 0  # all is forgotten


def test_another_process_does_not_wait() -> None:
    rate = Pace(Rate(10, 1))
    for _ in range(9):
        rate.wait_s(1, 0.0)
    assert rate.wait_s(2, 0.0) == 0


def test_who_would_wait_too_long_takes_nothing() -> None:
    rate = Pace(Rate(per_s=1, at_once=1))
    waits = [rate.wait_s(1, 0.0) for _ in range(100)]
    assert waits[:6] == [0, 1, 2, 3, 4, 5]
    assert set(waits[6:]) == {6}
    assert rate.wait_s(1, 1.0) == LONGEST_WAIT_S  # the next one may come again


def test_only_so_many_processes_are_remembered() -> None:
    rate = Pace(Rate(1, 1))
    for process in range(pace.MOST_KNOWN + 10):
        rate.wait_s(process, 0.0)
    assert len(rate._owed) == pace.MOST_KNOWN


async def test_a_client_that_asks_too_often_waits_and_one_far_too_often_is_refused(
    daemon: FakeDaemon, socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.control.server.REQUESTS", Rate(per_s=20, at_once=5))
    server = Server(daemon, socket_path)
    await server.start()
    try:
        async with Client(socket_path) as client:
            loop = asyncio.get_running_loop()
            began = loop.time()
            for _ in range(9):
                await client.status()
            assert loop.time() - began > 0.15  # four had to wait 50 ms each
            monkeypatch.setattr(pace, "LONGEST_WAIT_S", 0.5)
            monkeypatch.setattr("ondam.control.server.LONGEST_WAIT_S", 0.5)
            asked = [asyncio.create_task(client.status()) for _ in range(200)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
    finally:
        await server.stop()
    refused = [error for error in answers if isinstance(error, ControlError)]
    assert {error.code for error in refused} <= {"control_too_fast", "control_too_many_clients"}
    assert "control_too_fast" in {error.code for error in refused}


KNOCKER = """
import socket, sys, time
while True:
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(sys.argv[1])
            one.sendall(b"GET /api/status HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
            one.settimeout(1)
            one.recv(100)
    except OSError:
        time.sleep(0.001)
"""


@pytest.fixture
def knocking(socket_path: Path) -> Iterator[Callable[[], None]]:
    """Begins two processes that knock without end."""
    processes: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        command = [sys.executable, "-c", KNOCKER, str(socket_path)]
        processes.extend(subprocess.Popen(command) for _ in range(2))

    yield begin
    for process in processes:
        process.kill()
        process.wait()


async def test_a_process_that_knocks_without_end_holds_up_no_other(
    daemon: FakeDaemon,
    socket_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    knocking: Callable[[], None],
) -> None:
    monkeypatch.setattr("ondam.control.server.CONNECTIONS", Rate(per_s=50, at_once=20))
    monkeypatch.setattr("ondam.control.server.REQUESTS", Rate(per_s=50, at_once=20))
    server = Server(daemon, socket_path)
    await server.start()
    knocking()
    try:
        await asyncio.sleep(0.5)
        loop = asyncio.get_running_loop()
        async with Client(socket_path) as client:
            for _ in range(10):
                began = loop.time()
                assert (await client.status())["pid"] == 77
                assert loop.time() - began < 0.5
                await asyncio.sleep(0.02)
        assert len(daemon.read_in) < 2 * (20 + 50 * 3) + 10
    finally:
        await server.stop()


async def test_those_that_wait_to_be_let_in_are_bounded_and_told(
    daemon: FakeDaemon, socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.control.server.CONNECTIONS", Rate(per_s=4, at_once=1))
    monkeypatch.setattr("ondam.control.server.MOST_WAITING", 3)
    server = Server(daemon, socket_path)
    await server.start()
    loop = asyncio.get_running_loop()
    knocking = [socket.socket(socket.AF_UNIX) for _ in range(5)]
    try:
        for one in knocking:
            one.setblocking(False)
            await loop.sock_connect(one, str(socket_path))
            await asyncio.sleep(0.01)
        assert (await loop.sock_recv(knocking[4], 100)).startswith(b"HTTP/1.1 503 ")
        # One that had to wait is let in, and answered.
        await loop.sock_sendall(knocking[2], b"GET /api/status HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(5):
            assert (await loop.sock_recv(knocking[2], 100)).startswith(b"HTTP/1.1 200 ")
    finally:
        await server.stop()
        for one in knocking:
            one.close()


async def test_a_crowd_that_comes_in_one_moment_is_told_and_not_left_outside(
    daemon: FakeDaemon, socket_path: Path
) -> None:
    server = Server(daemon, socket_path)
    await server.start()
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(300)]
    try:
        for one in crowd:  # nobody is let in meanwhile: the event loop stands still
            one.setblocking(False)
            one.connect(str(socket_path))
    finally:
        for one in crowd:
            one.close()
        await server.stop()
