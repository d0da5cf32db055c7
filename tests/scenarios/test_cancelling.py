"""A draft that is cancelled is cancelled all the way down: over real sockets, in real time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from wyoming.event import Event, async_read_event, async_write_event

from ondam.audio import WavSpeaker
from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.config import load
from ondam.journal.turn import Turn
from ondam.journal.warmth import Warmth
from ondam.pipeline.capture import Utterance
from ondam.pipeline.gate import Gate
from ondam.pipeline.ports import Lease, Recognizer, Responder, Synthesizer
from ondam.pipeline.runner import DraftRunner
from ondam.types import HEARING_RATE_HZ, Block, DraftId, Language, Stage, TurnId

WITHIN_S = 0.1
TOKEN_S = 0.005
SOUND = {"rate": 22_050, "width": 2, "channels": 1}


@dataclass
class Engines:
    """Servers on Unix sockets that go on for ever, and note when each of their clients was last served."""

    folder: Path
    tokens: int = 0
    words: str = "And so on. "
    begun: dict[Stage, asyncio.Event] = field(
        default_factory=lambda: {"stt": asyncio.Event(), "llm": asyncio.Event(), "tts": asyncio.Event()}
    )
    left_at: dict[Stage, float] = field(default_factory=dict)
    """When the server saw that its client is gone."""

    def address(self, stage: Stage) -> str:
        return f"unix://{self.folder / stage}.sock"

    def lease(self) -> Lease:
        return Lease(self)

    def recognizer(self) -> Recognizer:
        return WyomingRecognizer(self.address("stt"))

    def responder(self) -> Responder:
        return OpenAIResponder(self.address("llm"))

    def synthesizer(self, language: Language, *, spare: bool = False) -> Synthesizer:
        return WyomingSynthesizer(self.address("tts"))

    def answered(self, stage: Stage) -> None:
        pass

    def failed(self, stage: Stage, code: str) -> None:
        raise AssertionError(f"{stage}: {code}")

    def warmth(self) -> Warmth:
        return Warmth(answers=100, ready_s=1000.0, idle_s=1.0)

    def identities(self) -> dict[str, dict[str, object]]:
        return {}

    def voice(self, language: Language, *, spare: bool = False) -> str | None:
        return "fake"

    async def chat(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            while True:
                choice = {"index": 0, "delta": {"content": self.words}, "finish_reason": None}
                await response.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
                self.tokens += 1
                self.begun["llm"].set()
                await asyncio.sleep(TOKEN_S)
        finally:
            self.left_at["llm"] = time.monotonic()

    async def listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (event := await async_read_event(reader)) is not None and event.type != "audio-stop":
            pass
        self.begun["stt"].set()
        await self._until_left("stt", reader, writer)

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await async_read_event(reader)
        await async_write_event(Event("audio-start", SOUND), writer)
        await async_write_event(Event("audio-chunk", SOUND, b"\0\1" * 2205), writer)
        self.begun["tts"].set()
        await self._until_left("tts", reader, writer)

    async def _until_left(
        self, stage: Stage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):  # gone is gone
            assert await reader.read() == b""
        self.left_at[stage] = time.monotonic()
        writer.close()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Engines]:
    engines = Engines(folder)
    application = web.Application()
    application.router.add_post("/v1/chat/completions", engines.chat)
    runner = web.AppRunner(application, handler_cancellation=True)
    await runner.setup()
    await web.UnixSite(runner, str(folder / "llm.sock")).start()
    handlers: dict[str, Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]] = {
        "stt": engines.listen,
        "tts": engines.speak,
    }
    servers = [
        await asyncio.start_unix_server(handler, folder / f"{stage}.sock")
        for stage, handler in handlers.items()
    ]
    try:
        yield engines
    finally:
        for server in servers:
            server.close()
        await runner.cleanup()


def draft(engines: Engines, within_s: float = 30.0) -> DraftRunner:
    return DraftRunner(
        DraftId(1),
        Turn(TurnId(1), "test", datetime.now(UTC)),
        engines=engines,
        gate=Gate(WavSpeaker(), time.monotonic_ns),
        config=load(None, {"language": "en", "llm": {"max_tokens": 8192}, "answer": {"within_s": within_s}}),
        language="en",
        clock=time.monotonic_ns,
        tell=lambda event: None,
    )


async def cancelled(engines: Engines, runner: DraftRunner, *stages: Stage) -> None:
    """Cancels once all ``stages`` are at work; every one of them has noticed in time."""
    async with asyncio.timeout(10):
        for stage in stages:
            await engines.begun[stage].wait()
    await asyncio.sleep(0.05)
    assert engines.left_at == {}
    runner.cancel()
    at = time.monotonic()
    async with asyncio.timeout(10):
        await runner.ended()
        while set(stages) - engines.left_at.keys():
            await asyncio.sleep(0.001)
    took = {stage: engines.left_at[stage] - at for stage in stages}
    print({stage: f"{1000 * seconds:.1f} ms" for stage, seconds in took.items()})
    assert max(took.values()) < WITHIN_S


@pytest.mark.parametrize("committed", [False, True])
async def test_b26_a_cancelled_answer_makes_no_tokens_100_ms_later(tmp_path: Path, committed: bool) -> None:
    async with serving(tmp_path) as engines:
        runner = draft(engines)
        runner.respond("And then?", (), aloud=True)
        if committed:
            runner.commit()
        await cancelled(engines, runner, "llm", "tts")
        made = engines.tokens
        assert made > 5
        await asyncio.sleep(20 * TOKEN_S)
        assert engines.tokens == made


async def test_b26_a_cancelled_draft_leaves_the_recognizer(tmp_path: Path) -> None:
    async with serving(tmp_path) as engines:
        runner = draft(engines)
        tone = np.full(HEARING_RATE_HZ, 5000, np.int16)
        runner.recognize(Utterance((Block(tone, 0, 0),)))
        await cancelled(engines, runner, "stt")


async def test_b26_a_text_that_is_not_read_any_more_leaves_the_voice(tmp_path: Path) -> None:
    async with serving(tmp_path) as engines:
        runner = draft(engines)
        runner.say("A long text.")
        runner.commit()
        await cancelled(engines, runner, "tts")


async def test_b26_an_answer_that_comes_too_late_is_cancelled_as_far_down(tmp_path: Path) -> None:
    async with serving(tmp_path) as engines:
        runner = draft(engines, within_s=0.3)
        engines.words = ""  # a model that keeps its connection alive and says nothing
        runner.respond("And then?", (), aloud=True)
        runner.commit()
        began = time.monotonic()
        async with asyncio.timeout(10):
            while "llm" not in engines.left_at:
                await asyncio.sleep(0.001)
        assert 0.3 <= engines.left_at["llm"] - began < 0.3 + WITHIN_S
        runner.cancel()
        await runner.ended()
