"""One conversation: its state, ears, voice and turns. The daemon may hold several on the same engines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, assert_never

from ondam.config import Config
from ondam.dialog.actions import Action, Cancel, EndTurn, Excuse, OpenUtterance, Recognize, Respond, Say
from ondam.dialog.endpointing import Silence
from ondam.dialog.events import (
    Asked,
    Event,
    ListenRequested,
    MicrophoneLost,
    Pause,
    SayRequested,
    StopRequested,
)
from ondam.dialog.history import History
from ondam.dialog.machine import Answering, Hearing, Listening, Recognizing, State, step
from ondam.journal.turn import Turn
from ondam.pipeline.detect import Detector
from ondam.pipeline.gate import Gate
from ondam.pipeline.ports import Engines, Microphone, Speaker, VoiceActivity
from ondam.pipeline.runner import TurnRunner
from ondam.types import Language, Nanoseconds, TurnId

log = logging.getLogger(__name__)


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
        microphone: Microphone,
        speaker: Speaker,
        clock: Callable[[], Nanoseconds],
        finished: Callable[[Turn], None],
        changed: Callable[[dict[str, Any]], None],
        history: History | None = None,
    ) -> None:
        self.name = name
        self.microphone = microphone
        self.speaker = speaker
        self.turns = 0
        self._config = config
        self._language = language
        self._engines = engines
        self._clock = clock
        self._finished = finished
        self._changed = changed
        self._gate = Gate(speaker, clock)
        self._detector = Detector(voice, config.detect, clock)
        self._state = State(Silence(config.endpoint.silence_ms), history or History(config.llm.history_turns))
        self._runners: dict[TurnId, TurnRunner] = {}
        self._waiting: dict[TurnId, asyncio.Future[Turn]] = {}
        self._deaf = False

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

    async def run(self) -> None:
        """Listen until the microphone is closed."""
        async for block in self.microphone.blocks():
            if self._hears_itself():
                continue
            for event in self._detector.hear(block):
                self.handle(event)

    def _hears_itself(self) -> bool:
        """Half-duplex: while the answer is in the room, the microphone is not listened to."""
        sounding = self._gate.sounding(self._config.audio.tail_ms * 1_000_000)
        if self._deaf and not sounding:
            self._detector.forget()
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
        return await self._turn_begun_by(ListenRequested(self._clock(), patience_s * 1000))

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
        over = self.next_turn()
        self.handle(event)
        return await over

    async def close(self) -> None:
        """End the turn under way and let go of the devices."""
        self.stop()
        for runner in list(self._runners.values()):
            await runner.ended()
        await self.microphone.close()
        await self.speaker.close()

    def handle(self, event: Event) -> None:
        """Let the machine decide, then do what it says."""
        before = self.phase
        if isinstance(event, Pause) and isinstance(self._state.phase, Hearing):
            turn = self._runners[self._state.phase.turn].turn
            if event.silence_ms <= 1000 * self._detector.frame_s:
                turn.marks.replace("pause_seen", event.at_ns)
        if isinstance(self._state.phase, Answering):
            # What was heard up to this very moment is part of what the machine decides on.
            heard = self._runners[self._state.phase.turn].heard()
            if heard is not None:
                self._state, _ = step(self._state, heard)
        self._state, actions = step(self._state, event)
        for action in actions:
            self._do(action)
        if self.phase != before:
            self._changed({"type": "state", "session": self.name, "state": self.phase})

    def _do(self, action: Action) -> None:
        match action:
            case OpenUtterance():
                self._new_runner(action.turn)
                self._detector.open(by_hand=action.by_hand)
            case Recognize():
                runner = self._runners[action.turn]
                runner.turn.marks.set("endpoint", self._clock())
                runner.recognize(self._detector.close())
            case Respond():
                runner = self._runners.get(action.turn) or self._new_runner(action.turn)
                self._changed({"type": "transcript", "session": self.name, "text": action.question})
                runner.respond(action.question, action.history, aloud=action.aloud)
            case Say():
                self._new_runner(action.turn).say(action.text, action.language)
            case Excuse():
                self._changed({"type": "notice", "session": self.name, "code": action.code})
                self._runners[action.turn].excuse(action.code)
            case Cancel():
                self._detector.close()
                self._runners[action.turn].cancel()
            case EndTurn():
                self._end(action)
            case _:
                assert_never(action)

    def _new_runner(self, turn: TurnId) -> TurnRunner:
        record = Turn(turn, self.name, datetime.now(UTC), settled=self._engines.settled())
        self._runners[turn] = TurnRunner(
            record,
            engines=self._engines,
            gate=self._gate,
            config=self._config,
            language=self._language,
            clock=self._clock,
            tell=self.handle,
        )
        return self._runners[turn]

    def _end(self, action: EndTurn) -> None:
        turn = self._runners.pop(action.turn).turn
        turn.outcome = action.outcome
        turn.engines = self._engines.identities()
        self.turns += 1
        self._finished(turn)
        self._changed({"type": "turn", "session": self.name, "turn": turn.as_json()})
        for number in [n for n in self._waiting if n <= action.turn]:
            if not (waiting := self._waiting.pop(number)).done():
                waiting.set_result(turn)
