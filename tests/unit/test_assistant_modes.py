"""The daemon's modes from the control API down to microphones, on scripted engines and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time

from ondam import assistant as module
from ondam.assistant import Assistant
from ondam.audio import WavMicrophone, WavSpeaker
from ondam.config import load
from ondam.control import wire
from ondam.errors import AudioError, ControlError, EngineError
from ondam.house import floor, sound
from ondam.house.remembering import Remembering
from ondam.places import Places
from ondam.types import HEARING_RATE_HZ, Audio, Samples


class Loud:
    frame = 512

    def __call__(self, frame: Samples) -> float:
        return 0.9 if np.abs(frame).max() > 500 else 0.0

    def reset(self) -> None:
        pass


def voice(seconds: float) -> Audio:
    tone = (8000 * np.sin(np.arange(round(seconds * HEARING_RATE_HZ)) * 0.2)).astype(np.int16)
    return Audio(np.concatenate([np.zeros(4800, np.int16), tone]), HEARING_RATE_HZ)


def now_ns() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


def recorder_of(turns: list[Any]) -> Any:
    """Remembers them there; nothing is ever wrong with it."""

    def record(turn: Any, row: object) -> None:
        turns.append(turn)

    return SimpleNamespace(lost=0, unkept={}, trouble=None, aside=None, record=record)


class Table:
    """An assistant whose devices, engines and clock are ours."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, engines: ScriptedEngines, **listen: Any) -> None:
        self.engines = engines
        self.microphones: list[WavMicrophone] = []
        self.turns: list[Any] = []
        self.ends: list[bool] = []
        self.tell: Any = None
        crew = SimpleNamespace(number=0, switching=frozenset())
        fleet = SimpleNamespace(
            subscribe=lambda heard: None,
            status=lambda: [],
            engine=lambda stage: object(),
            crew=crew,
            crew_of=lambda number: crew,
        )
        monkeypatch.setattr(sound, "open_microphone", self._open)
        for waiting in (module, floor):
            monkeypatch.setattr(waiting, "warm_up", lambda language: None)
        monkeypatch.setattr(sound, "open_speaker", lambda *_, **__: WavSpeaker(clock=now_ns))
        monkeypatch.setattr("ondam.house.sessions.time.monotonic_ns", now_ns)
        monkeypatch.setattr(module, "Switchboard", lambda *_: engines)
        monkeypatch.setattr(Remembering, "conditions", lambda self: {})
        monkeypatch.setattr(Remembering, "lasting", lambda self, *_: None)  # these engines report nothing
        overrides = {"language": "en", "listen": listen}
        self.assistant = Assistant(
            config=load(None, overrides),
            places=Places(*[Path("/nowhere")] * 4),
            planner=cast(Any, None),
            config_file=Path("/nowhere/config.toml"),
            fleet=cast(Any, fleet),
            engines={},
            recorder=recorder_of(self.turns),
            voice=Loud,
            end_of_turn=None,
            end=lambda *, asked: self.ends.append(asked),
        )

    def _open(self, spec: str, *, on_fault: Any) -> WavMicrophone:
        self.tell = on_fault
        made = WavMicrophone(None, clock=now_ns)
        self.microphones.append(made)
        return made

    @property
    def open(self) -> list[WavMicrophone]:
        return [microphone for microphone in self.microphones if not microphone._closed]

    async def hears(self, said: str, seconds: float = 1.0, then_s: float = 6.0) -> None:
        """``said`` is what the recogniser makes of the next voice."""
        self.engines.heard = said
        for microphone in self.open:
            microphone.play(voice(seconds))
        await asyncio.sleep(then_s)

    @property
    def outcomes(self) -> list[str]:
        return [turn.outcome for turn in self.turns]


@asynccontextmanager
async def table(monkeypatch: pytest.MonkeyPatch, **listen: Any) -> AsyncIterator[Table]:
    made = Table(monkeypatch, ScriptedEngines(), **listen)
    await made.assistant.start()
    await asyncio.sleep(1)
    yield made
    await made.assistant.close()
    assert made.open == []
    assert made.ends == []


def microphone(t: Table) -> wire.Device:
    return t.assistant.status()["microphone"]


@virtual_time
async def test_muted_closes_the_stream_and_open_listens_again() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch) as t:
            await t.hears("What time is it?")
            assert await t.assistant.set_mode("muted") == "muted"
            assert t.open == []
            assert microphone(t) == {"name": "default", "state": "muted"}
            assert t.assistant.status()["mode"] == "muted"
            for call in (t.assistant.listen(5), t.assistant.press(), t.assistant.toggle()):
                with pytest.raises(ControlError) as raised:
                    await call
                assert raised.value.code == "listen_muted"
            assert await t.assistant.set_mode("open") == "open"
            assert len(t.open) == 1
            assert microphone(t)["state"] == "ok"
            await t.hears("What time is it?")
        assert t.outcomes == ["answered", "answered"]


@virtual_time
async def test_muting_drops_what_is_being_said() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch) as t:
            await t.hears("What time is it?", seconds=3.0, then_s=1.5)
            assert t.assistant.status()["state"] == "hearing"
            await t.assistant.set_mode("muted")
            await asyncio.sleep(10)
        assert t.outcomes == ["stopped"]
        assert t.engines.asked == []


@virtual_time
async def test_started_muted_no_stream_is_opened_before_somebody_wants_it() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch, mode="muted") as t:
            await asyncio.sleep(60)
            assert t.microphones == []
            assert microphone(t)["state"] == "muted"
            await t.assistant.set_mode("open")
            await t.hears("What time is it?")
        assert t.outcomes == ["answered"]


@virtual_time
async def test_by_name_only_what_is_addressed_is_answered_and_without_the_name() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch, mode="name") as t:
            await t.hears("Pick a number at random.")
            await t.hears("Hey Ondum, what time is it?")
        assert t.outcomes == ["not_addressed", "answered"]
        assert [asked[-1]["content"] for asked in t.engines.asked] == ["what time is it?"]


@virtual_time
async def test_what_is_said_to_others_is_told_to_nobody() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch, mode="name") as t, t.assistant.subscribe() as events:
            await t.hears("My password is swordfish.")
            t.assistant._broadcast.close()
            told = [event async for event in events]
        assert t.outcomes == ["not_addressed"]
        assert "swordfish" not in repr(told)
        assert t.turns[0].transcript is None


@virtual_time
async def test_its_names_can_be_configured() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch, mode="name", name_ko="자비스", name_en="Jarvis") as t:
            await t.hears("Ondam, what time is it?")
            await t.hears("Jarvis, what time is it?")
        assert t.outcomes == ["not_addressed", "answered"]


@virtual_time
async def test_with_a_button_voices_count_between_press_and_release_alone() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch, mode="push") as t:
            await t.hears("Nobody pressed.")
            await t.assistant.press()
            await t.hears("What time is it?", seconds=0.5, then_s=5)
            assert t.turns == []  # a pause of seconds ends nothing while the button is down
            await t.assistant.release()
            await asyncio.sleep(5)
            assert [await t.assistant.toggle(), await t.assistant.toggle()] == [True, False]
            await t.assistant.release()
        assert [turn.transcript for turn in t.turns if turn.outcome == "answered"] == ["What time is it?"]


@virtual_time
async def test_a_fault_of_the_microphone_is_over_when_it_is_muted() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch) as t:
            t.tell("microphone_missing", name="default")
            with pytest.raises(AudioError) as raised:
                await t.assistant.press()
            assert raised.value.code == "no_microphone_now"
            await t.assistant.set_mode("muted")
            assert t.assistant.status()["faults"] == []


@virtual_time
async def test_a_change_of_mode_is_an_event() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch) as t, t.assistant.subscribe() as events:
            assert (await anext(events))["type"] == "snapshot"
            await t.assistant.set_mode("push")
            name = t.assistant._room.conversation().name
            assert await anext(events) == {"type": "mode", "session": name, "mode": "push"}


@virtual_time
async def test_nothing_that_can_be_spoken_is_refused_and_not_called_said() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch) as t:
            for text in ("?!...", "🙂", "```\nx = 1", "**"):
                with pytest.raises(ControlError) as raised:
                    await t.assistant.say(text, None)
                assert raised.value.code == "nothing_to_say"
            assert t.turns == []


@virtual_time
async def test_what_a_voice_gave_no_sound_for_is_not_called_said() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch) as t:
            assert (await t.assistant.say("All is well.", None))["audio"]["seconds"] > 0
            t.engines.second_per_character = 0.0
            with pytest.raises(EngineError) as raised:
                await t.assistant.say("All is well.", None)
            assert raised.value.code == "excuse_tts"
