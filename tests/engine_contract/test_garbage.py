"""What is no request does the next request no harm."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest
from tests.engine_contract.exercise import Answering, Exercise
from tests.engine_contract.launched import Launched

MOST = 4 << 20
"""Bytes of what never ends that are sent before we give up waiting to be cut off."""

WYOMING = {
    "nothing": b"",
    "half a line": b'{"type": "synth',
    "a list": b"[]\n",
    "null": b"null\n",
    "a type that is no text": b'{"type": 1}\n',
    "not a number": b'{"type": "ping", "data": {"a": NaN}}\n',
    "bytes that are no text": b'{"type": "\xff\xfe"}\n',
    "a length of 4 GiB": b'{"type": "audio-chunk", "payload_length": 4294967295}\n' + b"x" * 1000,
    "a length below zero": b'{"type": "audio-chunk", "payload_length": -1}\n',
    "a length in words": b'{"type": "ping", "data_length": "four"}\n',
    "half a payload": b'{"type": "audio-chunk", "payload_length": 100}\nxx',
    "deep nesting": b"[" * 100_000 + b"\n",
    "no samples": b'{"type": "audio-stop"}\n',
    "an odd format": b'{"type":"audio-start","data":{"rate":-1,"width":"x","channels":[]}}\n',
    "text that is none": b'{"type": "synthesize", "data": {"text": ["a"]}}\n',
    "a voice that is none": b'{"type": "synthesize", "data": {"text": "a", "voice": 7}}\n',
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CHAT = POST + b"Content-Length: %d\r\n\r\n%s"
HELLO = [{"role": "user", "content": "Hello"}]


def chat(body: object) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return CHAT % (len(text), text)


OPENAI = {
    "nothing": b"",
    "half a head": b"POST /v1/chat/completions HT",
    "another protocol": b'{"type": "ping"}\n\n\n',
    "bytes": bytes(range(256)) * 16,
    "half a body": (CHAT % (100, b'{"mess')),
    "no JSON": chat(b"{"),
    "a list": chat([]),
    "null": chat(b"null"),
    "no messages": chat({}),
    "messages that are none": chat({"messages": 7}),
    "a message that is none": chat({"messages": [1]}),
    "a role that is none": chat({"messages": [{"role": 1, "content": {}}]}),
    "tokens below zero": chat({"messages": HELLO, "max_tokens": -5, "stream": True}),
    "tokens in words": chat({"messages": HELLO, "max_tokens": "few"}),
    "not a number": chat({"messages": HELLO, "temperature": float("nan"), "max_tokens": 1}),
    "a length of 4 GiB": POST + b"Content-Length: 4294967295\r\n\r\nx",
    "a length below zero": POST + b"Content-Length: -1\r\n\r\n",
    "deep nesting": chat(b"[" * 10_000),
    "a route that is none": b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
}


async def sent(engine: Launched, garbage: bytes) -> None:
    """Sends it, takes what comes back for a moment, and leaves."""
    reader, writer = await asyncio.open_unix_connection(engine.socket)
    # An engine may hang up while it is being written to, and owes no answer.
    with suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(1):
            writer.write(garbage)
            await writer.drain()
            while await reader.read(65536):
                pass
    writer.transport.abort()


@pytest.mark.parametrize("name", sorted(WYOMING.keys() | OPENAI.keys()))
async def test_b28_a_bad_client_does_the_next_one_no_harm(
    engine: Launched, exercise: Exercise, name: str
) -> None:
    protocol = engine.prepared.folder.manifest.protocol
    garbage = (WYOMING if protocol == "wyoming" else OPENAI).get(name)
    if garbage is None:
        pytest.skip(f"means nothing in {protocol}")
    before = engine.rss_mib()
    await sent(engine, garbage)
    async with asyncio.timeout(30):
        await exercise.short()
    assert engine.rss_mib() < before + 64


async def test_b28_a_line_without_end_is_cut_off(engine: Launched, exercise: Exercise) -> None:
    _, writer = await asyncio.open_unix_connection(engine.socket)
    total = 0
    before = engine.rss_mib()
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(5):
            while total < MOST:
                writer.write(b"x" * 65536)
                await writer.drain()
                total += 65536
    writer.transport.abort()
    async with asyncio.timeout(30):
        await exercise.short()
    assert engine.rss_mib() < before + 32


async def test_b28_sixty_who_say_nothing_do_not_keep_others_out(engine: Launched, exercise: Exercise) -> None:
    idle = [await asyncio.open_unix_connection(engine.socket) for _ in range(60)]
    try:
        async with asyncio.timeout(30):
            await exercise.short()
    finally:
        for _, writer in idle:
            writer.transport.abort()


async def test_a_prompt_over_the_context_is_refused_and_the_next_is_answered(
    engine: Launched, answering: Answering
) -> None:
    question = {"role": "user", "content": "word " * 20_000}
    status = await _status(engine, {"messages": [question], "max_tokens": 4})
    assert 400 <= status < 500
    await answering.short()


async def _status(engine: Launched, body: object) -> int:
    reader, writer = await asyncio.open_unix_connection(engine.socket)
    writer.write(chat(body))
    async with asyncio.timeout(60):
        line = await reader.readline()
    writer.transport.abort()
    return int(line.split()[1])
