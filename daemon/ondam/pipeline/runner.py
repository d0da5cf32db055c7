"""One draft's work: recognize, respond, speak, excuse; as tasks that can be cancelled at any moment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from ondam import messages
from ondam.config import Config
from ondam.dialog.events import Answered, Event, Failed, Heard, Ready, Transcribed
from ondam.dialog.history import Exchange
from ondam.errors import OndamError
from ondam.journal.turn import Turn
from ondam.pipeline.capture import Utterance
from ondam.pipeline.context import Context
from ondam.pipeline.gate import Gate
from ondam.pipeline.phrases import FILLER, Fillers, Phrases
from ondam.pipeline.ports import Engines
from ondam.pipeline.recognize import recognize, recognize_alone
from ondam.pipeline.respond import EXCUSES, prompt, respond
from ondam.pipeline.speak import Speech
from ondam.speech import Clause, ClauseStream
from ondam.speech.acknowledgement import may_end_in_one
from ondam.speech.canned import CannedAnswer, CannedAnswers
from ondam.speech.form import Form
from ondam.types import Audio, DraftId, Language, Nanoseconds, Stage

log = logging.getLogger(__name__)

WATCH_S = 0.02
"""How often it is looked up what was heard. Marks carry the speaker's own times, so this adds no error."""

FILLER_SEEN_S = 1.0
"""How long the filler's first sample is looked for; a speaker that is gone never plays it."""

CLAUSES_AHEAD = 32
"""Clauses that may wait for the voice; an answer is bounded by ``llm.max_tokens`` long before."""

LONGEST_ALONE_S = 4.0
"""What is said for itself right after a question ("stop") is no longer: a second of pause, one of words, and
the silence after them."""


class StageFailed(Exception):
    """A stage of a draft failed: the user is told in their words, the log and the record get the cause."""

    def __init__(self, stage: Stage, cause: OndamError) -> None:
        super().__init__(stage, cause)
        self.stage = stage
        self.cause = cause


class DraftRunner:
    """Does what the dialog machine wants done for one draft, and tells it what came of it.

    ``turn`` is what is remembered of this draft; it becomes the turn's record when the draft is committed.
    ``phrases`` are what is said without an engine; without them an excuse is made when it is needed.
    ``fillers``, ``canned`` and ``context`` are one conversation's; without them nothing is said meanwhile,
    every question goes to the model, and what does not fit the model is found out anew each time. With a
    ``form`` the model fills in data beside its answer; ``filled`` gets it once the draft is committed.
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
        names: Sequence[str] = (),
        phrases: Phrases | None = None,
        fillers: Fillers | None = None,
        canned: CannedAnswers | None = None,
        context: Context | None = None,
        form: Form | None = None,
        filled: Callable[[Mapping[str, object]], None] = lambda slots: None,
        made: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``filled`` is told what the form holds, ``made`` the whole text of the model's answer: once it is
        the answer and its last word has come. It may still be sounding.
        """
        self.draft = draft
        self.turn = turn
        self.committed = False
        self._engines = engines
        self._gate = gate
        self._config = config
        self._language = language
        self._clock = clock
        self._tell = tell
        self._names = names
        self._phrases = phrases
        self._fillers = fillers
        self._canned = canned
        self._context = context
        self._form = form
        self._filled = filled
        self._made = made
        self._written: str | None = None
        """The model's whole answer."""
        self._speech = Speech(draft, turn, gate, clock)
        self._task: asyncio.Task[None] | None = None
        """The work under way."""
        self._patience: asyncio.Task[None] | None = None
        """Waits for the first sound of an answer that was committed."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Everything that still runs."""
        self._canned_answer: CannedAnswer | None = None
        self._answers = True
        gate.hold(draft, lambda: tell(Ready(clock(), draft)))
        self._excusing = False

    def recognize(
        self,
        utterance: Utterance,
        added: Utterance | None = None,
        before: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        """Turn the utterance into words; answers with ``Transcribed``. ``added``: its end, which may be a
        wish of its own. ``before``: the words of what was handed on before it.
        """
        self._begin(lambda: self._recognize(utterance, added, before))

    def respond(self, question: str, history: Sequence[Exchange], *, aloud: bool) -> None:
        """Answer; tells ``Heard`` as it goes and ``Answered`` when all was heard."""
        self.turn.aloud = aloud
        self.turn.transcript = question
        clauses = self._canned_clauses(question) or self._models_clauses(question, history)
        self._begin(lambda: self._aloud(clauses) if aloud else self._shown(clauses))

    def _models_clauses(self, question: str, history: Sequence[Exchange]) -> AsyncGenerator[Clause, None]:
        asked = prompt(self._config.llm.system_prompt(self._language), history, question, form=self._form)
        clauses = respond(
            self.turn,
            asked,
            self._engines,
            self._language,
            self._config.llm.max_tokens,
            self._clock,
            context=self._context,
            form=self._form,
        )
        return self._to_the_end(clauses)

    async def _to_the_end(self, clauses: AsyncGenerator[Clause, None]) -> AsyncGenerator[Clause, None]:
        written = []
        async with aclosing(clauses):
            async for clause in clauses:
                written.append(clause.written)
                yield clause
        self._written = " ".join(written)
        self._tell_made()

    def _tell_made(self) -> None:
        """When both have come: the last of the answer, and the certainty that it is wanted."""
        if not self.committed or self._written is None:
            return
        if self.turn.slots is not None:
            self._filled(self.turn.slots)
        self._made(self._written)

    def _canned_clauses(self, question: str) -> AsyncGenerator[Clause, None] | None:
        if self._canned is None:
            return None
        run_away = len(self._canned.run_away)
        answer = self._canned.find(question, self._language)
        for pattern in self._canned.run_away[run_away:]:
            log.warning("canned: the pattern %r takes too long, and is not used any more", pattern)
        if answer is None:
            return None
        self.turn.canned = True
        self.turn.reply = answer.say
        if self.committed:
            self._canned.spoken(answer)
        else:
            self._canned_answer = answer
        return self._noted(_clauses_of(answer.say, self._language))

    def say(self, text: str, language: Language | None = None) -> None:
        """Read ``text`` aloud."""
        self._language = language or self._language
        self._answers = False
        self._stop_waiting()
        made = self._phrases.find(text, self._language, any_voice=False) if self._phrases else None
        self._begin(lambda: self._told(text, made))

    def excuse(self, code: str) -> None:
        """Say the message ``code``, in the user's language."""
        self._stop_waiting()
        text = messages.text(code, self._language)
        self.turn.fault = code
        # What was heard of the answer stays what it was: an excuse is no part of it.
        self.heard()
        self._excusing = True
        self._speech = Speech(self.draft, self.turn, self._gate, self._clock)
        made = self._phrases.find(text, self._language) if self._phrases else None
        self._begin(lambda: self._told(text, made) if self.turn.aloud else self._done())

    def commit(self) -> None:
        """Let the audio out: what is ready leaves at once."""
        self.committed = True
        self._gate.open(self.draft)
        self._tell_made()
        if self._canned is not None and self._canned_answer is not None:
            self._canned.spoken(self._canned_answer)
        if self._answers and self.turn.aloud and self._task is not None and not self._task.done():
            self._patience = self._run(self._wait(), f"patience with draft {self.draft}")

    def cancel(self) -> None:
        """Let nothing more be heard or computed."""
        self._stop_waiting()
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

    @property
    def busy(self) -> bool:
        """Some task of this draft still runs."""
        return bool(self._tasks)

    async def ended(self) -> None:
        """Return when no task of this draft runs any more."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = self._run(self._guarded(work), f"draft {self.draft}")
        self._task.add_done_callback(self._worked)

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_log_if_broken)
        return task

    def _worked(self, task: asyncio.Task[None]) -> None:
        if task is self._task:  # nothing was begun after it: nothing more will come
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    async def _wait(self) -> None:
        """Until the answer can be heard: a filler where it takes long, given up where it takes too long."""
        out, within_s = self._speech.out, self._config.answer.within_s
        try:
            async with asyncio.timeout(within_s):
                if after_ms := self._config.filler.after_ms:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(after_ms / 1000):
                            await out.wait()
                    if not out.is_set():
                        await self._fill()
                await out.wait()
        except TimeoutError:
            await self._give_up(within_s)

    async def _fill(self) -> None:
        if self._phrases is None or self._fillers is None or not self._fillers.may(self.turn.id):
            return
        # Only what is made already: a filler must not stand before the answer at the engine.
        audio = self._phrases.find(messages.text(FILLER, self._language), self._language)
        if audio is None or not await self._speech.fill(audio):
            return
        self._fillers.said(self.turn.id)
        for _ in range(round(FILLER_SEEN_S / WATCH_S)):
            self.turn.filler_ns = self._speech.filler_at_ns()
            if self.turn.filler_ns is not None:
                return
            await asyncio.sleep(WATCH_S)

    async def _give_up(self, within_s: float) -> None:
        log.warning("turn %d: nothing to hear after %g s, given up at %s", self.turn.id, within_s, self._at)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._patience = None
        self.turn.cause = "answer_too_late"
        self._tell(Failed(self._clock(), self.draft, "answer_too_late"))

    @property
    def _at(self) -> Stage:
        """The stage that is under way."""
        marks = self.turn.marks.at_ns
        if "stt_sent" in marks and "stt_final" not in marks:
            return "stt"
        return "tts" if "first_clause" in marks else "llm"

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except StageFailed as failure:
            log.warning("turn %d: %s", self.turn.id, failure.cause)
            self.turn.cause = failure.cause.code
            self._engines.failed(failure.stage, failure.cause.code)
            excuse = EXCUSES.get(failure.cause.code, f"excuse_{failure.stage}")
            self._tell(Failed(self._clock(), self.draft, excuse))
        except Exception:
            # A fault of ours must not end the conversation: logged, told, next turn.
            log.exception("turn %d failed", self.turn.id)
            self.turn.cause = "internal_fault"
            self._tell(Failed(self._clock(), self.draft, "internal_fault"))

    async def _recognize(
        self, utterance: Utterance, added: Utterance | None, before: Callable[[], Awaitable[str]] | None
    ) -> None:
        alone = ""
        try:
            earlier = await before() if before is not None else ""
            text = await recognize(
                self.turn, utterance, self._engines, self._language, self._names, self._clock
            )
            # A second request, only where the words leave open what it was.
            if added is not None and added.audio.seconds <= LONGEST_ALONE_S and may_end_in_one(text):
                alone = await recognize_alone(added, self._engines, self._language, self._names)
        except OndamError as error:
            raise StageFailed("stt", error) from error
        if earlier:
            self.turn.transcript = text = f"{earlier} {text}".rstrip()
        self._tell(Transcribed(self._clock(), self.draft, text, alone))

    async def _aloud(self, clauses: AsyncGenerator[Clause, None]) -> None:
        async def speak() -> None:
            async with aclosing(_ahead(clauses)) as made:
                await self._speech.speak(made, self._engines, self._language)

        await self._heard_out(speak)

    async def _told(self, text: str, made: Audio | None) -> None:
        """Say a phrase, from the store where it is there."""
        if made is None:
            await self._aloud(_clauses_of(text, self._language))
        else:
            await self._heard_out(lambda: self._speech.play(made, text))

    async def _heard_out(self, speak: Callable[[], Coroutine[Any, Any, None]]) -> None:
        watch = asyncio.create_task(self._watch(), name=f"ear of draft {self.draft}")
        failure: StageFailed | None = None
        try:
            try:
                await speak()
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

    async def _noted(self, clauses: AsyncGenerator[Clause, None]) -> AsyncGenerator[Clause, None]:
        async for clause in clauses:
            self.turn.clauses += 1
            self.turn.marks.set("first_clause", self._clock())
            yield clause

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
    taking: asyncio.Task[Clause | BaseException | None] | None = None
    try:
        while True:
            taking = asyncio.create_task(waiting.get(), name="next clause")
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
        if taking is not None:
            taking.cancel()
        await asyncio.gather(maker, return_exceptions=True)


async def _clauses_of(text: str, language: Language) -> AsyncGenerator[Clause, None]:
    stream = ClauseStream(language)
    for clause in (*stream.feed(text), *stream.finish()):
        yield clause


def _log_if_broken(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("what was told of a turn could not be handled", exc_info=error)
