"""Turns from recordings, on scripted engines and in virtual time; and the conversations that they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time
from tests.unit.test_session import Loud, voice

from ondam.audio import WavMicrophone, WavSpeaker
from ondam.config import Config, load
from ondam.control import wire
from ondam.errors import AudioError, ConfigError, ControlError
from ondam.house import wav_turns as module
from ondam.house.sessions import Sessions
from ondam.house.wav_turns import WavTurns
from ondam.journal.turn import Turn
from ondam.pipeline.phrases import Phrases
from ondam.types import HEARING_RATE_HZ, Audio

CONFIG = load(None, {"language": "en"})
SILENCE = Audio(np.zeros(HEARING_RATE_HZ, np.int16), HEARING_RATE_HZ)
OF_SILENCE = {"endpoint": {"mode": "silence"}}
"""Settings of a turn that smart-turn does not judge."""


def now_ns() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


class Studio:
    """Everything that turns from recordings need, and what was told of them."""

    def __init__(self) -> None:
        self.engines = ScriptedEngines()
        self.finished: list[tuple[Config | None, Turn]] = []
        self.events: list[wire.Event] = []
        self.sessions = Sessions(
            CONFIG,
            engines=self.engines,
            phrases=Phrases(self.engines),
            voice=Loud,
            end_of_turn=None,
            finished=lambda own, turn: self.finished.append((own, turn)),
            publish=self.events.append,
        )
        self.turns = WavTurns(CONFIG, self.sessions, Loud, judged=False)

    async def turn(self, audio: Audio, **otherwise: Any) -> tuple[Turn, Audio]:
        asked = {"language": None, "settings": OF_SILENCE, "reset_history": False, **otherwise}
        return await self.turns.turn(audio, **asked)

    @property
    def histories(self) -> list[int]:
        """How many messages went before each question."""
        return [len(asked) - 2 for asked in self.engines.asked]  # the prompt and the question


@contextmanager
def studio() -> Iterator[Studio]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(module, "WavMicrophone", partial(WavMicrophone, clock=now_ns))
        monkeypatch.setattr(module, "WavSpeaker", partial(WavSpeaker, clock=now_ns))
        monkeypatch.setattr("ondam.house.sessions.time.monotonic_ns", now_ns)
        yield Studio()


@virtual_time
async def test_a_recording_is_answered_and_the_answer_comes_with_it() -> None:
    with studio() as it:
        turn, said = await it.turn(voice(1.0))
        assert (turn.outcome, turn.transcript) == ("answered", "What time is it?")
        assert it.engines.said == ["It is three.", "Good bye."]
        assert len(said.samples) > 0
        [(own, finished)] = it.finished
        assert finished is turn
        assert own is not None and own.endpoint.mode == "silence"
        assert CONFIG.endpoint.mode == "smart_turn"  # nobody else's
        assert "turn" in {event["type"] for event in it.events}
        assert it.engines.running == 0


@virtual_time
async def test_the_history_goes_on_from_one_to_the_next_unless_it_is_to_begin_anew() -> None:
    with studio() as it:
        for reset in (False, False, True):
            await it.turn(voice(1.0), reset_history=reset)
        assert it.histories == [0, 2, 0]
        names = [turn.session for _, turn in it.finished]
        assert len(set(names)) == 3  # a conversation each


@virtual_time
async def test_a_recording_in_which_nobody_speaks_is_refused_soon_after_its_end() -> None:
    with studio() as it:
        began = asyncio.get_running_loop().time()
        with pytest.raises(AudioError) as raised:
            await it.turn(SILENCE)
        assert raised.value.code == "wav_without_speech"
        window_s = max(CONFIG.endpoint.incomplete_ms, CONFIG.endpoint.silence_ms) / 1000
        took_s = asyncio.get_running_loop().time() - began
        assert took_s == pytest.approx(1.0 + window_s + 2.0, abs=0.1)
        assert it.finished == []


@virtual_time
async def test_what_cannot_hold_for_one_turn_is_refused_before_it_begins() -> None:
    with studio() as it:
        with pytest.raises(ConfigError):
            await it.turn(voice(1.0), settings={"llm": {"max_tokens": 1}})
        with pytest.raises(ControlError) as raised:
            await it.turn(voice(1.0), settings={"endpoint": {"mode": "smart_turn"}})  # it is not loaded
        assert raised.value.code == "control_bad_request"
        assert it.engines.heard_audio == []


@virtual_time
async def test_a_language_is_the_daemons_unless_it_is_said() -> None:
    with studio() as it:
        korean = load(None, {"language": "ko"})
        it.sessions.configure(korean)
        it.turns.configure(korean)
        await it.turn(voice(1.0), reset_history=True)
        await it.turn(voice(1.0), reset_history=True, language="en")
        prompts = [asked[0]["content"] for asked in it.engines.asked]
        assert prompts == [CONFIG.llm.system_prompt_ko, CONFIG.llm.system_prompt_en]
