"""The resident language engine's answer, handed on byte by byte. Time is virtual."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.clients.scripted import CHUNKED, DONE, END_OF_BODY, SSE, Connection, Serve, framed, said

from ondam.clients.passthrough import FIRST_S, IDLE_S, forward
from ondam.errors import EngineError


async def test_the_answer_comes_through_unchanged(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        assert await connection.http_request() == {"messages": []}
        await connection.send(CHUNKED, framed(said("안녕")), framed(DONE), END_OF_BODY)

    server = await serve(script)
    status, kind, body = await forward(server.address, {"messages": []})
    assert (status, kind) == (200, "text/event-stream")
    assert b"".join([chunk async for chunk in body]) == said("안녕") + DONE


@pytest.mark.parametrize("head", [CHUNKED, SSE + b"Content-Length: 999\r\n\r\n"])
async def test_an_engine_that_dies_before_the_first_byte_is_an_error_with_its_address(
    serve: Serve, head: bytes
) -> None:
    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(head)
        connection.writer.close()

    server = await serve(script)
    _, _, body = await forward(server.address, {})
    with pytest.raises(EngineError) as caught:
        await anext(body)
    assert (caught.value.code, caught.value.facts["address"]) == ("llm_cut_off", server.address)


async def test_an_engine_that_dies_in_the_middle_cannot_pass_for_one_that_had_finished(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(CHUNKED, framed(said("half")))
        connection.writer.close()

    server = await serve(script)
    _, _, body = await forward(server.address, {})
    heard = []
    with pytest.raises(EngineError) as caught:
        async for chunk in body:
            heard.append(chunk)
    assert (heard, caught.value.code) == ([said("half")], "llm_cut_off")


@pytest.mark.parametrize(("pieces", "patience_s"), [([], FIRST_S), ([framed(said("one"))], IDLE_S)])
async def test_an_engine_that_falls_silent_is_given_up_and_left(
    serve: Serve, pieces: list[bytes], patience_s: float
) -> None:
    gone = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(CHUNKED, *pieces)
        await connection.left()
        gone.set()

    server = await serve(script)
    _, _, body = await forward(server.address, {})
    began = 0.0
    with pytest.raises(EngineError) as caught:
        for _ in pieces:
            await anext(body)
        began = asyncio.get_running_loop().time()
        await anext(body)
    assert (caught.value.code, caught.value.facts["seconds"]) == ("engine_silent", patience_s)
    assert asyncio.get_running_loop().time() - began == pytest.approx(patience_s, abs=1)
    await gone.wait()


async def test_an_engine_that_is_slow_but_alive_is_waited_for(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(CHUNKED)
        for word in ("a", "b", "c"):
            await asyncio.sleep(IDLE_S - 1)
            await connection.send(framed(said(word)))
        await connection.send(END_OF_BODY)

    server = await serve(script)
    _, _, body = await forward(server.address, {})
    assert [chunk async for chunk in body] == [said("a"), said("b"), said("c")]
