"""Engines made of a script: what they answer, and after how long. For tests in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ondam.errors import EngineError
from ondam.journal.warmth import Warmth
from ondam.pipeline.ports import (
    Lease,
    Message,
    Recognizer,
    Responder,
    SpeechStart,
    Synthesizer,
    Token,
    Transcript,
    Usage,
)
from ondam.types import Audio, Language, Samples, Stage

RATE_HZ = 22_050


@dataclass
class ScriptedEngines:
    """Implements ``ports.Engines``, ``Recognizer``, ``Responder`` and ``Synthesizer`` at once.

    A stage whose name is in ``down`` cannot be reached; one in ``breaks`` fails in the middle of its work.
    """

    heard: str = "What time is it?"
    tokens: Sequence[str] = ("It ", "is ", "three. ", "Good ", "bye.")
    stt_s: float = 0.1
    ttft_s: float = 0.08
    token_s: float = 0.01
    tts_s: float = 0.05
    second_per_character: float = 0.05
    down: set[Stage] = field(default_factory=set)
    breaks: set[Stage] = field(default_factory=set)
    pause_at_end_s: float = 0.0
    """How long the model keeps the stream open after its last token."""
    error: str = ""
    """What a stage that breaks says; else that it is down."""
    context_tokens: int = 0
    asked: list[list[Message]] = field(default_factory=list)
    computed_ahead: list[list[Message]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    heard_audio: list[Audio] = field(default_factory=list)
    failures: list[tuple[Stage, str]] = field(default_factory=list)
    running: int = 0
    """Requests under way: 0 when everything was let go."""

    def configure(self, config: object) -> None:
        """They answer by their script."""

    def lease(self) -> Lease:
        return Lease(self)

    def recognizer(self) -> Recognizer:
        self._up("stt")
        return self

    def responder(self) -> Responder:
        self._up("llm")
        return self

    def synthesizer(self, language: Language, *, spare: bool = False) -> Synthesizer:
        self._up("tts")
        return self

    def answered(self, stage: Stage) -> None:
        pass

    def failed(self, stage: Stage, code: str) -> None:
        self.failures.append((stage, code))

    def warmth(self) -> Warmth:
        return Warmth(answers=100, ready_s=1000.0, idle_s=1.0)

    def identities(self) -> dict[str, dict[str, object]]:
        return {"scripted": {"pid": 1, "started_at": "now"}}

    def voice(self, language: Language, *, spare: bool = False) -> str | None:
        return "scripted"

    async def transcribe(self, audio: Audio, language: Language, names: Sequence[str] = ()) -> Transcript:
        self.heard_audio.append(audio)
        self.running += 1
        try:
            await asyncio.sleep(self.stt_s)
        finally:
            self.running -= 1
        if "stt" in self.breaks:
            raise EngineError(self.error or "stt_down")
        return Transcript(self.heard, language, engine_ms=self.stt_s * 1000)

    async def respond(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None = None
    ) -> AsyncGenerator[Token | Usage, None]:
        (self.asked if messages[-1]["content"] else self.computed_ahead).append(list(messages))
        self.running += 1
        try:
            spent = self.ttft_s
            await asyncio.sleep(self.ttft_s)
            for number, token in enumerate(self.tokens):
                if "llm" in self.breaks and number == 3:
                    raise EngineError(self.error or "llm_down")
                yield Token(token, spent * 1000)
                await asyncio.sleep(self.token_s)
                spent += self.token_s
            await asyncio.sleep(self.pause_at_end_s)
            yield Usage(prompt_tokens=20, cached_tokens=12, output_tokens=len(self.tokens))
        finally:
            self.running -= 1

    async def synthesize(self, text: str, language: Language) -> AsyncGenerator[SpeechStart | Samples, None]:
        self.said.append(text)
        self.running += 1
        try:
            await asyncio.sleep(self.tts_s)
            if "tts" in self.breaks:
                raise EngineError(self.error or "tts_down")
            yield SpeechStart(RATE_HZ, engine_ms=self.tts_s * 1000)
            for _ in range(4):
                yield np.full(round(len(text) * self.second_per_character * RATE_HZ / 4), 1000, np.int16)
        finally:
            self.running -= 1

    def _up(self, stage: Stage) -> None:
        if stage in self.down:
            raise EngineError(f"{stage}_down")
