"""What the daemon itself costs: memory and processor while it listens, and no growth over an hour."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from ondam.audio import WavMicrophone, WavSpeaker, write_wav
from ondam.config import load
from ondam.control.sound import decode
from ondam.measure.clips import clips
from ondam.memory import give_back
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.silero import Silero
from ondam.pipeline.smart_turn import SmartTurn
from ondam.places import places
from ondam.session import Session
from ondam.types import HEARING_RATE_HZ, Audio
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time
from tests.scenarios.house import House

pytestmark = [pytest.mark.engines, pytest.mark.timeout(400)]

MIB = 2**20


async def test_listening_to_silence_takes_little_memory_and_little_processor(tmp_path: Path) -> None:
    silence = tmp_path / "silence.wav"
    write_wav(silence, Audio(np.zeros(HEARING_RATE_HZ, np.int16), HEARING_RATE_HZ))
    house = House(tmp_path / "home", {"language": "en"}, microphone=f"wav:{silence}")
    house.open()
    try:
        await house.ready()
        assert house.process is not None
        daemon = psutil.Process(house.process.pid)
        await asyncio.sleep(3)
        began, before = time.monotonic(), daemon.cpu_times()
        await asyncio.sleep(20)
        after = daemon.cpu_times()
        share = (after.user + after.system - before.user - before.system) / (time.monotonic() - began)
        assert daemon.memory_info().rss <= 180 * MIB
        assert share <= 0.05
    finally:
        house.close()


@pytest.mark.slow
@virtual_time
async def test_an_hour_of_listening_does_not_grow() -> None:
    """An hour of room noise with a question every two minutes, in virtual time with the real detector."""
    loop = asyncio.get_running_loop()
    store, catalog = Store(places().models), Catalog.of(places())
    vad = store.path(catalog.card("silero-vad"))
    question = decode(clips("en")[0].wav, 10**7)

    def clock() -> int:
        return round(loop.time() * 1e9)

    turns: list[str | None] = []
    engines = ScriptedEngines()
    microphone = WavMicrophone(None, clock=clock)
    session = Session(
        "hour",
        config=load(None, {"language": "en"}),
        language="en",
        engines=engines,
        voice=Silero(vad),
        end_of_turn=SmartTurn(store.path(catalog.card("smart-turn"))),
        microphone=microphone,
        speaker=WavSpeaker(clock=clock, longest_s=0),
        clock=clock,
        finished=lambda turn: turns.append(turn.outcome),
        changed=lambda event: None,
    )
    hearing = asyncio.create_task(session.run())
    noise = (np.random.default_rng(3).normal(0, 30, 10 * HEARING_RATE_HZ)).astype(np.int16)
    process = psutil.Process()
    resident: list[int] = []
    for minute in range(60):
        # Sound for exactly a minute: what waited to be said would grow instead of the session.
        rest = 60 * HEARING_RATE_HZ
        if minute % 2:
            await session.ask("What time is it?", aloud=True)
        else:
            microphone.play(question)
            rest -= len(question.samples)
        for said in range(0, rest, len(noise)):
            microphone.play(Audio(noise[: rest - said], HEARING_RATE_HZ))
        await asyncio.sleep(60)
        engines.heard_audio.clear()  # a test's engine remembers, ours does not
        give_back()  # as the daemon does it after each turn
        resident.append(process.memory_info().rss)
    await session.close()
    hearing.cancel()
    assert turns.count("answered") == 60, turns
    # The least of ten minutes: glibc may keep the last inference of a thread, 13 MiB, until the next one.
    assert min(resident[-10:]) - min(resident[5:15]) <= 2 * MIB, [round(b / MIB, 1) for b in resident]
