"""What an engine of each stage is asked, through the clients the daemon uses."""

from __future__ import annotations

import asyncio
import io
import itertools
import random
import wave
from abc import ABC, abstractmethod
from contextlib import aclosing

import numpy as np
import pytest
from tests.engine_contract.launched import Launched

from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.measure.clips import clips
from ondam.pipeline.ports import Message, SpeechEnd, SpeechStart, Token, Usage
from ondam.types import HEARING_RATE_HZ, Audio, Language, Samples, Stage

SENTENCES: dict[Language, str] = {
    "ko": "오늘은 하늘이 맑고 바람이 조금 붑니다.",
    "en": "The sky is clear today, and there is a little wind.",
}

WORDS = "time year people way day man thing woman life child world school state family hand part place case"

STANDIN = "standin"
"""Id of a model that our own code made."""

_words = random.Random(0)
_numbers = itertools.count()


def spoken(language: Language) -> tuple[Audio, str]:
    """A question and its words."""
    clip = clips(language)[0]
    with wave.open(io.BytesIO(clip.wav)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, HEARING_RATE_HZ)
        return Audio(np.frombuffer(file.readframes(file.getnframes()), np.int16), HEARING_RATE_HZ), clip.words


class Exercise(ABC):
    """One engine, asked for answers that are checked for being answers."""

    def __init__(self, address: str, language: Language, model: str) -> None:
        self.address = address
        self.language = language
        self.model = model

    @abstractmethod
    async def short(self) -> None:
        """One ordinary request, answered whole."""

    @abstractmethod
    async def long(self, begun: asyncio.Event) -> None:
        """A request of seconds; sets ``begun`` when the engine computes."""


class Hearing(Exercise):
    """Speech to text."""

    def understands(self) -> None:
        """Skips where the weights are random: such a model writes the same whatever it is told."""
        if self.model == STANDIN:
            pytest.skip("its model stands in for the real one, and understands nothing")

    async def short(self) -> None:
        audio, _ = spoken(self.language)
        transcript = await WyomingRecognizer(self.address).transcribe(audio, self.language)
        assert transcript.text.strip()

    async def long(self, begun: asyncio.Event) -> None:
        samples = np.tile(spoken(self.language)[0].samples, 30)
        audio = Audio(samples[: 80 * HEARING_RATE_HZ], HEARING_RATE_HZ)
        job = asyncio.create_task(WyomingRecognizer(self.address).transcribe(audio, self.language))
        await _soon(job, begun)


class Speaking(Exercise):
    """Text to speech."""

    async def short(self) -> None:
        assert len((await self.say(SENTENCES[self.language]))[1]) > 0

    async def long(self, begun: asyncio.Event) -> None:
        text = (SENTENCES[self.language] + " ") * 60
        job = asyncio.create_task(self.say(text[:1_900]))
        await _soon(job, begun)

    async def say(self, text: str, language: Language | None = None) -> tuple[SpeechStart, Samples]:
        """The format and all samples."""
        start, samples = None, [np.zeros(0, np.int16)]
        async with aclosing(
            WyomingSynthesizer(self.address).synthesize(text, language or self.language)
        ) as speech:
            async for piece in speech:
                if isinstance(piece, SpeechStart):
                    start = piece
                elif not isinstance(piece, SpeechEnd):
                    samples.append(piece)
        assert start is not None
        return start, np.concatenate(samples)


class Answering(Exercise):
    """Text to text."""

    async def short(self) -> None:
        assert (await self.ask("Say hello.", 8))[1].finish_reason in {"stop", "length"}

    async def long(self, begun: asyncio.Event) -> None:
        await self.ask("Count from one to one thousand.", 1_000, begun)

    async def long_cold(self, begun: asyncio.Event) -> None:
        """Seconds of prompt that no cache knows, and hardly any answer."""
        job = asyncio.create_task(self.ask(strange_text(900), 8))
        await _soon(job, begun)

    async def ask(
        self, text: str, max_tokens: int, begun: asyncio.Event | None = None
    ) -> tuple[list[Token], Usage]:
        """The tokens and what they cost; ``begun`` is set by the first token."""
        messages: list[Message] = [{"role": "user", "content": text}]
        tokens: list[Token] = []
        usage = None
        responder = OpenAIResponder(self.address, self.model, temperature=0, first_token_timeout_s=60)
        async with aclosing(responder.respond(messages, max_tokens=max_tokens)) as answer:
            async for piece in answer:
                if isinstance(piece, Usage):
                    usage = piece
                else:
                    tokens.append(piece)
                    if begun is not None:
                        begun.set()
        assert usage is not None
        return tokens, usage


EXERCISES: dict[Stage, type[Exercise]] = {"stt": Hearing, "llm": Answering, "tts": Speaking}


def exercise_for(launched: Launched) -> Exercise:
    """Questions to the engine of this process."""
    planned = launched.prepared.planned
    return EXERCISES[planned.stage](launched.address, planned.language, planned.model)


def strange_text(words: int) -> str:
    """Words in an order that was never asked before."""
    known = WORDS.split()
    return f"{next(_numbers)}: " + " ".join(_words.choice(known) for _ in range(words)) + ". How many words?"


async def _soon(job: asyncio.Task[object], begun: asyncio.Event) -> None:
    """Neither a transcript nor a prefill shows when its computing begins; a quarter of a second is plenty."""
    try:
        await asyncio.wait([job], timeout=0.25)
        begun.set()
        await job
    finally:
        job.cancel()
