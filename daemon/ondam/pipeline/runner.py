"""One draft's work: recognize, respond, speak, excuse; as tasks that can be cancelled at any moment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any

from ondam import messages
from ondam.config import Config
from ondam.dialog.events import Answered, Event, Failed, Heard, Transcribed
from ondam.dialog.history import Exchange
from ondam.errors import OndamError
from ondam.journal.turn import Turn
from ondam.pipeline.capture import Utterance
from ondam.pipeline.gate import Gate
from ondam.pipeline.ports import Engines
from ondam.pipeline.recognize import recognize
from ondam.pipeline.respond import prompt, respond
from ondam.pipeline.speak import Speech
from ondam.speech import Clause, ClauseStream
from ondam.types import DraftId, Language, Nanoseconds, Stage

log = logging.getLogger(__name__)

WATCH_S = 0.02
"""How often it is looked up what was heard. Marks carry the speaker's own times, so this adds no error."""

CLAUSES_AHEAD = 32
"""Clauses that may wait for the voice; an answer is bounded by ``llm.max_tokens`` long before."""


class StageFailed(Exception):
    """A stage of a draft failed: the user is told in their words, the log and the record get the cause."""

    def __init__(self, stage: Stage, cause: OndamError) -> None:
        super().__init__(stage, cause)
        self.stage = stage
        self.cause = cause


class DraftRunner:
    """Does what the dialog machine wants done for one draft, and tells it what came of it.

    ``turn`` is what is remembered of this draft; it becomes the turn's record when the draft is committed.
    """

    def __init__(
        self,
        draft: DraftId,
        turn: Turn,
        *,
        engines: Engines,
        gate: Gate,
        config: Config,
        language: Language,
        clock: Callable[[], Nanoseconds],
        tell: Callable[[Event], None],
    ) -> None:
        self.draft = draft
        self.turn = turn
        self.committed = False
        self._engines = engines
        self._gate = gate
        self._config = config
        self._language = language
        self._clock = clock
        self._tell = tell
        self._speech = Speech(draft, turn, gate, clock)
        self._task: asyncio.Task[None] | None = None
        gate.hold(draft)
        self._excusing = False

    def recognize(self, utterance: Utterance) -> None:
        """Turn the utterance into words; answers with ``Transcribed``."""
        self._begin(lambda: self._recognize(utterance))

    def respond(self, question: str, history: Sequence[Exchange], *, aloud: bool) -> None:
        """Answer; tells ``Heard`` as it goes and ``Answered`` when all was heard."""
        self.turn.aloud = aloud
        self.turn.transcript = question
        asked = prompt(self._config.llm.system_prompt(self._language), history, question)
        clauses = respond(
            self.turn, asked, self._engines, self._language, self._config.llm.max_tokens, self._clock
        )
        self._begin(lambda: self._aloud(clauses) if aloud else self._shown(clauses))

    def say(self, text: str, language: Language | None = None) -> None:
        """Read ``text`` aloud."""
        self._language = language or self._language
        self._begin(lambda: self._aloud(_clauses_of(text, self._language)))

    def excuse(self, code: str) -> None:
        """Say the message ``code``, in the user's language."""
        text = messages.text(code, self._language)
        self.turn.fault = code
        # What was heard of the answer stays what it was: an excuse is no part of it.
        self.heard()
        self._excusing = True
        self._speech = Speech(self.draft, self.turn, self._gate, self._clock)
        said = _clauses_of(text, self._language)
        self._begin(lambda: self._aloud(said) if self.turn.aloud else self._done())

    def commit(self) -> None:
        """Let the audio out: what is ready leaves at once."""
        self.committed = True
        self._gate.open(self.draft)

    def cancel(self) -> None:
        """Let nothing more be heard or computed."""
        self._gate.drop(self.draft)
        if self._task is not None:
            self._task.cancel()

    def heard(self) -> Heard | None:
        """How much of the answer has passed the speaker by now; None before its first sample."""
        text = self._speech.heard()
        if text is None:
            return None
        if not self._excusing:
            self.turn.heard = text
        return Heard(self._clock(), self.draft, text)

    async def ended(self) -> None:
        """Return when no task of this draft runs any more."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = asyncio.create_task(self._guarded(work), name=f"draft {self.draft}")
        self._task.add_done_callback(_log_if_broken)

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except StageFailed as failure:
            log.warning("turn %d: %s", self.turn.id, failure.cause)
            self.turn.cause = failure.cause.code
            self._engines.failed(failure.stage, failure.cause.code)
            self._tell(Failed(self._clock(), self.draft, f"excuse_{failure.stage}"))
        except Exception:
            # A fault of ours must not end the conversation: logged, told, next turn.
            log.exception("turn %d failed", self.turn.id)
            self.turn.cause = "internal_fault"
            self._tell(Failed(self._clock(), self.draft, "internal_fault"))

    async def _recognize(self, utterance: Utterance) -> None:
        try:
            text = await recognize(
                self.turn, utterance, self._engines, self._language, self._config.stt.names, self._clock
            )
        except OndamError as error:
            raise StageFailed("stt", error) from error
        self._tell(Transcribed(self._clock(), self.draft, text))

    async def _aloud(self, clauses: AsyncGenerator[Clause, None]) -> None:
        watch = asyncio.create_task(self._watch(), name=f"ear of draft {self.draft}")
        failure: StageFailed | None = None
        try:
            try:
                async with aclosing(_ahead(clauses)) as made:
                    await self._speech.speak(made, self._engines, self._language)
            except StageFailed as error:
                failure = error
            except OndamError as error:
                failure = StageFailed("tts", error)
            # What was made before it failed is heard before that is told.
            await self._speech.drained()
        finally:
            watch.cancel()
        if failure is not None:
            raise failure
        await self._done()

    async def _shown(self, clauses: AsyncGenerator[Clause, None]) -> None:
        async with aclosing(_ahead(clauses)) as made:
            async for clause in made:
                self.turn.heard = f"{self.turn.heard} {clause.written}".strip()
        self._tell(Heard(self._clock(), self.draft, self.turn.heard))
        await self._done()

    async def _done(self) -> None:
        self._tell(Answered(self._clock(), self.draft, self._speech.spoken))

    async def _watch(self) -> None:
        before: str | None = None
        while True:
            heard = self.heard()
            if heard is not None and heard.text != before:
                before = heard.text
                self._tell(heard)
            await asyncio.sleep(WATCH_S)


async def _ahead(clauses: AsyncGenerator[Clause, None]) -> AsyncGenerator[Clause, None]:
    """The same clauses, made while earlier ones are still being said.

    A failure of the maker is raised after the clauses that it had finished: what can be said is said.
    """
    waiting: asyncio.Queue[Clause | BaseException | None] = asyncio.Queue(CLAUSES_AHEAD)

    async def make() -> None:
        try:
            async with aclosing(clauses):
                async for clause in clauses:
                    await waiting.put(clause)
        except OndamError as error:
            await waiting.put(StageFailed("llm", error))
        else:
            await waiting.put(None)

    maker = asyncio.create_task(make(), name="clauses")
    try:
        while True:
            taking = asyncio.ensure_future(waiting.get())
            await asyncio.wait({taking, maker}, return_when=asyncio.FIRST_COMPLETED)
            if not taking.done() and waiting.empty():
                taking.cancel()
                maker.result()  # raises what was no OndamError
                return
            piece = await taking
            if piece is None:
                return
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        maker.cancel()
        await asyncio.gather(maker, return_exceptions=True)


async def _clauses_of(text: str, language: Language) -> AsyncGenerator[Clause, None]:
    stream = ClauseStream(language)
    for clause in (*stream.feed(text), *stream.finish()):
        yield clause


def _log_if_broken(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("what was told of a turn could not be handled", exc_info=error)
