"""Hands an OpenAI request on to the resident language engine, and its answer back as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

import aiohttp

from ondam.clients.openai_llm import place
from ondam.errors import EngineError

CONNECT_S = 5.0

FIRST_S = 300.0
"""Until the first byte of a body: a long question is read at some ten tokens a second on a slow machine."""

IDLE_S = 60.0
"""From one piece of a body to the next: an engine that writes is never silent for so long."""


async def forward(url: str, body: Mapping[str, object]) -> tuple[int, str, AsyncGenerator[bytes, None]]:
    """Status, content type and body of the engine's answer to ``body``. Raises EngineError.

    The body is streamed, never gathered; closing it closes the connection, which stops the engine. It raises
    EngineError where the engine breaks off or falls silent, so that half an answer never passes for a whole.
    """
    socket, base = place(url)
    session = aiohttp.ClientSession(
        connector=aiohttp.UnixConnector(socket) if socket else None,
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_S),
        auto_decompress=False,
    )
    try:
        response = await session.post(f"{base}/chat/completions", json=dict(body), allow_redirects=False)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        await session.close()
        raise EngineError("engine_unreachable", address=url, reason=error) from error
    except BaseException:  # also a client that left: nobody else would close it
        await session.close()
        raise
    return response.status, response.content_type, _body(url, session, response)


async def _body(
    url: str, session: aiohttp.ClientSession, response: aiohttp.ClientResponse
) -> AsyncGenerator[bytes, None]:
    try:
        patience = FIRST_S
        while chunk := await _piece(url, response, patience):
            patience = IDLE_S
            yield chunk
    finally:
        response.close()
        await session.close()


async def _piece(url: str, response: aiohttp.ClientResponse, patience_s: float) -> bytes:
    """What has come; empty at the end."""
    try:
        async with asyncio.timeout(patience_s):
            return await response.content.readany()
    except TimeoutError as error:
        raise EngineError("engine_silent", address=url, seconds=patience_s) from error
    except (aiohttp.ClientError, OSError) as error:
        raise EngineError("llm_cut_off", address=url, reason=error) from error
