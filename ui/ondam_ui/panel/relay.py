"""Hands the daemon's events to one open page, and says in between when there is no daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing

from aiohttp import WSMsgType, web

from ondam.control.client import Client, OndamError
from ondam.messages import catalog, text

AGAIN_S = 1.0
"""Between two looks for a daemon that is not there."""

SEND_TIMEOUT_S = 5.0
"""A page that takes nothing for so long is frozen; it comes back by itself when it wakes up."""


async def relay(client: Client, stream: web.WebSocketResponse, language: str, *, levels: bool) -> None:
    """Until the page leaves. ``levels``: also what changes ten times a second."""
    sending = asyncio.create_task(_send(client, stream, language, levels))
    try:
        async for message in stream:  # what a page says is nothing; the end of it is its leaving
            if message.type is WSMsgType.ERROR:
                break
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send(client: Client, stream: web.WebSocketResponse, language: str, levels: bool) -> None:
    told: str | None = None
    while True:
        try:
            async with aclosing(client.events(levels=levels)) as events:
                async for event in events:
                    told = None
                    await _tell(stream, _in_words(event, language))
        except OndamError as error:
            # Not over and over: a page that is told the same again would read it aloud again.
            if error.code != told:
                told = error.code
                await _tell(stream, {"type": "absent", "error": described(error, language)})
        await asyncio.sleep(AGAIN_S)


def described(error: OndamError, language: str) -> dict[str, str]:
    """An error for the page, in the reader's language."""
    message = error.message("ko" if language == "ko" else "en")
    return {"code": message.code, "text": message.text, "next": message.next}


def _in_words(event: Mapping[str, object], language: str) -> Mapping[str, object]:
    """A notice travels as a code alone."""
    code = event.get("code")
    if event["type"] != "notice" or not isinstance(code, str) or code not in catalog():
        return event
    return {**event, "text": text(code, "ko" if language == "ko" else "en")}


async def _tell(stream: web.WebSocketResponse, event: Mapping[str, object]) -> None:
    try:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await stream.send_json(event)
    except TimeoutError:
        await stream.close()
        raise
