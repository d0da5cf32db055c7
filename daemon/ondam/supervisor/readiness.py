"""Asks an engine for one real answer, and whether it is still there. One connection per question."""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
from wyoming.asr import Transcribe, Transcript
from wyoming.error import Error
from wyoming.event import Event, async_write_event
from wyoming.ping import Ping, Pong
from wyoming.tts import Synthesize, SynthesizeVoice

from ondam.clients.address import speech_address
from ondam.clients.json_text import json_object, one_line
from ondam.clients.openai_llm import place
from ondam.clients.wyoming_frames import AUDIO_CHUNK, AUDIO_START, AUDIO_STOP, LONGEST_LINE, Frames
from ondam.errors import EngineError, Foreign
from ondam.supervisor.status import Fault
from ondam.types import HEARING_RATE_HZ, Language, Stage

QUESTION: dict[Language, str] = {"ko": "안녕하세요?", "en": "Hello?"}
SENTENCE: dict[Language, str] = {"ko": "준비되었습니다.", "en": "I am ready."}

ANSWER_TOKENS = 8
"""Enough for reasoning to show itself if it was not switched off."""

TONE_HZ = 220
"""One second of a quiet tone, no words. Silence would let an engine's own voice filter answer for it."""

FORMAT = {"rate": HEARING_RATE_HZ, "width": 2, "channels": 1}

OPENER = "<think"

LARGEST = 1024 * 1024
"""Bytes of an answer of ``ANSWER_TOKENS`` tokens."""


class NotYet(Exception):
    """The engine cannot be asked yet: no socket, nobody listening, or it says that it is still loading."""


async def ask(address: str, protocol: str, stage: Stage, model: str, language: Language) -> tuple[Fault, ...]:
    """One real inference by an engine of ours. Returns what is wrong with an answer that came.

    Raises NotYet, or EngineError when it answered and it was no answer: ``engine_no_answer``, or what
    ``Frames`` raises. Waits without bound.
    """
    if protocol == "openai":
        return await _chat(address, model, language)
    question = _speech(language) if stage == "stt" else _sentence(language)
    answered = False
    async with contextlib.aclosing(_wyoming(address, *question)) as events:
        async for event in events:
            if Error.is_type(event.type):
                raise _no_answer(address, one_line(str(event.data.get("text", "?")), 200))
            if Transcript.is_type(event.type):
                return ()
            answered = answered or (event.type == AUDIO_CHUNK and bool(event.payload))
            if event.type == AUDIO_STOP:
                break
    if not answered:
        raise _no_answer(address, "no sound")
    return ()


async def ping(address: str, protocol: str) -> bool:
    """Whether it answers at all. Raises NotYet when nobody listens, EngineError. Waits without bound."""
    if protocol == "openai":
        async with http(address) as (session, base), _get(session, f"{root(base)}/health") as response:
            return response.status == 200
    return await _first(address, Ping().event()) == Pong().event().type


async def reachable(address: str, protocol: str) -> bool:
    """Whether a server that is not ours is well, asked what all know: Wyoming's info, OpenAI's models.

    False: it answers, and not as one that is well. What it serves turns with is asked by ``first_answer``.
    Raises NotYet when nobody listens, EngineError for an answer that is none. Waits without bound.
    """
    if protocol == "openai":
        async with http(address) as (session, base), _get(session, f"{base}/models") as response:
            return response.status < 300 or 400 <= response.status < 500  # 401 and 404 are answers too
    await _first(address, Event("describe"))
    return True


async def _first(address: str, question: Event) -> str:
    async with contextlib.aclosing(_wyoming(address, question)) as events:
        return (await anext(events)).type


def tone() -> array[int]:
    """What a recognizer is asked first: 16-bit samples at ``HEARING_RATE_HZ``."""
    turn = 2 * math.pi * TONE_HZ / HEARING_RATE_HZ
    return array("h", (round(1000 * math.sin(turn * n)) for n in range(HEARING_RATE_HZ)))


def _speech(language: Language) -> tuple[Event, ...]:
    return (
        Transcribe(language=language).event(),
        Event(AUDIO_START, FORMAT),
        Event(AUDIO_CHUNK, FORMAT, tone().tobytes()),
        Event(AUDIO_STOP),
    )


def _sentence(language: Language) -> tuple[Event, ...]:
    return (Synthesize(text=SENTENCE[language], voice=SynthesizeVoice(language=language)).event(),)


async def _wyoming(address: str, *question: Event) -> AsyncGenerator[Event, None]:
    """The answers, without end: ``Frames`` raises ``engine_hung_up`` at the end of the connection."""
    try:
        reader, writer = await speech_address(address).open(LONGEST_LINE)
    except OSError as error:
        raise NotYet from error
    frames = Frames(reader, address)
    try:
        for event in question:
            await async_write_event(event, writer)
        while True:
            yield await frames.next()
    except OSError as error:
        raise _no_answer(address, str(error)) from error
    finally:
        # Not close(): that waits until the server has read the whole question, which a hung one never does.
        writer.transport.abort()


@contextlib.asynccontextmanager
async def http(address: str) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """A session and what the routes are appended to, as a turn's client does. Raises NotYet when nobody
    listens, EngineError."""
    path, base = place(address)
    connector = (
        aiohttp.UnixConnector(path, force_close=True) if path else aiohttp.TCPConnector(force_close=True)
    )
    # No total time: whoever asks has a clock. No proxy from the environment: an engine is reached directly.
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout()) as session:
        try:
            yield session, base
        except aiohttp.ClientSSLError as error:
            # Somebody listens; waiting makes no certificate valid.
            raise _no_answer(address, one_line(str(error))) from error
        except aiohttp.ClientConnectorError as error:
            raise NotYet from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _no_answer(address, one_line(str(error)) or type(error).__name__) from error


def _get(session: aiohttp.ClientSession, url: str) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
    """Without following it anywhere: a server may send on to a host that nobody wrote down."""
    return session.get(url, allow_redirects=False)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """At most ``LARGEST`` bytes, or one packet more."""
    body = b""
    while len(body) < LARGEST and (more := await response.content.readany()):
        body += more
    return body


async def _chat(address: str, model: str, language: Language) -> tuple[Fault, ...]:
    body = {
        **({"model": model} if model else {}),
        "messages": [{"role": "user", "content": QUESTION[language]}],
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "stream": False,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    async with http(address) as (session, base):
        async with _get(session, f"{root(base)}/health") as health:
            if health.status != 200:
                raise NotYet
        chat = f"{base}/chat/completions"
        async with session.post(chat, json=body, allow_redirects=False) as response:
            if response.status == 503:
                raise NotYet
            told = await _body(response)
            if response.status != 200:
                words = one_line(told.decode("utf-8", "replace"))
                raise _no_answer(address, Foreign(f"HTTP {response.status}: {words}"))
            answer = json_object(told)
    message = _message(answer)
    if message is None:
        raise _no_answer(address, "no message in the answer")
    content = message.get("content")
    reasoned = message.get("reasoning_content") or message.get("reasoning")
    if reasoned or (isinstance(content, str) and OPENER in content):
        return (Fault("engine_thinks", {"address": address}),)
    return ()


def _message(answer: Any) -> dict[str, Any] | None:
    try:
        message = answer["choices"][0]["message"]
    except (KeyError, IndexError, TypeError):
        return None  # told as "no message in the answer"
    return message if isinstance(message, dict) else None


def root(base: str) -> str:
    """Where a server's own routes are, that OpenAI's do not stand beside."""
    return base.removesuffix("/v1")


def _no_answer(address: str, reason: str) -> EngineError:
    return EngineError("engine_no_answer", address=address, reason=reason)
