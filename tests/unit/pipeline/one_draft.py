"""A draft, a gate and a speaker in virtual time, scripted engines, and as much of a dialog as tests need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from tests.fakes.engines import RATE_HZ, ScriptedEngines

from ondam.audio import WavSpeaker
from ondam.config import load
from ondam.dialog.events import Answered, Event, Failed, Heard, Transcribed
from ondam.errors import EngineError
from ondam.journal.turn import Turn
from ondam.pipeline.capture import Utterance
from ondam.pipeline.gate import Gate
from ondam.pipeline.phrases import Fillers, Phrases
from ondam.pipeline.ports import SpeechStart, Synthesizer
from ondam.pipeline.runner import DraftRunner
from ondam.speech.canned import CannedAnswers
from ondam.speech.form import Form
from ondam.types import HEARING_RATE_HZ, Block, DraftId, Language, Samples, TurnId


@dataclass
class Voices(ScriptedEngines):
    """Voices that have names, count what was really asked, and dislike some texts."""

    name: str = "first"
    refuses: str = ""
    """A clause with this in it is answered with an error of the engine's."""
    never_stops: str = ""
    """A clause with this in it has no end, and is cut by the client."""
    silent: str = ""
    """A clause with this in it has no samples."""
    counted: list[str] = field(default_factory=list)

    spare: Voices | None = None
    """Another voice, that speaks only when it is asked for."""

    def voice(self, language: Language, *, spare: bool = False) -> str | None:
        if spare and self.spare is not None:
            return self.spare.name
        return None if "tts" in self.down else self.name

    def synthesizer(self, language: Language, *, spare: bool = False) -> Synthesizer:
        return self.spare if spare and self.spare is not None else super().synthesizer(language)

    def answered(self, stage: str) -> None:
        self.counted.append(stage)

    async def synthesize(self, text: str, language: Language) -> AsyncGenerator[SpeechStart | Samples, None]:
        if self.silent and self.silent in text:
            yield SpeechStart(RATE_HZ)
            return
        if self.refuses and self.refuses in text:
            raise EngineError("engine_refused", address="fake", reason="KeyError: '𓀀'", kind="failed")
        async with aclosing(super().synthesize(text, language)) as stream:
            async for piece in stream:
                yield piece
        if self.never_stops and self.never_stops in text:
            raise EngineError("speech_too_long", address="fake", characters=len(text), seconds="2.7")


def some_voice(seconds: float = 0.5) -> Utterance:
    tone = np.full(round(seconds * HEARING_RATE_HZ), 5000, np.int16)
    return Utterance((Block(tone, 0, 0),))


class Room:
    """One conversation's gate and speaker, and its drafts one after the other."""

    def __init__(self, engines: Voices, *, canned: Sequence[Any] = (), **config: Any) -> None:
        loop = asyncio.get_running_loop()

        def clock() -> int:
            return round(loop.time() * 1e9)

        self.clock = clock
        self.engines = engines
        self.speaker = WavSpeaker(clock=clock, longest_gap_s=1000.0)
        self.gate = Gate(self.speaker, clock)
        self.config = load(None, {"language": "en", **config})
        self.phrases = Phrases(engines)
        self.fillers = Fillers()
        self.canned = CannedAnswers(canned)
        self.events: list[tuple[float, Event]] = []
        self.runners: list[DraftRunner] = []
        self.form: Form | None = None
        self.filled: list[Mapping[str, object]] = []
        self._over: asyncio.Future[Event] = loop.create_future()

    def draft(self, turn: int = 1) -> DraftRunner:
        number = len(self.runners) + 1
        self._over = asyncio.get_running_loop().create_future()
        made = DraftRunner(
            DraftId(number),
            Turn(TurnId(turn), "test", datetime(2026, 1, 1, tzinfo=UTC)),
            engines=self.engines,
            gate=self.gate,
            config=self.config,
            language="en",
            clock=self.clock,
            tell=self.tell,
            phrases=self.phrases,
            fillers=self.fillers,
            canned=self.canned,
            form=self.form,
            filled=self.filled.append,
        )
        self.runners.append(made)
        return made

    def tell(self, event: Event) -> None:
        """What the dialog machine does with it, as far as these tests need it."""
        self.events.append((self.clock() / 1e9, event))
        runner = self.runners[-1]
        if not isinstance(event, Heard) and (heard := runner.heard()) is not None:
            # What was heard up to this moment is part of what is decided on.
            self.events.insert(-1, (self.clock() / 1e9, heard))
        match event:
            case Transcribed(text=text) if text:
                runner.respond(text, (), aloud=True)
            case Failed(code=code) if runner.turn.fault is None:
                runner.excuse(code)
            case Transcribed() | Failed() | Answered():
                self._over.set_result(event)

    async def over(self) -> Event:
        """The event that ends the turn."""
        return await self._over

    async def asked(self, turn: int = 1, question: str = "What time is it?") -> DraftRunner:
        """A committed turn that is asked aloud, once it is over."""
        runner = self.draft(turn)
        runner.respond(question, (), aloud=True)
        runner.commit()
        await self.over()
        return runner

    def told(self, kind: type[Event]) -> list[tuple[float, Event]]:
        return [(at, event) for at, event in self.events if isinstance(event, kind)]

    @property
    def texts_heard(self) -> list[str]:
        return [event.text for _, event in self.events if isinstance(event, Heard)]
