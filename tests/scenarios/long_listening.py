"""What memory listening takes: room noise with a question a minute, in virtual time with the real detector.

    python -m tests.scenarios.long_listening MINUTES

prints ``{"outcomes": [...], "resident_mib": [...]}``, one of each a minute.
"""

from __future__ import annotations

import asyncio
import json
import sys

import numpy as np
import psutil

from ondam.audio import WavMicrophone, WavSpeaker
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

MIB = 2**20


@virtual_time
async def listen(minutes: int) -> None:
    """Ends by printing the outcome of each turn, and resident memory in MiB after each minute."""
    loop = asyncio.get_running_loop()
    store, catalog = Store(places().models), Catalog.of(places())
    vad = store.path(catalog.card("silero-vad"))
    question = decode(clips("en")[0].wav, 10**7)

    def clock() -> int:
        return round(loop.time() * 1e9)

    outcomes: list[str | None] = []
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
        finished=lambda turn: outcomes.append(turn.outcome),
        changed=lambda event: None,
    )
    hearing = asyncio.create_task(session.run())
    noise = (np.random.default_rng(3).normal(0, 30, 10 * HEARING_RATE_HZ)).astype(np.int16)
    process = psutil.Process()
    resident: list[float] = []
    for minute in range(minutes):
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
        resident.append(round(process.memory_info().rss / MIB, 1))
    await session.close()
    hearing.cancel()
    print(json.dumps({"outcomes": outcomes, "resident_mib": resident}))


if __name__ == "__main__":
    listen(int(sys.argv[1]))
