"""Hands an OpenAI request on to the resident language engine, and its answer back as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

import aiohttp

from ondam.clients.openai_llm import place
from ondam.errors import EngineError

CONNECT_S = 5.0


async def forward(url: str, body: Mapping[str, object]) -> tuple[int, str, AsyncGenerator[bytes, None]]:
    """Status, content type and body of the engine's answer to ``body``. Raises EngineError.

    The body is streamed, never gathered; closing it closes the connection, which stops the engine.
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
    except BaseException:
        await session.close()
        raise
    return response.status, response.content_type, _body(session, response)


async def _body(
    session: aiohttp.ClientSession, response: aiohttp.ClientResponse
) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    finally:
        response.close()
        await session.close()
