"""Whole turns from WAVs, in real time: each in a conversation of its own, with a history that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ondam.audio import WavMicrophone, WavSpeaker, resampled
from ondam.config import Config
from ondam.config.conversation import for_conversation
from ondam.dialog.history import History
from ondam.errors import AudioError, ControlError
from ondam.house.sessions import Sessions
from ondam.journal.turn import Turn
from ondam.messages import Phrase
from ondam.pipeline.ports import VoiceActivity
from ondam.session import Session
from ondam.types import HEARING_RATE_HZ, Audio, Language

AFTER_WAV_S = 2.0
"""After the end of a WAV and the endpoint's window a turn must have begun: else there was no speech."""


class WavTurns:
    """Remembers what was asked and answered in the ones before."""

    def __init__(
        self, config: Config, sessions: Sessions, voice: Callable[[], VoiceActivity], *, judged: bool
    ) -> None:
        """``voice`` makes a detector, which may take a while. ``judged``: smart-turn is loaded."""
        self._config = config
        self._sessions = sessions
        self._voice = voice
        self._judged = judged
        self._history = History(config.llm.history_turns)

    def configure(self, config: Config) -> None:
        """The daemon's settings from now on."""
        self._config = config

    async def turn(
        self,
        audio: Audio,
        language: Language | None,
        settings: Mapping[str, object],
        *,
        reset_history: bool,
    ) -> tuple[Turn, Audio]:
        """The turn that ``audio`` comes to, and what was said.

        ``settings`` are laid over the daemon's for this turn alone: ConfigError where that cannot be,
        ControlError ``control_bad_request`` where smart-turn is wanted and not loaded. AudioError
        ``wav_without_speech`` when it is over and nobody has spoken.
        """
        config = for_conversation(self._config, settings)
        # Nobody waits in the room: a filler would only be part of the recording.
        config = config.model_copy(update={"filler": config.filler.model_copy(update={"after_ms": 0})})
        if config.endpoint.mode == "smart_turn" and not self._judged:
            # The model was not loaded at the start: the plain window would be taken for smart-turn.
            raise ControlError("control_bad_request", reason=Phrase("reason_no_smart_turn"))
        if reset_history:
            self._history = History(self._config.llm.history_turns)
        history = self._history  # now: while the sound is made ready, another turn may end
        speaker = WavSpeaker()
        heard = await asyncio.to_thread(resampled, audio, HEARING_RATE_HZ)
        session = self._sessions.begin(
            config=config,
            language=language,
            voice=await asyncio.to_thread(self._voice),
            microphone=WavMicrophone(heard),
            speaker=speaker,
            history=history,
            full_duplex=lambda: True,  # a file hears nobody
        )
        hearing = asyncio.create_task(session.run(), name="hearing a WAV")
        loop = asyncio.get_running_loop()
        window_ms = max(config.endpoint.incomplete_ms, config.endpoint.silence_ms)
        until = loop.time() + audio.seconds + window_ms / 1000 + AFTER_WAV_S
        try:
            while True:
                over = session.next_turn()
                turn = await _over(session, over, hearing, until)
                # A cough before the question is no question.
                if turn.outcome != "no_speech" or loop.time() > until - AFTER_WAV_S:
                    break
            self._history = session.history
            return turn, speaker.recording()
        finally:
            await self._sessions.end(session)
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)


async def _over(
    session: Session, over: asyncio.Future[Turn], hearing: asyncio.Task[None], until: float
) -> Turn:
    both: set[asyncio.Future[Any]] = {over, hearing}
    left = until - asyncio.get_running_loop().time()
    await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    if not over.done() and not hearing.done():
        if session.phase == "listening":
            raise AudioError("wav_without_speech")
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if hearing.done():
        hearing.result()  # raises what broke it
    return over.result() if over.done() else await over
