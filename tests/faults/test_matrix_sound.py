"""The sound server fails under a whole daemon: killed, hung, late. (The devices alone: tests/sound.)"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.fakes.engine.staffed import staffed
from tests.faults.matrix import typed, until, watched, well
from tests.scenarios.house import House
from tests.sound.rig import SoundRig

pytestmark = [
    pytest.mark.engines,
    pytest.mark.sound,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(90),
]

LONG = "It is three o'clock in the afternoon and the sun is shining over all the hills of this country."


class Room:
    """A house with a virtual sound card that comes up late: the first test is about that."""

    def __init__(self, home: Path) -> None:
        self.rig = SoundRig(home / "snd")
        environ = {name: self.rig.environment[name] for name in ("PULSE_SERVER", "PULSE_COOKIE")}
        self.house: House = staffed(home, microphone="microphone", speaker="speaker", environ=environ)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Room]:
    room = Room(tmp_path_factory.mktemp("rm"))
    room.house.open()
    try:
        await room.house.ready()
        yield room
        assert room.house.close() == 0
    finally:
        room.house.close()
        room.rig.stop()


async def devices(house: House, state: str, within_s: float = 10.0) -> float:
    """Seconds until both devices are ``state``."""
    began = time.monotonic()
    while True:
        async with house.client() as client:
            status = await client.status()
        if {status["microphone"]["state"], status["speaker"]["state"]} == {state}:
            return time.monotonic() - began
        assert time.monotonic() - began < within_s, (status["speaker"], status["faults"])
        await asyncio.sleep(0.05)


async def started(room: Room) -> None:
    """The sound server is up; whichever test comes first."""
    await well(room.house)
    if not room.rig.running:
        await asyncio.to_thread(room.rig.start)
    await devices(room.house, "ok")


async def test_a_sound_server_that_comes_up_late_is_told_and_used(room: Room) -> None:
    await well(room.house)
    if room.rig.running:
        await asyncio.to_thread(room.rig.kill)
    await devices(room.house, "missing")
    async with watched(room.house) as trial:
        met = await trial.turn(typed)
        assert met["outcome"] in {"unheard", "answered"}
        async with room.house.client() as client:
            trial.told |= {fault["code"] for fault in (await client.status())["faults"]}
        await asyncio.to_thread(room.rig.start)
        await devices(room.house, "ok")
        await trial.recovered("sound_late", typed)


async def test_a_sound_server_that_is_killed_in_the_middle_of_an_answer_comes_back(room: Room) -> None:
    await started(room)
    async with watched(room.house) as trial:
        turn = asyncio.create_task(trial.turn(typed))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(room.rig.kill)
        met = await turn
        assert met["outcome"] in {"unheard", "answered", "failed"}
        await until(lambda: any(code.startswith("speaker_") for code in trial.told), "told")
        await asyncio.to_thread(room.rig.start)
        await devices(room.house, "ok")
        await trial.recovered("sound_killed", typed)


@pytest.mark.thorough  # the device alone, each time: tests/sound
async def test_a_sound_server_that_hangs_is_told_and_heals(room: Room) -> None:
    await started(room)
    async with watched(room.house) as trial:
        turn = asyncio.create_task(trial.turn(typed))
        await asyncio.sleep(0.1)
        room.rig.hang()
        try:
            await until(lambda: any(code.startswith("speaker_") for code in trial.told), "told")
        finally:
            room.rig.resume()
        await turn
        await devices(room.house, "ok")
        await trial.recovered("sound_hung", typed)
