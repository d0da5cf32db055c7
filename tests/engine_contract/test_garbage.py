"""What is no request does the next request no harm."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.engine_contract.exercise import Answering, Exercise
from tests.engine_contract.garbage import chat
from tests.engine_contract.launched import Launched

MOST = 4 << 20
"""Bytes of what never ends that are sent before we give up waiting to be cut off."""


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


async def test_b28_a_bad_client_does_the_next_one_no_harm(
    engine: Launched, exercise: Exercise, garbage: bytes
) -> None:
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
