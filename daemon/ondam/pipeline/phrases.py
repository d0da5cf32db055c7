"""Fixed phrases as sound, made ahead: excuses, and what is said while an answer takes its time.

In memory only, and only phrases from ``messages``: what was answered to a person is kept nowhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import aclosing

import numpy as np

from ondam import messages
from ondam.errors import EngineError
from ondam.pipeline.ports import Engines, SpeechEnd, SpeechStart
from ondam.speech import ClauseStream
from ondam.types import Audio, Language, Samples, TurnId

log = logging.getLogger(__name__)

FILLER = "filler_moment"

PREPARED = (
    FILLER,
    "excuse_llm",
    "excuse_tts",
    "excuse_stt",
    "answer_too_late",
    "excuse_switching",
    "no_answer",
    "called_by_name",
    "excuse_question_too_long",
    "excuse_tool_call",
    "internal_fault",
)
"""Message codes, the most urgent first: the voice may be gone again before all are made."""

MOST = 64
LONGEST_S = 240.0
"""What is kept: phrases, and seconds of all together. Those above are about 30 s in a voice and language; two
voices in two languages are 44 phrases and 5.3 MB at 22 kHz. What is longer than a tenth is no phrase."""

ABOUT_THE_TEXT = frozenset({"engine_refused", "speech_too_long"})
"""Codes of errors after which the same voice may be asked for another text."""

NOTHING: Samples = np.zeros(0, np.int16)

Key = tuple[str, Language, str]
"""Voice (name of the engine), language, text."""


class Phrases:
    """The daemon's store of them, for every conversation."""

    def __init__(self, engines: Engines, *, most: int = MOST, longest_s: float = LONGEST_S) -> None:
        self._engines = engines
        self._most = most
        self._longest_s = longest_s
        self._kept: OrderedDict[Key, Audio] = OrderedDict()
        """The least recently used first."""
        self._making = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def seconds(self) -> float:
        """Length of all that is kept."""
        return sum(audio.seconds for audio in self._kept.values())

    def find(self, text: str, language: Language, *, any_voice: bool = True) -> Audio | None:
        """``text`` in the voice that speaks now; else, with ``any_voice``, as another one said it before."""
        voice = self._engines.voice(language)
        key: Key | None = (voice or "", language, text)
        if key not in self._kept:
            known = (k for k in reversed(self._kept) if k[1:] == (language, text))
            key = next(known, None) if any_voice else None
        if key is None:
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def forget(self) -> None:
        """All: another model speaks under the same engine's name now."""
        self._kept.clear()

    async def prepare(self, language: Language) -> None:
        """Make what ``language`` lacks in the voice that speaks now. Raises nothing.

        One clause at a time, so that an answer never waits for more than one of them. Where that voice
        cannot, the spare one says them: a voice that fails from the start has to be excused aloud as well.
        """
        async with self._making:
            first = self._engines.voice(language)
            done = await self._prepared(language, spare=False)
            if not done and self._engines.voice(language, spare=True) != first:
                await self._prepared(language, spare=True)

    async def _prepared(self, language: Language, *, spare: bool) -> bool:
        """Whether the voice could; what it could stays."""
        for code in PREPARED:
            text = messages.text(code, language)
            voice = self._engines.voice(language, spare=spare)
            if voice is None:
                return False
            if (voice, language, text) in self._kept:
                continue
            try:
                audio = await self._made(text, language, spare)
            except EngineError as error:
                # An excuse that is not there is made when it is needed, or shown without a sound.
                log.info("a phrase could not be made ahead by %s: %s", voice, error)
                if error.code not in ABOUT_THE_TEXT:
                    return False
                continue
            self._keep((voice, language, text), audio)
        return True

    async def _made(self, text: str, language: Language, spare: bool) -> Audio:
        """Empty where a part of it has no sound. Not counted as an answer: nobody asked for it yet."""
        synthesizer = self._engines.synthesizer(language, spare=spare)
        rate_hz, pieces = 1, [NOTHING]
        clauses = ClauseStream(language)
        for clause in (*clauses.feed(text), *clauses.finish()):
            before = len(pieces)
            async with aclosing(synthesizer.synthesize(clause.spoken, language)) as stream:
                async for piece in stream:
                    if isinstance(piece, SpeechStart):
                        rate_hz = piece.rate_hz
                    elif not isinstance(piece, SpeechEnd):
                        pieces.append(piece)
            if not any(map(len, pieces[before:])):
                return Audio(NOTHING, 1)
        return Audio(np.concatenate(pieces), rate_hz)

    def _keep(self, key: Key, audio: Audio) -> None:
        if not 0 < audio.seconds <= self._longest_s / 10:
            return
        self._kept[key] = audio
        while len(self._kept) > self._most or self.seconds > self._longest_s:
            self._kept.popitem(last=False)


class Fillers:
    """When one conversation may say a filler: once in a turn, and never in two turns running."""

    def __init__(self) -> None:
        self._last: TurnId | None = None

    def may(self, turn: TurnId) -> bool:
        """Whether ``turn`` may have one."""
        return self._last is None or turn > self._last + 1

    def said(self, turn: TurnId) -> None:
        """``turn`` has had one."""
        self._last = turn
