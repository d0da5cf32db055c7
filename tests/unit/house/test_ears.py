"""When it listens: microphones that are closed and opened, and the talk button, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import numpy as np
import pytest
from tests.fakes.virtual_time import virtual_time

from ondam.audio import NoMicrophone
from ondam.audio.cues import cue
from ondam.errors import AudioError, ControlError
from ondam.house.ears import Ears
from ondam.pipeline.ports import Microphone
from ondam.types import Block, Mode, Samples


class Room:
    """Microphones that know how many of them are open, and take their time to close."""

    def __init__(self, closing_s: float = 0.3) -> None:
        self.closing_s = closing_s
        self.opened = 0
        self.open: list[RoomMicrophone] = []
        self.failing: AudioError | None = None

    def microphone(self) -> Microphone:
        if self.failing:
            raise self.failing
        self.opened += 1
        made = RoomMicrophone(self)
        self.open.append(made)
        return made


class RoomMicrophone:
    name = "room"

    def __init__(self, room: Room) -> None:
        self._room = room
        self.ended = asyncio.Event()

    async def blocks(self) -> AsyncGenerator[Block, None]:
        await self.ended.wait()
        return
        yield

    async def close(self) -> None:
        self.ended.set()
        await asyncio.sleep(self._room.closing_s)
        if self in self._room.open:
            self._room.open.remove(self)


class FakeConversation:
    """What a session is to its ears."""

    def __init__(self, microphone: Microphone, mode: Mode = "open") -> None:
        self.microphone = microphone
        self.mode: Mode = mode
        self.pressed = False
        self.done: list[str] = []
        self.cues: list[Samples] = []
        self.failing: Exception | None = None

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode
        self.pressed = False
        self.done.append(mode)

    def press(self) -> None:
        self.pressed = True
        self.done.append("press")

    def release(self) -> None:
        self.pressed = False
        self.done.append("release")

    def cue(self, samples: Samples) -> None:
        self.cues.append(samples)

    async def run(self) -> None:
        async for _ in self.microphone.blocks():
            pass
        if self.failing:
            raise self.failing

    async def hear(self, microphone: Microphone) -> None:
        self.microphone = microphone
        await self.run()


class Setting:
    def __init__(self, room: Room, mode: Mode, full_duplex: Callable[[], bool], cues: bool) -> None:
        self.room = room
        self.talk = FakeConversation(NoMicrophone() if mode == "muted" else room.microphone(), mode)
        self.breakdowns: list[BaseException | None] = []
        self.closed = 0
        self.ears = Ears(
            self.talk,
            room.microphone,
            longest_press_s=300.0,
            cues=cues,
            broke_down=self.breakdowns.append,
            closed=self._closed,
            full_duplex=full_duplex,
        )

    def _closed(self) -> None:
        self.closed += 1


@asynccontextmanager
async def setting(
    *, mode: Mode = "open", closing_s: float = 0.3, full_duplex: bool = False, cues: bool = True
) -> AsyncIterator[Setting]:
    made = Setting(Room(closing_s), mode, lambda: full_duplex, cues)
    made.ears.start()
    await asyncio.sleep(0.1)
    yield made
    await made.ears.close()
    await made.talk.microphone.close()
    assert made.room.open == []
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


@virtual_time
@pytest.mark.parametrize(
    ("begun", "chosen", "then"),
    [("name", (), "name"), ("open", ("push",), "push"), ("muted", (), "push"), ("muted", ("name",), "name")],
)
async def test_unmuted_is_the_mode_that_was(begun: Mode, chosen: tuple[Mode, ...], then: Mode) -> None:
    async with setting(mode=begun) as s:
        for mode in (*chosen, "muted", "muted"):
            await s.ears.set_mode(mode)
        assert await s.ears.set_mode("unmuted") == then
        assert await s.ears.set_mode("unmuted") == then, "nothing new where it is not muted"


@virtual_time
async def test_muted_is_a_closed_microphone_and_leaving_it_opens_a_new_one() -> None:
    async with setting() as s:
        assert (len(s.room.open), s.ears.deaf) == (1, False)
        assert await s.ears.set_mode("muted") == "muted"
        assert (s.room.open, s.ears.deaf, s.closed) == ([], True, 1)
        assert await s.ears.set_mode("name") == "name"
        assert (len(s.room.open), s.room.opened, s.ears.deaf) == (1, 2, False)
        assert s.talk.microphone is s.room.open[0]
        assert s.breakdowns == []


@virtual_time
async def test_it_is_not_called_closed_before_it_is() -> None:
    async with setting(closing_s=0.5) as s:
        muting = asyncio.create_task(s.ears.set_mode("muted"))
        await asyncio.sleep(0.4)
        assert (s.talk.mode, s.ears.deaf, muting.done()) == ("muted", False, False)
        await muting
        assert s.ears.deaf


@virtual_time
async def test_modes_with_a_microphone_change_without_closing_it() -> None:
    async with setting() as s:
        modes: tuple[Mode, ...] = ("name", "push", "open")
        for mode in modes:
            await s.ears.set_mode(mode)
        assert s.room.opened == 1
        assert s.talk.done == ["name", "push", "open"]


@pytest.mark.parametrize("closing_s", [0.0, 0.01, 1.0])
@virtual_time
async def test_switching_back_and_forth_leaves_exactly_one_open_stream(closing_s: float) -> None:
    async with setting(closing_s=closing_s) as s:
        wanted: list[Mode] = ["muted", "open"] * 20
        switching = []
        for number, mode in enumerate(wanted):
            switching.append(asyncio.create_task(s.ears.set_mode(mode)))
            await asyncio.sleep(0.007 * (number % 4))
        await asyncio.gather(*switching)
        assert (s.talk.mode, len(s.room.open)) == ("open", 1)
        assert s.talk.microphone is s.room.open[0]
        await asyncio.gather(*(s.ears.set_mode(mode) for mode in ("open", "muted", "push", "muted")))
        assert (s.talk.mode, s.room.open, s.ears.deaf) == ("muted", [], True)
        assert s.breakdowns == []


@virtual_time
async def test_who_leaves_while_it_is_being_muted_does_not_leave_it_half_muted() -> None:
    async with setting(closing_s=1.0) as s:
        muting = asyncio.create_task(s.ears.set_mode("muted"))
        await asyncio.sleep(0.5)
        muting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await muting
        await asyncio.sleep(1)
        assert (s.talk.mode, s.room.open, s.ears.deaf) == ("muted", [], True)
        assert await s.ears.set_mode("open") == "open"
        assert len(s.room.open) == 1


@virtual_time
async def test_a_microphone_that_cannot_be_opened_leaves_it_muted_and_says_why() -> None:
    async with setting(mode="muted") as s:
        s.room.failing = AudioError("sound_file_missing", path="/a.wav")
        with pytest.raises(AudioError):
            await s.ears.set_mode("open")
        assert (s.talk.mode, s.ears.deaf) == ("muted", True)
        s.room.failing = None
        assert await s.ears.set_mode("open") == "open"


@virtual_time
async def test_started_muted_there_has_never_been_a_stream() -> None:
    async with setting(mode="muted") as s:
        await asyncio.sleep(60)
        assert (s.room.opened, s.ears.deaf, s.breakdowns) == (0, True, [])


@virtual_time
async def test_listening_that_ends_by_itself_is_a_breakdown() -> None:
    async with setting() as s:
        s.talk.failing = RuntimeError("boom")
        s.room.open[0].ended.set()
        await asyncio.sleep(0.1)
        assert s.breakdowns == [s.talk.failing]


@virtual_time
async def test_the_button_is_let_go_when_nobody_does() -> None:
    async with setting(mode="push") as s:
        s.ears.press()
        await asyncio.sleep(299)
        s.ears.press()  # a client that says it again does not make it longer
        assert s.talk.pressed
        await asyncio.sleep(2)
        assert s.talk.done == ["press", "release"]
        # Nor does the time of one press end the next.
        s.ears.press()
        await asyncio.sleep(200)
        s.ears.release()
        s.ears.press()
        await asyncio.sleep(200)
        assert s.talk.pressed
        s.ears.release()
        s.ears.release()
        assert s.talk.done[2:] == ["press", "release", "press", "release"]


@virtual_time
async def test_toggling_presses_and_releases() -> None:
    async with setting() as s:
        assert [s.ears.toggle() for _ in range(3)] == [True, False, True]
        await s.ears.set_mode("muted")
        assert not s.talk.pressed
        with pytest.raises(ControlError) as raised:
            s.ears.toggle()
        assert raised.value.code == "listen_muted"
        with pytest.raises(ControlError):
            s.ears.press()
        s.ears.release()
        assert s.talk.done == ["press", "release", "press", "muted"]


@virtual_time
async def test_each_mode_sounds_once_and_the_button_only_where_its_tone_costs_no_word() -> None:
    async with setting(full_duplex=True) as s:
        await s.ears.set_mode("muted")
        await s.ears.set_mode("muted")
        await s.ears.set_mode("push")
        s.ears.press()
        s.ears.release()
        kinds = ("muted", "push", "pressed", "released")
        assert all(np.array_equal(heard, cue(kind)) for heard, kind in zip(s.talk.cues, kinds, strict=True))
    async with setting() as s:
        s.ears.press()
        s.ears.release()
        assert s.talk.cues == []
    async with setting(cues=False) as s:
        await s.ears.set_mode("name")
        assert s.talk.cues == []
