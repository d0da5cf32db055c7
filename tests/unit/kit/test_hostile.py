"""Field case B28 for the speech engines: a bad client hurts nobody but itself."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from tests.unit.kit.conftest import Connect, Serve
from tests.unit.kit.models import Client, ScriptedStt

from ondam_engines.kit.limits import LIMITS
from ondam_engines.kit.report import rss_mib

BROKEN = {
    "a list": b"[]\n",
    "null": b"null\n",
    "an empty line": b"\n",
    "a type that is a number": b'{"type": 1}\n',
    "no type": b"{}\n",
    "not a number": b'{"type": "ping", "data": {"text": NaN}}\n',
    "infinity": b'{"type": "ping", "data": {"text": -Infinity}}\n',
    "a lone surrogate": b'{"type": "ping", "data": {"text": "\\ud800"}}\n',
    "bytes that are not UTF-8": b'{"type": "\xff"}\n',
    "nesting": b'{"type": "ping", "data": ' + b"[" * 100_000 + b"\n",
    "data that is a list": b'{"type": "ping", "data": [1]}\n',
    "data of a length below zero": b'{"type": "ping", "data_length": -1}\n',
    "data of a length in words": b'{"type": "ping", "data_length": "4"}\n',
    "data of half a length": b'{"type": "ping", "data_length": 1.5}\n',
    "data of the length true": b'{"type": "ping", "data_length": true}\n',
    "data that is no object": b'{"type": "ping", "data_length": 2}\n[]',
    "data over the bound": b'{"type": "ping", "data_length": 262145}\n',
    "a payload of 4 GiB": b'{"type": "audio-chunk", "payload_length": 4294967295}\n',
    "a payload below zero": b'{"type": "audio-chunk", "payload_length": -1}\n',
    "a number of 5,000 digits": b'{"type": "ping", "data_length": ' + b"9" * 5_000 + b"}\n",
    "a line over the bound": b"x" * (LIMITS.line_bytes + 1),
}


async def still_serves(connect: Connect) -> None:
    client = await connect()
    await client.send_audio(b"\0\0")
    assert (await client.next()).data["text"] == "2 ko "
    client.leave()


@pytest.mark.parametrize("name", BROKEN)
async def test_b28_a_broken_frame_is_an_error_and_the_end(serve: Serve, stt: ScriptedStt, name: str) -> None:
    connect = await serve(stt)
    client = await connect()
    client.writer.write(BROKEN[name])
    event = await client.next()
    assert (event.type, event.data["code"]) == ("error", "bad_request")
    assert await client.rest() == b""
    await still_serves(connect)


async def test_b28_half_a_frame_and_the_end_is_a_client_that_left(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt)
    for half in (
        b"",
        b'{"type": "pi',
        b'{"type": "ping", "data_length": 9}\n{"a"',
        b'{"type":"a","payload_length":9}\nx',
    ):
        client = await connect()
        client.writer.write(half)
        client.writer.write_eof()
        # Nobody is there to be told of an error.
        assert await client.rest() == b""
    await still_serves(connect)


async def test_b28_a_valid_line_of_70_kb_is_answered(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    text = "가" * 24_000
    client.writer.write(
        json.dumps({"type": "ping", "data": {"text": text}}, ensure_ascii=False).encode() + b"\n"
    )
    assert (await client.next()).data["text"] == text


async def test_b28_an_unknown_event_is_ignored_with_what_it_carries(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    await client.send("select-program", {"name": "x"}, b"payload")
    await client.send("ping")
    assert (await client.next()).type == "pong"


async def test_b28_a_line_without_end_is_cut_off_and_costs_no_memory(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt, replace(LIMITS, linger_s=0.2))
    client = await connect()
    before = rss_mib()
    with pytest.raises(ConnectionError):
        for _ in range(16_000):
            client.writer.write(b"x" * 65_536)
            await client.writer.drain()
    assert rss_mib() - before < 32
    await still_serves(connect)


async def test_b28_500_idle_clients_keep_nobody_out(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt)
    idle = [await connect() for _ in range(500)]
    await still_serves(connect)
    # The one that has been idle the longest was told why it had to go.
    assert (await idle[0].next()).data["code"] == "failed"
    await idle[-1].send("ping")
    assert (await idle[-1].next()).type == "pong"


async def test_b28_a_client_with_a_job_is_not_the_one_that_has_to_go(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt, replace(LIMITS, connections=2))
    stt.gate.clear()
    working = await connect()
    await working.send_audio(b"\0\0")
    await asyncio.to_thread(stt.started.wait, 5)
    others = [await connect() for _ in range(3)]
    await others[-1].send("ping")
    assert (await others[-1].next()).type == "pong"
    stt.gate.set()
    assert (await working.next()).data["text"] == "2 ko "


async def test_b28_a_client_that_never_reads_is_given_up(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt, replace(LIMITS, stall_s=0.2))
    client = await connect()

    async def flood(client: Client) -> None:
        while True:
            await client.send("ping", {"text": "x" * 10_000})

    async with asyncio.timeout(10):
        with pytest.raises(ConnectionError):
            await flood(client)
    await still_serves(connect)
