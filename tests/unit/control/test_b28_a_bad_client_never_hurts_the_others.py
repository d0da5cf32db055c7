"""Field case B28 on the control socket."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import aiohttp
import numpy as np
import psutil
import pytest
import soundfile
from tests.unit.control.fake_daemon import FakeDaemon, until

from ondam.control import body, calls, server, sound, wire
from ondam.control.client import Client
from ondam.control.server import Server
from ondam.control.wire import KIB, MIB
from ondam.errors import ControlError
from ondam.types import Audio


async def exchange(path: Path, request: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to raw bytes; (0, b"") when the connection was closed without one."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        async with asyncio.timeout(10):
            try:
                writer.write(request)
                await writer.drain()
                answer = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in answer.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                return int(answer.split()[1]), await reader.readexactly(length)
            except (ConnectionError, asyncio.IncompleteReadError):
                return 0, b""
    finally:
        writer.close()


def post(path: str, payload: bytes) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(payload)}\r\n\r\n".encode() + payload


@pytest.mark.parametrize(
    "payload",
    [
        b"[]",
        b"null",
        b"1",
        b'{"text": 1}',
        b'{"text": ""}',
        b'{"text": " \\n "}',
        b'{"text": NaN}',
        b'{"text": "a", "volume": 11}',
        b'{"text": "a", "speak": "yes"}',
        b"{",
        b"\xff\xfe\x00",
        b"[" * 60_000,
        b"",
    ],
)
async def test_nonsense_is_refused_by_name_and_never_reaches_the_daemon(
    client: Client, daemon: FakeDaemon, socket_path: Path, payload: bytes
) -> None:
    status, answer = await exchange(socket_path, post("/api/ask", payload))
    assert status == 400
    assert json.loads(answer)["error"]["code"] == "control_bad_request"
    assert daemon.asked == []
    assert (await client.status())["pid"] == 77


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"x" * 200_000,
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
        b"POST /api/ask HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/ask HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /api/ask HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFF0\r\n",
        b"POST /api/ask HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x00\xff" * 100,
    ],
)
async def test_broken_http_ends_that_connection_alone(
    client: Client,
    daemon: FakeDaemon,
    socket_path: Path,
    request_bytes: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body, "BODY_TIMEOUT_S", 0.2)
    status, _ = await exchange(socket_path, request_bytes)
    assert status == 0 or status >= 400
    assert daemon.asked == []
    assert (await client.status())["pid"] == 77


async def test_a_body_over_the_bound_is_refused_before_it_is_read(socket_path: Path, server: Server) -> None:
    head = b"POST /api/ask HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n"
    status, answer = await exchange(socket_path, head)
    assert status == 413
    assert json.loads(answer)["error"]["facts"] == {"limit": 64 * KIB}


async def test_an_endless_chunked_body_is_cut_off_and_costs_no_memory(
    client: Client, daemon: FakeDaemon, socket_path: Path
) -> None:
    before = psutil.Process().memory_info().rss
    chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
    _, writer = await asyncio.open_unix_connection(socket_path)
    writer.write(b"POST /api/ask HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(20):
                while True:
                    writer.write(chunk)
                    await writer.drain()
    finally:
        writer.close()
    assert psutil.Process().memory_info().rss - before < 32 * MIB
    assert (await client.status())["pid"] == 77


async def test_a_body_that_dribbles_in_is_given_up(
    socket_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "BODY_TIMEOUT_S", 0.05)
    status, answer = await exchange(
        socket_path, b"POST /api/ask HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{"
    )
    assert status == 408
    assert json.loads(answer)["error"]["code"] == "control_body_too_slow"


async def test_half_a_request_then_gone_leaves_nothing_behind(client: Client, socket_path: Path) -> None:
    for _ in range(100):
        _, writer = await asyncio.open_unix_connection(socket_path)
        writer.write(b"POST /api/ask HTTP/1.1\r\nHost: a\r\nContent-Le")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    assert (await client.status())["pid"] == 77


async def test_idle_clients_are_bounded_and_told_so(socket_path: Path, server: Server) -> None:
    idle = [socket.socket(socket.AF_UNIX) for _ in range(500)]
    try:
        for connection in idle:
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, str(socket_path))
        refused = idle[-1]
        answer = await asyncio.get_running_loop().sock_recv(refused, 4096)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert json.loads(answer.split(b"\r\n\r\n")[1])["error"]["code"] == "control_too_many_clients"
    finally:
        for connection in idle:
            connection.close()
    async with asyncio.timeout(5), Client(socket_path) as client:
        while True:
            try:
                assert (await client.status())["pid"] == 77
                break
            except ControlError:  # the server has yet to notice that they left
                await asyncio.sleep(0.01)


HOARDER = """
import os, socket, sys, time
held = []
for _ in range(int(sys.argv[3])):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    one.sendall(bytes.fromhex(sys.argv[2]))
    held.append(one)
print(flush=True)
time.sleep(60)
"""

UPGRADE = (
    b"GET /api/events HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /api/st", b"POST /api/ask HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", UPGRADE]
)
async def test_a_program_that_takes_every_connection_shuts_nobody_out(
    client: Client, socket_path: Path, sent: bytes
) -> None:
    command = [sys.executable, "-c", HOARDER, str(socket_path), sent.hex(), "150"]
    hoarder = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert hoarder.stdout is not None and await hoarder.stdout.readline()
        for _ in range(5):
            assert (await client.status())["pid"] == 77
        async with aclosing(client.events()) as events:
            assert (await anext(events))["type"] == "snapshot"
            assert (await client.status())["pid"] == 77
    finally:
        hoarder.kill()
        await hoarder.wait()


async def test_a_connection_that_never_asks_is_closed(
    daemon: FakeDaemon, socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE_S", 0.05)
    impatient = Server(daemon, socket_path)
    await impatient.start()
    try:
        reader, writer = await asyncio.open_unix_connection(socket_path)
        writer.write(b"GET /api/status HT")
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()
    finally:
        await impatient.stop()


async def test_a_subscriber_that_never_reads_is_dropped_and_the_others_hear_everything(
    client: Client, daemon: FakeDaemon, socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "SEND_TIMEOUT_S", 0.1)
    deaf = socket.socket(socket.AF_UNIX)
    deaf.connect(str(socket_path))
    deaf.sendall(SUBSCRIBE)
    events = client.events()
    await anext(events)
    await until(lambda: daemon.broadcast.subscribers == 2)
    async with asyncio.timeout(10):
        sent = 0
        while daemon.broadcast.subscribers == 2:
            text = str(sent) + "a" * 20_000
            daemon.broadcast.publish({"type": "notice", "session": "s", "code": text})
            heard = await anext(events)
            assert heard["type"] == "notice"
            assert heard["code"] == text
            sent += 1
            await asyncio.sleep(0)
    deaf.close()
    assert (await client.status())["pid"] == 77


SUBSCRIBE = (
    b"GET /api/events HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.parametrize("full", [False, True])
async def test_sixty_subscribers_that_froze_do_not_hold_up_the_end(
    server: Server, daemon: FakeDaemon, socket_path: Path, full: bool
) -> None:
    frozen = [socket.socket(socket.AF_UNIX) for _ in range(60)]
    try:
        for connection in frozen:
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, str(socket_path))
            connection.sendall(SUBSCRIBE)
        await until(lambda: daemon.broadcast.subscribers == 60)
        for _ in range(6 if full else 0):  # more than a socket takes: the server waits to get rid of it
            daemon.broadcast.publish({"type": "notice", "session": "s", "code": "a" * 200_000})
        await asyncio.sleep(0)
        began = time.monotonic()
        await server.stop()
        assert time.monotonic() - began < 1.5
    finally:
        for connection in frozen:
            connection.close()


async def test_a_subscription_that_fails_is_told_in_the_log_and_ends(
    client: Client, daemon: FakeDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    events = client.events()
    await anext(events)
    daemon.broadcast.publish({"type": "notice", "session": "s", "code": object()})  # type: ignore[typeddict-item]
    with pytest.raises(ControlError) as caught:
        async with asyncio.timeout(5):
            await anext(events)
    assert caught.value.code == "daemon_gone"
    assert "a subscriber was lost" in caplog.text
    assert "TypeError" in caplog.text


async def test_turns_from_files_leave_uploads_to_others(client: Client, daemon: FakeDaemon) -> None:
    wav = sound.encode(Audio(np.zeros(160, np.int16), 16_000))
    daemon.hold = asyncio.Event()
    turns = [asyncio.create_task(client.wav_turn(wav)) for _ in range(wire.WAV_TURNS + 2)]
    await until(lambda: len(daemon.asked) == wire.WAV_TURNS)
    heard = asyncio.create_task(client.transcribe(wav))
    await until(lambda: daemon.asked[-1][0] == "transcribe")
    assert len(daemon.asked) == wire.WAV_TURNS + 1
    daemon.hold.set()
    await asyncio.gather(heard, *turns)


async def test_a_subscriber_that_shouts_is_closed(
    client: Client, daemon: FakeDaemon, socket_path: Path
) -> None:

    connector = aiohttp.UnixConnector(str(socket_path))
    async with (
        asyncio.timeout(5),
        aiohttp.ClientSession(connector=connector) as session,
        session.ws_connect("http://ondam/api/events") as stream,
    ):
        await stream.receive()
        await stream.send_str("a" * 70_000)
        assert (await stream.receive()).type is aiohttp.WSMsgType.CLOSE
    assert (await client.status())["pid"] == 77


async def test_an_unknown_path_is_named(socket_path: Path, server: Server) -> None:
    status, answer = await exchange(socket_path, b"GET /api/nothing HTTP/1.1\r\nHost: a\r\n\r\n")
    assert status == 404
    assert json.loads(answer)["error"]["facts"] == {"method": "GET", "path": "/api/nothing"}


async def test_a_little_flac_that_holds_hours_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:

    file = io.BytesIO()
    soundfile.write(file, np.zeros(200_000, np.int16), 16_000, format="FLAC")
    assert len(file.getvalue()) < 10_000
    with pytest.raises(ControlError) as caught:
        sound.decode(file.getvalue(), 160_000)
    assert caught.value.code == "control_sound_too_long"
    assert caught.value.facts == {"seconds": 10}
    with pytest.raises(ControlError):
        await client.transcribe(b"RIFF\x00\x00\x00\x00WAVE")


async def test_a_fault_of_ours_is_told_in_the_log_and_costs_that_call_alone(
    client: Client,
    daemon: FakeDaemon,
    socket_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(limit: int) -> list[wire.Turn]:
        raise LookupError("what nobody thought of")

    monkeypatch.setattr(daemon, "turns", broken)
    status, answer = await exchange(socket_path, b"GET /api/turns?limit=3 HTTP/1.1\r\nHost: a\r\n\r\n")
    assert status == 500
    assert json.loads(answer)["error"]["code"] == "internal_fault"
    assert "a call broke down: GET /api/turns" in caplog.text
    assert "LookupError" in caplog.text
    assert (await client.status())["pid"] == 77
