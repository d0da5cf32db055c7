"""Muted, as the sound server sees it: nobody records."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.sound.rig import SoundRig

from ondam.audio import open_microphone
from ondam.house.ears import Ears
from ondam.pipeline.ports import Microphone
from ondam.types import Mode, Samples

pytestmark = pytest.mark.sound


class Listener:
    """A conversation that counts the samples it gets."""

    def __init__(self, microphone: Microphone) -> None:
        self.microphone = microphone
        self.mode: Mode = "open"
        self.pressed = False
        self.heard = 0

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode

    def press(self) -> None:
        pass

    def release(self) -> None:
        pass

    def cue(self, samples: Samples) -> None:
        pass

    async def run(self) -> None:
        async for block in self.microphone.blocks():
            self.heard += len(block.samples)

    async def hear(self, microphone: Microphone) -> None:
        self.microphone = microphone
        await self.run()


async def streams(rig: SoundRig) -> int:
    """How many streams of this process record now. The server has some of its own."""
    listed = await asyncio.to_thread(rig.control, "list", "source-outputs")
    return listed.count(f'application.process.id = "{os.getpid()}"')


async def until_streams(rig: SoundRig, count: int) -> None:
    async with asyncio.timeout(10):
        while await streams(rig) != count:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("rig", ["pulseaudio", "pipewire"], indirect=True)
async def test_while_muted_nobody_records_and_afterwards_exactly_one_does(rig: SoundRig) -> None:
    def microphone() -> Microphone:
        return open_microphone("microphone")

    listener = Listener(microphone())
    broke_down: list[BaseException | None] = []
    ears = Ears(listener, microphone, longest_press_s=1, cues=False, broke_down=broke_down.append)
    ears.start()
    try:
        await until_streams(rig, 1)
        assert await ears.set_mode("muted") == "muted"
        assert await streams(rig) == 0  # at once: the call returns when it is closed
        before = listener.heard
        await asyncio.sleep(1)
        assert (await streams(rig), listener.heard) == (0, before)
        for _ in range(4):
            await ears.set_mode("open")
            await asyncio.sleep(0.15)
            await ears.set_mode("muted")
        await until_streams(rig, 0)
        await ears.set_mode("open")
        await until_streams(rig, 1)
        await asyncio.sleep(1)
        assert await streams(rig) == 1
        assert listener.heard - before > 8000
        assert broke_down == []
    finally:
        await ears.close()
        await listener.microphone.close()
    await until_streams(rig, 0)
