"""The conversation at the microphone: before it begins, while it goes on, and how it is seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time
from tests.unit.house.test_wav_turns import now_ns
from tests.unit.test_session import Loud, voice

from ondam.audio import WavMicrophone, WavSpeaker
from ondam.config import load
from ondam.control import wire
from ondam.errors import AudioError, ControlError
from ondam.house import sound as sound_module
from ondam.house.faults import Faults
from ondam.house.room import Room
from ondam.house.sessions import Sessions
from ondam.house.sound import Sound
from ondam.pipeline.phrases import Phrases
from ondam.supervisor.status import Fault


class House:
    """A room with devices, engines and listeners of ours."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **listen: Any) -> None:
        self.config = load(None, {"language": "en", "listen": listen})
        self.events: list[wire.Event] = []
        self.ends = 0
        engines = ScriptedEngines()
        self.microphone: Any = None
        self.fleet: Any = SimpleNamespace(
            crew=SimpleNamespace(switching=frozenset()), status=lambda: self.engines, engine=self._engine
        )
        self.engines: list[Any] = []
        self.missing = ""
        """A stage that nobody serves."""
        monkeypatch.setattr(sound_module, "open_microphone", self._microphone)
        monkeypatch.setattr(sound_module, "open_speaker", lambda *_, **__: WavSpeaker(clock=now_ns))
        monkeypatch.setattr("ondam.house.sessions.time.monotonic_ns", now_ns)
        self.faults = Faults("en", self.events.append)
        sound = Sound(self.config.audio, self.faults)
        sessions = Sessions(
            self.config,
            engines=engines,
            phrases=Phrases(engines),
            voice=Loud,
            end_of_turn=None,
            finished=lambda own, turn: None,
            publish=self.events.append,
        )
        self.room = Room(
            self.config,
            sound=sound,
            sessions=sessions,
            fleet=cast(Any, self.fleet),
            publish=self.events.append,
            broke_down=self._broke_down,
        )

    def _engine(self, stage: str) -> object:
        return None if stage == self.missing else object()

    def _microphone(self, spec: str, *, on_fault: Any) -> WavMicrophone:
        self.microphone = WavMicrophone(None, clock=now_ns)
        return cast(WavMicrophone, self.microphone)

    def _broke_down(self) -> None:
        self.ends += 1

    @property
    def state(self) -> str:
        return self.room.state

    def told(self, kind: str) -> list[Any]:
        return [event for event in self.events if event["type"] == kind]


@asynccontextmanager
async def house(**listen: Any) -> AsyncIterator[House]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        made = House(monkeypatch, **listen)
        yield made
        await made.room.close()


@virtual_time
async def test_before_it_begins_whoever_wants_it_is_told_that_the_daemon_starts() -> None:
    async with house(mode="push") as it:
        for wanted in (it.room.conversation, it.room.ears, it.room.listening_ears):
            with pytest.raises(ControlError) as raised:
                wanted()
            assert raised.value.code == "daemon_starting"
        assert (it.room.state, it.room.mode) == ("starting", "push")
        name = it.room.name
        it.room.start()
        assert it.room.conversation().name == it.room.name == name
        assert it.told("state")[-1] == {"type": "state", "session": it.room.name, "state": "listening"}


@virtual_time
async def test_its_state_says_why_it_cannot_answer() -> None:
    async with house() as it:
        it.room.start()
        assert it.state == "listening"
        it.missing = "llm"
        assert it.state == "fault"
        it.engines = [SimpleNamespace(state="loading")]
        assert it.state == "starting"
        it.fleet.crew = SimpleNamespace(switching=frozenset({"llm"}))
        assert it.state == "switching"
        it.microphone.play(voice(3.0))
        await asyncio.sleep(1.5)
        it.engines = []
        assert it.state == "hearing"  # nobody is interrupted by what is wrong elsewhere


@virtual_time
async def test_after_a_question_that_nobody_could_answer_it_does_not_say_that_it_listens() -> None:
    async with house() as it:
        it.room.start()
        it.missing = "llm"
        it.microphone.play(voice(1.0))
        await asyncio.sleep(10)
        told = [event["state"] for event in it.told("state")]
        assert "hearing" in told
        assert told[-1] == "fault"


@virtual_time
async def test_an_engine_that_goes_and_comes_back_is_told_as_a_state_once() -> None:
    async with house() as it:
        it.room.engines_changed()
        assert it.told("state") == [], "nobody is told of a conversation that has not begun"
        it.engines = [SimpleNamespace(state="loading")]
        it.room.start()
        it.engines = []
        it.room.engines_changed()
        it.room.engines_changed()
        it.missing = "stt"
        it.room.engines_changed()
        assert [event["state"] for event in it.told("state")] == ["starting", "listening", "fault"]


@virtual_time
async def test_who_speaks_into_a_microphone_that_hears_nothing_is_told() -> None:
    async with house() as it:
        it.room.start()
        it.room.listening_ears()
        it.faults.begin("microphone", Fault("microphone_missing", {"name": "default"}))
        with pytest.raises(AudioError) as missing:
            it.room.listening_ears()
        assert missing.value.code == "no_microphone_now"
        await it.room.ears().set_mode("muted")
        with pytest.raises(ControlError) as muted:
            it.room.listening_ears()
        assert muted.value.code == "listen_muted"


@virtual_time
async def test_levels_come_for_who_looked_on_before_it_began_and_end_with_them() -> None:
    async with house() as it:
        it.room.follow(True)
        it.room.start()
        await asyncio.sleep(1)
        assert it.told("levels")
        it.room.follow(False)
        it.events.clear()
        it.microphone.play(voice(1.0))
        await asyncio.sleep(1)
        assert it.told("levels") == []


@virtual_time
async def test_a_daemon_that_hears_no_more_ends() -> None:
    async with house() as it:
        it.room.start()
        await it.microphone.close()
        await asyncio.sleep(1)
        assert it.ends == 1
