"""Microphone, speaker and the echo between them: opened, exchanged, missing; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.fakes.virtual_time import virtual_time

from ondam.audio import NoMicrophone, WavMicrophone, WavSpeaker
from ondam.config import load
from ondam.control import wire
from ondam.errors import AudioError, ControlError
from ondam.house import sound as module
from ondam.house.ears import Ears
from ondam.house.faults import Faults
from ondam.house.sound import Sound
from ondam.pipeline.ports import Microphone, Speaker
from ondam.types import Mode, Samples


class Conversation:
    """What a session is to its devices and its ears."""

    pressed = False

    def __init__(self, microphone: Microphone, speaker: Speaker) -> None:
        self.microphone, self.speaker = microphone, speaker
        self.mode: Mode = "open"
        self.lost = 0

    def use_speaker(self, speaker: Speaker) -> None:
        self.speaker = speaker

    def microphone_lost(self) -> None:
        self.lost += 1

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode

    def press(self) -> None: ...

    def release(self) -> None: ...

    def cue(self, samples: Samples) -> None: ...

    async def run(self) -> None:
        async for _ in self.microphone.blocks():
            pass

    async def hear(self, microphone: Microphone) -> None:
        self.microphone = microphone
        await self.run()


def now_ns() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


class House:
    """Devices of ours, with what listens to them and speaks through them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **audio: Any) -> None:
        self.events: list[wire.Event] = []
        self.faults = Faults("en", self.events.append)
        self.audio = load(None, {"audio": audio}).audio
        self.sound = Sound(self.audio, self.faults)
        self.tell: dict[str, Any] = {}
        self.opened: list[str] = []
        self.refused = ""
        """A spec that cannot be opened."""
        monkeypatch.setattr(module, "open_microphone", self._microphone)
        monkeypatch.setattr(module, "open_speaker", self._speaker)

    def _open(self, kind: str, spec: str, on_fault: Any) -> None:
        if spec == self.refused:
            raise AudioError("file_missing", path=spec)
        self.opened.append(spec)
        self.tell[kind] = on_fault

    def _microphone(self, spec: str, *, on_fault: Any) -> Microphone:
        self._open("microphone", spec, on_fault)
        return NoMicrophone() if spec == "none" else WavMicrophone(None, clock=now_ns)

    def _speaker(self, spec: str, *, latency_ms: object, on_fault: Any) -> Speaker:
        self._open("speaker", spec, on_fault)
        return WavSpeaker(clock=now_ns)

    def configure(self, **audio: Any) -> None:
        self.sound.configure(self.audio.model_copy(update=audio))

    @property
    def codes(self) -> list[str]:
        return [shape["code"] for shape in self.faults.shapes("en")]

    def states(self) -> tuple[str, str]:
        return self.sound.device("microphone")["state"], self.sound.device("speaker")["state"]


@asynccontextmanager
async def house(**audio: Any) -> AsyncIterator[tuple[House, Conversation, Ears]]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        made = House(monkeypatch, **audio)
        speaker = made.sound.open_speaker()
        conversation = Conversation(made.sound.open_microphone(), speaker)
        ears = Ears(
            conversation,
            made.sound.open_microphone,
            longest_press_s=60,
            cues=False,
            broke_down=lambda error: None,
            closed=made.sound.microphone_closed,
        )
        made.sound.attach(conversation, ears)
        ears.start()
        yield made, conversation, ears
        await conversation.microphone.close()
        await ears.close()


@virtual_time
async def test_a_device_is_ok_missing_muted_or_none() -> None:
    async with house() as (it, conversation, ears):
        assert it.states() == ("ok", "ok")
        it.tell["microphone"]("microphone_missing", name="default")
        it.tell["speaker"]("speaker_missing", name="default")
        assert it.states() == ("missing", "missing")
        assert conversation.lost == 1  # a speaker that is missing is no microphone's end
        it.tell["speaker"](None)
        await ears.set_mode("muted")
        assert it.states() == ("muted", "ok")
        assert it.codes == []  # nothing is wrong with what is not there
        assert it.sound.device("microphone")["name"] == "default"
    async with house(microphone="none", speaker="none") as (it, *_):
        assert it.states() == ("none", "none")


@virtual_time
async def test_a_notice_takes_nobodys_microphone_away() -> None:
    async with house() as (it, conversation, _):
        it.tell["microphone"]("microphone_silent", name="default")
        assert it.codes == ["microphone_silent"]
        assert it.states() == ("ok", "ok")
        assert conversation.lost == 0
        it.tell["microphone"](None)
        assert it.codes == []


@virtual_time
async def test_only_between_two_devices_there_is_an_echo() -> None:
    async with house(echo="off") as (it, *_):
        assert it.sound.echo == "half_duplex"
        assert not it.sound.full_duplex()
        assert it.codes == []  # it is what the user wants
    async with house(microphone="none") as (it, *_):
        assert it.sound.echo is None
        assert it.sound.full_duplex()


@virtual_time
async def test_another_microphone_is_heard_and_the_fault_of_the_one_before_is_over() -> None:
    async with house() as (it, conversation, _):
        before = conversation.microphone
        it.tell["microphone"]("microphone_missing", name="default")
        it.configure(microphone="usb")
        await it.sound.use_microphone("usb")
        assert it.opened == ["default", "default", "usb"]  # the speaker was the first
        assert conversation.microphone is not before
        assert conversation.lost == 2
        assert it.states() == ("ok", "ok")


@virtual_time
async def test_while_muted_another_microphone_is_not_opened() -> None:
    async with house() as (it, _, ears):
        await ears.set_mode("muted")
        it.configure(microphone="usb")
        await it.sound.use_microphone("usb")
        assert it.opened == ["default", "default"]
        await ears.set_mode("open")
        assert it.opened[2:] == ["usb"]


@virtual_time
async def test_a_speaker_that_cannot_be_opened_leaves_the_one_before() -> None:
    async with house() as (it, conversation, _):
        before = conversation.speaker
        it.refused = "wav:/none.wav"
        it.configure(speaker=it.refused)
        with pytest.raises(AudioError):
            await it.sound.use_speaker(it.refused)
        assert conversation.speaker is before
        it.configure(speaker="wav:/some.wav")
        await it.sound.use_speaker("wav:/some.wav")
        assert conversation.speaker is not before
        assert it.sound.echo is None  # a file is in no room


@virtual_time
async def test_before_there_is_a_conversation_nothing_is_exchanged() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        it = House(monkeypatch)
        assert it.states() == ("ok", "ok")
        assert it.sound.stuck() is None
        for use in (it.sound.use_microphone, it.sound.use_speaker):
            with pytest.raises(ControlError) as raised:
                await use("usb")
            assert raised.value.code == "daemon_starting"
        assert it.opened == []
