"""One conversation: its state, ears, voice and turns. The daemon may hold several on the same engines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, assert_never

from ondam import messages
from ondam.audio.levels import Meter, SpeakerMeter
from ondam.config import Config
from ondam.dialog.actions import (
    Acknowledge,
    Action,
    Cancel,
    CloseUtterance,
    Commit,
    Duck,
    EndTurn,
    Excuse,
    HandOn,
    Hold,
    JudgePause,
    OpenUtterance,
    Recognize,
    ReopenUtterance,
    Respond,
    Resume,
    Say,
)
from ondam.dialog.attention import Attention
from ondam.dialog.endpointing import Drafting, Endpointing, Silence, SmartTurn
from ondam.dialog.events import (
    Asked,
    EnginesSwitched,
    Event,
    Judged,
    ListenRequested,
    MicrophoneLost,
    ModeSet,
    Pause,
    PieceHeard,
    Pressed,
    Released,
    SayRequested,
    StopRequested,
    VoiceFell,
)
from ondam.dialog.history import History
from ondam.dialog.machine import Answering, Hearing, Listening, Recognizing, State, step
from ondam.house.under_way import UnderWay
from ondam.journal.marks import MARKS, Marks, last_voiced_sample
from ondam.journal.turn import Turn
from ondam.journal.warmth import Population, Settling, Warmth, population
from ondam.pipeline.capture import Utterance
from ondam.pipeline.context import Context
from ondam.pipeline.detect import Detector
from ondam.pipeline.gate import Gate
from ondam.pipeline.phrases import Fillers, Phrases
from ondam.pipeline.pieces import Pieces
from ondam.pipeline.ports import EndOfTurn, Engines, Message, Microphone, Speaker, VoiceActivity
from ondam.pipeline.recognize import recognize_alone
from ondam.pipeline.respond import prefill, prompt
from ondam.pipeline.runner import DraftRunner
from ondam.speech.canned import CannedAnswers
from ondam.types import DraftId, Language, Mode, Nanoseconds, Samples, TurnId

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """The turn that is under way. ``marks_ms``: from the last voiced sample, None before that is known."""

    turn: TurnId
    marks_ms: Mapping[str, float | None]
    reply: str
    """What was heard of the answer so far."""
    draft: DraftId | None = None
    """The one that the marks are of."""


class Session:
    """Feeds the dialog machine and does what it says.

    ``changed`` is called with every state change, transcript and finished turn, as a wire event.
    """

    def __init__(
        self,
        name: str,
        *,
        config: Config,
        language: Language,
        engines: Engines,
        voice: VoiceActivity,
        end_of_turn: EndOfTurn | None = None,
        microphone: Microphone,
        speaker: Speaker,
        clock: Callable[[], Nanoseconds],
        finished: Callable[[Turn], None],
        changed: Callable[[dict[str, Any]], None],
        history: History | None = None,
        attention: Attention | None = None,
        phrases: Phrases | None = None,
        full_duplex: Callable[[], bool] = lambda: False,
        on_battery: Callable[[], bool] = lambda: False,
    ) -> None:
        """``full_duplex``: whether the microphone brings nothing of the answer while that sounds.

        ``on_battery``: whether the machine runs on one now; asked with each utterance.
        """
        self.name = name
        self.microphone = microphone
        self.speaker = speaker
        self._config = config
        self._language = language
        self._engines = engines
        self._clock = clock
        self._finished = finished
        self._changed = changed
        self._gate = Gate(speaker, clock)
        self._voice = voice
        self._detector = Detector(voice, config.detect, clock)
        self._detects_otherwise = False
        """The detector is to be made anew, as soon as nobody speaks."""
        self._end_of_turn = end_of_turn
        self._state = State(
            _endpointing(config, judged=end_of_turn is not None),
            history or History(config.llm.history_turns),
            _drafting(config),
            attention=attention or Attention(language=language),
        )
        self._full_duplex = full_duplex
        self._on_battery = on_battery
        self._phrases = phrases
        self._fillers = Fillers()
        self._canned = CannedAnswers(config.canned)
        self._context = Context()
        self._form = config.form.form(language)
        self._ahead: asyncio.Task[None] | None = None
        """Computes what the next question will follow."""
        self._under_way: dict[TurnId, UnderWay] = {}
        self._leaving: list[DraftRunner | Pieces] = []
        """Those of turns that are over, for as long as they take to let go of the engines."""
        self._judging: set[asyncio.Task[None]] = set()
        self._waiting: dict[TurnId, asyncio.Future[Turn]] = {}
        self._underruns = speaker.underruns
        self._deaf = False
        self._meter: Meter | None = None
        """Of the microphone, while somebody wants to know how loud it is."""
        self._last_voiced: tuple[TurnId, int, Nanoseconds | None] | None = None
        """Of a turn's utterance of so many blocks: found once for who looks on."""

    @property
    def history(self) -> History:
        """What was asked, and what was heard of the answers."""
        return self._state.history

    @property
    def phase(self) -> str:
        """What the conversation is doing, as the control API names it."""
        match self._state.phase:
            case Listening():
                return "listening"
            case Hearing():
                return "hearing"
            case Recognizing():
                return "recognizing"
            case Answering(heard=None):
                return "thinking"
            case Answering():
                return "speaking"
            case _:
                assert_never(self._state.phase)

    @property
    def mode(self) -> Mode:
        """When the microphone counts."""
        return self._state.attention.mode

    def set_mode(self, mode: Mode) -> None:
        """From now on the microphone counts as ``mode`` says; closing it for "muted" is the caller's."""
        if mode == self.mode:
            return
        self.handle(ModeSet(self._clock(), mode))
        self._changed({"type": "mode", "session": self.name, "mode": mode})

    def configure(self, config: Config, language: Language) -> None:
        """Other settings from now on. What is being answered goes on with those that it was begun with."""
        before, self._config, self._language = self._config, config, language
        self._detects_otherwise |= before.detect != config.detect
        self._canned = CannedAnswers(config.canned)
        self._context = Context()
        self._form = config.form.form(language)
        self._stop_computing_ahead()
        state = self._state
        self._state = replace(
            state,
            endpointing=_endpointing(config, judged=self._end_of_turn is not None),
            drafting=_drafting(config, sparing=self._on_battery()),
            history=state.history.within(config.llm.history_turns),
            attention=replace(state.attention, names=config.listen.names, language=language),
        )

    def follow(self, wanted: bool) -> None:
        """Begin, or end, to measure how loud it is."""
        self._meter = Meter() if wanted else None
        self._gate.meter = SpeakerMeter(self.speaker.rate_hz) if wanted else None

    def levels(self) -> tuple[float | None, float | None]:
        """Of the microphone and of what is heard of us, in dBFS since the last time; None: nothing comes."""
        return None if self._meter is None else self._meter.take(), self._gate.level_db()

    def progress(self) -> Progress | None:
        """The turn that is under way, as far as it has come."""
        phase = self._state.phase
        if isinstance(phase, Listening) or (turn := self._under_way.get(phase.turn)) is None:
            return None
        draft = phase.draft.id if isinstance(phase, Hearing) and phase.draft else None
        if isinstance(phase, Recognizing | Answering):
            draft = phase.draft
        runner = None if draft is None else turn.drafts.get(draft)
        marks = Marks({**(runner.turn.marks.at_ns if runner else {}), **turn.begun.marks.at_ns})
        if turn.said.blocks:
            known = phase.turn, len(turn.said.blocks)
            if self._last_voiced is None or self._last_voiced[:2] != known:
                index = last_voiced_sample(turn.said.samples)
                self._last_voiced = (*known, turn.said.at_ns(index) if index else None)
            if (at_ns := self._last_voiced[2]) is not None:
                marks.replace("last_voiced", at_ns)
        # A typed question has no voice to count from: the moment it was sent on, as in its record.
        counted = "last_voiced" in marks.at_ns or not turn.begun.marks.at_ns
        told: dict[str, float | None] = {
            name: marks.ms(name, marks.origin) if counted else None
            for name in MARKS
            # The latest sample moves for as long as the answer sounds.
            if name in marks.at_ns and name != "dac_last_sample"
        }
        return Progress(phase.turn, told, runner.turn.heard if runner else "", draft)

    def use_speaker(self, speaker: Speaker) -> None:
        """Speak through another one; what is being said falls silent. The caller closes the one before."""
        self.stop()
        self.speaker = speaker
        meter, self._gate = self._gate.meter, Gate(speaker, self._clock)
        self._gate.meter = meter and SpeakerMeter(speaker.rate_hz)
        self._underruns = speaker.underruns

    @property
    def pressed(self) -> bool:
        """The talk button is held down."""
        return isinstance(self._state.phase, Hearing) and self._state.phase.pressed

    def press(self) -> None:
        """The talk button went down: whatever comes until ``release`` is one utterance."""
        if not self.pressed:
            self.handle(Pressed(self._clock()))

    def release(self) -> None:
        """The talk button was let go: the user has finished."""
        self.handle(Released(self._clock()))

    def cue(self, samples: Samples) -> None:
        """Play a short sound of ours, unless an answer is sounding."""
        self._gate.cue(samples)

    async def run(self) -> None:
        """Listen until the microphone is closed."""
        async for block in self.microphone.blocks():
            if self._detects_otherwise and isinstance(self._state.phase, Listening):
                self._detects_otherwise = False
                self._voice.reset()
                self._detector = Detector(self._voice, self._config.detect, self._clock)
            if self._meter is not None:
                self._meter.hear(block.samples)
            if self._hears_itself():
                continue
            if not self._state.attention.hears and not isinstance(self._state.phase, Hearing):
                self._detector.keep(block)
                continue
            for event in self._detector.hear(block):
                self.handle(event)

    async def hear(self, microphone: Microphone) -> None:
        """Listen to another microphone, once the one before was closed."""
        self.microphone = microphone
        self._detector.forget()
        await self.run()

    def _hears_itself(self) -> bool:
        """Half-duplex: while the answer is in the room, the microphone is not listened to.

        Except where an utterance is open: a button ended the answer, and the first word is wanted.
        """
        if isinstance(self._state.phase, Hearing):
            self._deaf = False
            return False
        sounding = self._gate.sounding(self._config.audio.tail_ms * 1_000_000) and not (
            self._config.barge_in.enabled and self._full_duplex()
        )
        if sounding and not self._deaf:
            self._detector.forget()  # what comes after does not follow on what was before
        self._deaf = sounding
        return sounding

    async def ask(self, text: str, *, aloud: bool) -> Turn:
        """Answer a typed question; returns the finished turn."""
        return await self._turn_begun_by(Asked(self._clock(), text, aloud))

    async def say(self, text: str, language: Language | None = None) -> Turn:
        """Read ``text`` aloud; returns when it was heard."""
        return await self._turn_begun_by(SayRequested(self._clock(), text, language))

    async def listen(self, patience_s: float) -> Turn:
        """Take whatever comes from the microphone now as an utterance; returns the finished turn."""
        if isinstance(self._state.phase, Hearing):
            # The user was quicker than the button: what they are saying is what is wanted.
            number = self._state.phase.turn
            over = self._waiting.setdefault(number, asyncio.get_running_loop().create_future())
            self.handle(ListenRequested(self._clock(), patience_s * 1000))
            return await self._ended(number, over)
        return await self._turn_begun_by(ListenRequested(self._clock(), patience_s * 1000))

    def engines_switched(self) -> None:
        """Other engines serve from now on. A turn that is being answered ends on those that it has.

        One that is still being heard goes over to the new ones, without what was drafted on the old.
        """
        self.handle(EnginesSwitched(self._clock()))
        phase = self._state.phase
        if isinstance(phase, Hearing) and (turn := self._under_way.get(phase.turn)) is not None:
            before, turn.lease = turn.lease, self._engines.lease()
            turn.begun.warmth = turn.lease.engines.warmth()
            turn.begun.population = self._population(turn.begun.warmth)
            before.let_go()
        # How much it has room for is another model's affair.
        self._context = Context()
        self._stop_computing_ahead()

    async def compute_ahead(self, engines: Engines) -> None:
        """Let the language engine of ``engines`` compute the conversation so far. Raises nothing."""
        llm = self._config.llm
        asked = prompt(llm.system_prompt(self._language), self.history.exchanges, "", form=self._form)
        await prefill(asked, engines, llm.max_tokens, form=self._form)

    def stop(self) -> None:
        """Be silent at once."""
        self.handle(StopRequested(self._clock()))

    def microphone_lost(self) -> None:
        """The microphone went away."""
        self.handle(MicrophoneLost(self._clock()))

    def next_turn(self) -> asyncio.Future[Turn]:
        """The next turn that begins, whoever begins it, once it is over."""
        return self._waiting.setdefault(self._state.next_turn, asyncio.get_running_loop().create_future())

    async def _turn_begun_by(self, event: Event) -> Turn:
        number, over = self._state.next_turn, self.next_turn()
        self.handle(event)
        return await self._ended(number, over)

    async def _ended(self, number: TurnId, over: asyncio.Future[Turn]) -> Turn:
        """The turn, once it is over. Who no longer waits for it no longer wants it."""
        try:
            return await over
        except asyncio.CancelledError:
            if number in self._under_way:
                self.stop()
            raise

    async def close(self) -> None:
        """End the turn under way and let go of the devices."""
        self.stop()
        if (ahead := self._ahead) is not None:
            self._stop_computing_ahead()
            await asyncio.gather(ahead, return_exceptions=True)
        for judging in self._judging:
            judging.cancel()
        await asyncio.gather(*self._judging, return_exceptions=True)
        for runner in self._leaving:
            await runner.ended()
        await self.microphone.close()
        await self.speaker.close()

    def handle(self, event: Event) -> None:
        """Let the machine decide, then do what it says."""
        before = self.phase
        if isinstance(event, Pause | VoiceFell) and isinstance(self._state.phase, Hearing):
            self._mark_pause(self._state.phase, event)
        phase = self._state.phase
        answering = phase.over if isinstance(phase, Hearing | Recognizing) else phase
        if isinstance(answering, Answering):
            # What was heard up to this very moment is part of what the machine decides on.
            heard = self._under_way[answering.turn].drafts[answering.draft].heard()
            if heard is not None:
                self._state, _ = step(self._state, heard)
        self._state, actions = step(self._state, event)
        for action in actions:
            self._do(action)
        if self.phase != before:
            self._changed({"type": "state", "session": self.name, "state": self.phase})

    def _mark_pause(self, phase: Hearing, sign: Pause | VoiceFell) -> None:
        """The first sign of a pause counts: the one that begins a draft, or a silent frame."""
        first = isinstance(sign, VoiceFell) or sign.silence_ms <= 1000 * self._detector.frame_s
        if first and phase.draft is None:
            self._under_way[phase.turn].begun.marks.replace("pause_seen", sign.at_ns)

    def _do(self, action: Action) -> None:
        match action:
            case OpenUtterance():
                self._new_turn(action.turn)
                self.speaker.wake()
                sparing = self._on_battery()
                self._state = replace(self._state, drafting=_drafting(self._config, sparing=sparing))
                self._detector.open(by_hand=action.by_hand)
            case ReopenUtterance():
                self._detector.reopen()
            case CloseUtterance():
                utterance = self._detector.close()
                if action.meant:
                    turn = self._under_way[action.turn]
                    turn.said = utterance
                    turn.begun.marks.replace("endpoint", self._clock())
            case JudgePause():
                self._judge(action)
            case Recognize():
                self._recognize(action)
            case HandOn():
                self._hand_on(self._under_way[action.turn], action.turn)
            case Respond():
                self._stop_computing_ahead()
                runner = self._runner(action.turn, action.draft)
                runner.respond(action.question, action.history, aloud=action.aloud)
                if runner.committed:
                    self._tell_words(runner)
            case Say():
                self._new_runner(action.turn, action.draft).say(action.text, action.language)
            case Acknowledge():
                said = messages.text("called_by_name", self._language)
                self._under_way[action.turn].drafts[action.draft].say(said)
            case Duck():
                self._gate.level(action.draft, self._config.barge_in.duck)
            case Hold():
                self._gate.level(action.draft, 0.0)
            case Resume():
                self._gate.level(action.draft, 1.0)
            case Commit():
                self._commit(action)
            case Excuse():
                self._changed({"type": "notice", "session": self.name, "code": action.code})
                self._under_way[action.turn].drafts[action.draft].excuse(action.code)
            case Cancel():
                self._cancel(action)
            case EndTurn():
                self._end(action)
            case _:
                assert_never(action)

    def _recognize(self, action: Recognize) -> None:
        added = self._detector.added() if action.added else None
        turn = self._under_way.get(action.turn)
        pieces = None if turn is None else turn.pieces
        before = partial(pieces.words, len(pieces)) if pieces else None
        self._new_runner(action.turn, action.draft).recognize(self._detector.so_far(), added, before)

    def _hand_on(self, turn: UnderWay, number: TurnId) -> None:
        def told(text: str) -> None:
            self.handle(PieceHeard(self._clock(), number, text))

        async def words(said: Utterance) -> str:
            return await recognize_alone(said, turn.lease.engines, self._language, self._names())

        if turn.pieces is None:
            turn.pieces = Pieces(words, told)
        piece = self._detector.hand_on()
        if self._config.journal.keep_audio:
            turn.handed_on.append(piece.samples)
        turn.pieces.add(piece)

    def _commit(self, action: Commit) -> None:
        runner = self._under_way[action.turn].drafts[action.draft]
        runner.commit()
        self._tell_words(runner)

    def _cancel(self, action: Cancel) -> None:
        phase = self._state.phase
        going_on = not isinstance(phase, Listening) and phase.turn == action.turn
        self._under_way[action.turn].cancel(action.draft, going_on=going_on)

    def _compute_ahead(self, turn: UnderWay, draft: DraftId, answer: str) -> None:
        """While the answer is spoken its engine computes what the next question will follow."""
        question = turn.drafts[draft].turn.transcript or ""
        history = self._state.history.with_exchange(question, answer).exchanges
        llm = self._config.llm
        asked = prompt(llm.system_prompt(self._language), history, "", form=self._form)
        self._stop_computing_ahead()
        self._ahead = asyncio.create_task(self._prefill(asked), name=f"computing ahead after draft {draft}")

    async def _prefill(self, asked: Sequence[Message]) -> None:
        llm = self._config.llm
        await prefill(asked, self._engines, llm.max_tokens, context=self._context, form=self._form)

    def _names(self) -> Sequence[str]:
        """What the recognizer is to expect: without its own name it hardly ever spells that right."""
        attention = self._state.attention
        own = [name for name in attention.names if name.isascii() == (self._language == "en")]
        return [*self._config.stt.names, *(own if attention.picky else ())]

    def _stop_computing_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None

    def _tell_slots(self, turn: TurnId, slots: Mapping[str, object]) -> None:
        self._changed({"type": "slots", "session": self.name, "turn": int(turn), "slots": dict(slots)})

    def _tell_words(self, runner: DraftRunner) -> None:
        if runner.turn.transcript:
            words = runner.turn.transcript
            self._changed({"type": "transcript", "session": self.name, "text": words})

    def _judge(self, action: JudgePause) -> None:
        """Ask how complete the utterance sounds, beside recognition."""
        judge = self._end_of_turn
        phase = self._state.phase
        if judge is None or not isinstance(phase, Hearing):
            return
        # The model was trained on turns that end in about 200 ms of silence.
        said = self._detector.so_far().ending_in(self._config.endpoint.judge_with_ms, phase.silence_ms)

        async def ask() -> None:
            try:
                complete = await judge(said)
            except Exception:
                # The plain window decides instead, later than it could: that must not stay unseen.
                log.exception("smart-turn failed")
                self._changed({"type": "notice", "session": self.name, "code": "end_of_turn_failed"})
                return
            self.handle(Judged(self._clock(), action.turn, action.pause, complete))

        task = asyncio.create_task(ask(), name=f"judging turn {action.turn}")
        self._judging.add(task)
        task.add_done_callback(self._judging.discard)

    def _new_turn(self, number: TurnId) -> UnderWay:
        lease = self._engines.lease()
        begun = self._begun(number, datetime.now(UTC), lease.engines.warmth())
        self._under_way[number] = UnderWay(begun, lease)
        return self._under_way[number]

    def _begun(self, number: TurnId, at: datetime, warmth: Warmth | None) -> Turn:
        measure = self._config.measure
        return Turn(
            number,
            self.name,
            at,
            warmth=warmth,
            population=self._population(warmth),
            budget_ms=measure.budget_ms,
        )

    def _population(self, warmth: Warmth | None) -> Population:
        measure = self._config.measure
        settling = Settling(measure.settled_answers, measure.settled_s, measure.idle_s)
        return population(warmth, settling) if warmth else "cold"

    def _runner(self, number: TurnId, draft: DraftId) -> DraftRunner:
        turn = self._under_way.get(number)
        return (turn and turn.drafts.get(draft)) or self._new_runner(number, draft)

    def _new_runner(self, number: TurnId, draft: DraftId) -> DraftRunner:
        turn = self._under_way.get(number) or self._new_turn(number)
        runner = DraftRunner(
            draft,
            self._begun(number, turn.begun.started_at, turn.begun.warmth),
            engines=turn.lease.engines,
            gate=self._gate,
            config=self._config,
            names=self._names(),
            language=self._language,
            clock=self._clock,
            tell=self.handle,
            phrases=self._phrases,
            fillers=self._fillers,
            canned=self._canned,
            context=self._context,
            form=self._form,
            filled=partial(self._tell_slots, number),
            made=partial(self._compute_ahead, turn, draft),
        )
        turn.add(runner, early=isinstance(self._state.phase, Hearing))
        return runner

    def _end(self, action: EndTurn) -> None:
        ended = self._under_way.pop(action.turn)
        if action.draft is not None:
            self._gate.end(action.draft)
        turn = ended.end(action.draft, action.outcome, keep_audio=self._config.journal.keep_audio)
        self._leaving = [*(one for one in self._leaving if one.busy), *ended.leaving]
        turn.underruns = self.speaker.underruns - self._underruns
        self._underruns = self.speaker.underruns
        try:
            self._finished(turn)
        except Exception:
            # Whoever waits for the turn must not wait for ever because it could not be remembered.
            log.exception("turn %d is over, and could not be remembered", turn.id)
        ended.lease.let_go()
        self._changed({"type": "turn", "session": self.name, "turn": turn.as_json()})
        for number in [n for n in self._waiting if n <= action.turn and n not in self._under_way]:
            if not (waiting := self._waiting.pop(number)).done():
                waiting.set_result(turn)


def _endpointing(config: Config, *, judged: bool) -> Endpointing:
    endpoint = config.endpoint
    if endpoint.mode == "silence" or not judged:
        return Silence(endpoint.silence_ms)
    return SmartTurn(
        threshold=endpoint.threshold,
        sure=max(endpoint.threshold, endpoint.sure),
        sure_ms=endpoint.sure_ms,
        complete_ms=max(endpoint.sure_ms, endpoint.complete_ms),
        incomplete_ms=endpoint.incomplete_ms,
        unsure_ms=endpoint.silence_ms,
    )


def _drafting(config: Config, *, sparing: bool = False) -> Drafting:
    drafts = config.drafts
    most = drafts.most_on_battery if sparing else drafts.most_per_turn
    return Drafting(drafts.after_ms if most else float("inf"), most, drafts.take_back_ms, drafts.at_fall)
