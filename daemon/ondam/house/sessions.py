"""The conversations that go on: the one at the microphone, and others on the same engines."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Protocol, cast

from ondam.config import Config
from ondam.control import wire
from ondam.dialog.attention import Attention
from ondam.dialog.history import History
from ondam.journal.turn import Turn
from ondam.pipeline.phrases import Phrases
from ondam.pipeline.ports import EndOfTurn, Engines, Microphone, Speaker, VoiceActivity
from ondam.planner.probe import on_battery
from ondam.session import Session
from ondam.types import Language


class Finished(Protocol):
    """Takes every turn that ends."""

    def __call__(self, own: Config | None, turn: Turn, /) -> None:
        """``own``: the configuration of its conversation, where that has one of its own."""


class Sessions:
    """Begins and ends them, and gives each what all of them share."""

    def __init__(
        self,
        config: Config,
        *,
        engines: Engines,
        phrases: Phrases,
        voice: Callable[[], VoiceActivity],
        end_of_turn: EndOfTurn | None,
        finished: Finished,
        publish: Callable[[wire.Event], None],
    ) -> None:
        """``voice`` makes a detector of voices: each conversation has its own."""
        self._config = config
        self._engines = engines
        self._phrases = phrases
        self._voice = voice
        self._end_of_turn = end_of_turn
        self._finished = finished
        self._publish = publish
        self._run = uuid.uuid4().hex[:8]
        """Names those of this run: a process id comes back, in a container at once."""
        self._begun = 0
        self._now: set[Session] = set()

    def configure(self, config: Config) -> None:
        """How those begin that begin from now on. One that goes on is told by whoever holds it."""
        self._config = config

    def new_name(self) -> str:
        """A name for one that is still to begin; no other has it."""
        self._begun += 1
        return f"{self._run}-{self._begun}"

    def begin(
        self,
        *,
        microphone: Microphone,
        speaker: Speaker,
        full_duplex: Callable[[], bool],
        config: Config | None = None,
        language: Language | None = None,
        voice: VoiceActivity | None = None,
        history: History | None = None,
        attention: Attention | None = None,
        name: str | None = None,
        publish: Callable[[wire.Event], None] | None = None,
    ) -> Session:
        """``config``, ``language``, ``voice`` and ``publish`` only where they are not as the daemon's.

        ``name``: from ``new_name``, where it is known already.
        """
        tell = publish or self._publish
        begun = Session(
            name or self.new_name(),
            config=config or self._config,
            language=language or self._config.spoken_language,
            engines=self._engines,
            voice=voice or self._voice(),
            end_of_turn=self._end_of_turn,
            microphone=microphone,
            speaker=speaker,
            clock=time.monotonic_ns,
            finished=partial(self._finished, config),
            changed=lambda event: tell(cast(wire.Event, event)),
            history=history,
            attention=attention,
            phrases=self._phrases,
            full_duplex=full_duplex,
            on_battery=on_battery,
        )
        self._now.add(begun)
        return begun

    async def end(self, session: Session) -> None:
        """Nothing more is heard or said in it."""
        try:
            await session.close()
        finally:
            self._now.discard(session)

    def engines_switched(self) -> None:
        """Other engines serve from now on: each goes over to them when its turn allows."""
        for session in tuple(self._now):
            session.engines_switched()
