"""The resident engines for other programs, so that none of them loads a model a second time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from ondam.audio import resampled
from ondam.clients.passthrough import forward
from ondam.control.api import ChatAnswer
from ondam.errors import EngineError
from ondam.pipeline.ports import Engines, SpeechEnd, SpeechStart, Transcript
from ondam.speech import ClauseStream
from ondam.supervisor.crew import Crew
from ondam.supervisor.fleet import Fleet
from ondam.types import HEARING_RATE_HZ, Audio, Language, Samples


@dataclass(frozen=True)
class Lending:
    """No engine is taken away, by a switch, from whoever it is lent to. All raise EngineError."""

    engines: Engines
    fleet: Fleet

    async def transcribe(self, audio: Audio, language: Language, names: Sequence[str]) -> Transcript:
        """The words in ``audio``, of any rate; ``names`` bias it."""
        lease = self.engines.lease()
        try:
            recognizer = lease.engines.recognizer()
            heard = await asyncio.to_thread(resampled, audio, HEARING_RATE_HZ)
            return await recognizer.transcribe(heard, language, names)
        finally:
            lease.let_go()

    async def synthesize(self, text: str, language: Language) -> AsyncGenerator[SpeechStart | Samples, None]:
        """``text`` as sound, clause by clause; the voice's rate is the same for all clauses."""
        clauses = ClauseStream(language)
        started = False
        lease = self.engines.lease()
        try:
            for clause in (*clauses.feed(text), *clauses.finish()):
                stream = lease.engines.synthesizer(language).synthesize(clause.spoken, language)
                async with aclosing(stream) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, SpeechEnd):
                            continue
                        if not isinstance(piece, SpeechStart):
                            yield piece
                        elif not started:
                            started = True
                            yield piece
        finally:
            lease.let_go()

    async def chat(self, body: Mapping[str, object]) -> ChatAnswer:
        """Pass an OpenAI chat completions request to the language engine."""
        crew = self.fleet.crew
        engine = crew.engine("llm")
        if engine is None:
            raise EngineError("engine_switching" if "llm" in crew.switching else "llm_down")
        crew.hold()
        try:
            status, content_type, chunks = await forward(engine.address, body)
        except BaseException:
            # Also when the caller left meanwhile: a crew that is held is never dismissed.
            crew.let_go()
            raise
        held = _held(crew, chunks)
        await anext(held)  # what was not begun would not be ended either
        return ChatAnswer(status, {"Content-Type": content_type}, held)


async def _held(crew: Crew, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same after a first that is empty; until it is closed, its engine is not taken away."""
    try:
        yield b""
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    finally:
        crew.let_go()
