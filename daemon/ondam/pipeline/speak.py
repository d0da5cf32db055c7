"""Clauses to sound: read, synthesized, resampled, let through the gate; and what was heard of them."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np

from ondam.audio.resample import Resampler
from ondam.errors import EngineError
from ondam.journal.turn import Turn
from ondam.pipeline.gate import Gate
from ondam.pipeline.phrases import ABOUT_THE_TEXT
from ondam.pipeline.ports import Engines, SpeechEnd, SpeechStart
from ondam.speech import Clause
from ondam.types import Audio, DraftId, Language, Nanoseconds, Samples

log = logging.getLogger(__name__)

REFUSED_IN_A_ROW = 3
"""One clause that a voice refuses is skipped. After so many it is not about the text: the voice is broken."""

PIECE_S = 0.1
"""Of a phrase that is let out at once; what a stop finds unsaid is never far behind."""


@dataclass(slots=True)
class Span:
    """A clause and the samples that say it."""

    text: str
    first: int
    end: int


class Speech:
    """One draft of an answer on its way to the ear."""

    def __init__(self, draft: DraftId, turn: Turn, gate: Gate, clock: Callable[[], Nanoseconds]) -> None:
        self._draft = draft
        self._turn = turn
        self._gate = gate
        self._clock = clock
        self._spans: list[Span] = []
        self._whole: list[str] = []
        """Texts of the spans that have been heard to their end, from the first on."""
        self._whole_samples = 0
        self.out = asyncio.Event()
        """The first sample of the answer was let out."""
        self._writing = asyncio.Lock()
        self._filler: int | None = None
        """Number of its first sample."""

    async def speak(self, clauses: AsyncIterator[Clause], engines: Engines, language: Language) -> None:
        """Say each clause as it comes; returns when the last sample was queued.

        A clause that the voice refuses is left out. Raises EngineError when the voice is gone, or refuses
        everything.
        """
        refused: EngineError | None = None
        in_a_row = 0
        async for clause in clauses:
            try:
                await self._say(clause, engines, language)
                in_a_row = 0
            except EngineError as error:
                if error.code not in ABOUT_THE_TEXT:
                    raise
                # Not the text: what was said is nobody's business, and the engine's log has the reason.
                log.warning("turn %d: a clause is left out: %s", self._turn.id, error)
                engines.failed("tts", error.code)
                refused, in_a_row = error, in_a_row + 1
                if in_a_row >= REFUSED_IN_A_ROW:
                    raise
        if refused is not None and not self._spans:
            raise refused

    async def play(self, audio: Audio, text: str) -> None:
        """Let out a phrase that is sound already; returns when the last sample was queued."""
        span: Span | None = None
        for piece in self._resampled(audio):
            span = await self._let_out(piece, text, span)

    async def fill(self, audio: Audio) -> bool:
        """Let out a filler, unless the answer has begun. What comes of the answer meanwhile follows it."""
        async with self._writing:
            if self._spans:
                return False
            samples = np.concatenate(list(self._resampled(audio)))
            self._filler = await self._gate.write(self._draft, samples)
        return self._filler is not None

    def filler_at_ns(self) -> Nanoseconds | None:
        """When the filler's first sample passed the converter; None when it has not, or there is none."""
        return None if self._filler is None else self._gate.heard_at_ns(self._filler)

    def _resampled(self, audio: Audio) -> Iterator[Samples]:
        resampler = Resampler(audio.rate_hz, self._gate.rate_hz)
        step = round(PIECE_S * audio.rate_hz)
        for at in range(0, len(audio.samples), step):
            yield resampler.process(audio.samples[at : at + step])
        yield resampler.finish()

    async def _say(self, clause: Clause, engines: Engines, language: Language) -> None:
        synthesizer = engines.synthesizer(language)
        self._turn.voice = engines.voice(language)
        self._turn.marks.set("tts_sent", self._clock())
        resampler: Resampler | None = None
        span: Span | None = None
        try:
            async with aclosing(synthesizer.synthesize(clause.spoken, language)) as stream:
                async for piece in stream:
                    if isinstance(piece, SpeechStart):
                        resampler = Resampler(piece.rate_hz, self._gate.rate_hz)
                        self._turn.marks.set("tts_first_audio", self._clock())
                        if self._turn.engine_ms.tts_first_audio is None:
                            self._turn.engine_ms.tts_first_audio = piece.engine_ms
                    elif isinstance(piece, SpeechEnd):
                        self._turn.engine_ms.tts += piece.engine_ms
                        self._turn.voiced_s += piece.audio_s
                    elif resampler is not None:
                        span = await self._let_out(resampler.process(piece), clause.written, span)
        except EngineError as error:
            if error.code not in ABOUT_THE_TEXT or span is None:
                raise
            # What came is fit to be played; the next clause may be said.
            log.warning("turn %d: a clause breaks off: %s", self._turn.id, error)
        if resampler is not None:
            await self._let_out(resampler.finish(), clause.written, span)
        engines.answered("tts")

    async def _let_out(self, samples: Samples, text: str, span: Span | None) -> Span | None:
        async with self._writing:
            first = await self._gate.write(self._draft, samples)
            if first is None:
                return span
            if span is None:
                span = Span(text, first, first)
                self._spans.append(span)
                self.out.set()
            span.end = first + len(samples)
            return span

    @property
    def spoken(self) -> bool:
        """Sound was made and let through."""
        return bool(self._spans)

    def heard(self) -> str | None:
        """The written text of what has passed the speaker so far; None before the first sample.

        A clause that is only partly played counts word by word, in proportion to its samples. Sets the marks
        of the first and the latest sample.
        """
        if not self._spans:
            return None
        first = self._gate.heard_at_ns(self._spans[0].first)
        if first is None:
            return None
        self._turn.marks.set("dac_first_sample", first)
        part, samples = "", self._whole_samples
        for span in self._spans[len(self._whole) :]:
            played = bisect_left(
                range(span.first, span.end), True, key=lambda n: self._gate.heard_at_ns(n) is None
            )
            if played == 0:
                break
            samples += played
            last = self._gate.heard_at_ns(span.first + played - 1)
            if last is not None:
                self._turn.marks.replace("dac_last_sample", last)
            if played < span.end - span.first or span is self._spans[-1]:
                # The latest span may still grow: it counts as whole only while nothing follows.
                words = span.text.split()
                part = " ".join(words[: len(words) * played // (span.end - span.first)])
                break
            self._whole.append(span.text)
            self._whole_samples += played
        self._turn.answer_s = samples / self._gate.rate_hz
        return " ".join(text for text in (*self._whole, part) if text)

    async def drained(self) -> None:
        """Return when everything that was let through has been heard or dropped."""
        await self._gate.drained()
