"""Servers that answer oddly when they are asked whether they are there: real ones, on this machine alone."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from aiohttp import web

from ondam.errors import EngineError
from ondam.planner.plan import OutsideEngine
from ondam.supervisor.first_answer import first_answer
from ondam.supervisor.inquiry import inquire
from ondam.supervisor.keeper import signal_name
from ondam.supervisor.readiness import LARGEST, ask, ping, reachable

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[..., Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    runners: list[web.AppRunner] = []

    async def start(handle: Handle, tls: ssl.SSLContext | None = None) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runners.append(web.AppRunner(app))
        await runners[-1].setup()
        site = web.TCPSite(runners[-1], "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        return f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"

    yield start
    for runner in runners:
        await runner.cleanup()


def always(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Handle:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=body, status=status, headers=headers)

    return handle


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nobody_is_followed_to_an_address_that_the_user_did_not_write(
    serve: Serve, status: int
) -> None:
    asked: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({})

    there = await serve(elsewhere)
    address = await serve(always(b"", status, {"Location": f"{there}/stolen"}))
    assert await reachable(address, "openai") is False
    with pytest.raises(EngineError) as raised:
        await first_answer(OutsideEngine("llm", address, "m"))
    assert raised.value.code == "llm_refused"
    assert f"→ {there}/stolen" in str(raised.value.facts["reason"])
    assert await ping(address, "openai") is False
    await inquire(address, "m")

    # Its health says yes, and the question itself is sent on.
    async def half(request: web.Request) -> web.Response:
        if request.path == "/health":
            return web.Response()
        return web.Response(status=status, headers={"Location": f"{there}/stolen"})

    with pytest.raises(EngineError):
        await ask(await serve(half), "openai", "llm", "m", "ko")
    assert asked == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>sign in</html>",
        b"[" * 200_000,
        b'{"choices": ' * 200_000,
        b'{"choices": [{"message": ' + b"9" * 5000 + b"}]}",
        b'{"choices": [{"message": {"content": NaN}}]}',
        b'{"choices": {}}',
        b'{"choices": []}',
        b'{"choices": [null]}',
        b"\xff\xfe\x00",
        b'{"x": "' + b"a" * (3 * LARGEST) + b'"}',
    ],
    ids=["empty", "page", "deep", "deep object", "digits", "nan", "object", "none", "null", "bytes", "long"],
)
async def test_what_is_no_answer_is_told_as_such(serve: Serve, body: bytes) -> None:
    with pytest.raises(EngineError) as raised:
        await ask(await serve(always(body)), "openai", "llm", "m", "en")
    assert raised.value.code == "engine_no_answer"


@pytest.mark.timeout(20)
async def test_an_answer_without_end_is_not_taken_in(serve: Serve) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b" " * 65536)
        return response

    async with asyncio.timeout(10):
        with pytest.raises(EngineError):
            await ask(await serve(flood), "openai", "llm", "m", "en")


async def test_a_certificate_that_nobody_vouches_for_is_named(serve: Serve, tmp_path: Path) -> None:
    address = await serve(always(b"{}"), self_signed(tmp_path))
    with pytest.raises(EngineError) as raised:
        await reachable(address, "openai")
    assert raised.value.code == "engine_no_answer"
    assert "self-signed certificate" in str(raised.value.facts["reason"])


async def test_an_encoding_that_nobody_knows_changes_nothing(serve: Serve) -> None:
    body = b'{"choices": [{"message": {"content": "a"}}]}'
    handle = always(body, headers={"Content-Type": "application/json; charset=nobody"})
    assert await ask(await serve(handle), "openai", "llm", "m", "en") == ()


def test_every_signal_has_a_name() -> None:
    assert [signal_name(number) for number in (9, 40)] == ["SIGKILL", "signal 40"]


def self_signed(folder: Path) -> ssl.SSLContext:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    key, made = folder / "key.pem", folder / "made.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    written = ["-keyout", str(key), "-out", str(made), "-subj", "/CN=localhost"]
    subprocess.run([openssl, "req", "-x509", *kind, *written], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context
