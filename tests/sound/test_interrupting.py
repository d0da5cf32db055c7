"""Somebody speaks over the answer: real devices, real voice detection; the room is recorded on one clock."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pytest
from tests.fakes.babble import noise
from tests.scenarios.test_echo_in_the_room import Talker, speech
from tests.sound.rig import RATE_HZ, SoundRig

from ondam.audio import duplex as duplex_module
from ondam.audio import open_microphone, open_speaker
from ondam.audio.duplex import Duplex
from ondam.config import load
from ondam.journal.turn import Turn
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.silero import Silero
from ondam.places import places
from ondam.session import Session
from ondam.types import HEARING_RATE_HZ, Audio, Samples

pytestmark = [pytest.mark.sound, pytest.mark.engines, pytest.mark.timeout(240)]

INTERRUPTIONS = 5
BLOCK = RATE_HZ // 100
WITHIN_MS = 200.0


def loud(samples: Samples, level: int) -> npt.NDArray[np.bool_]:
    """Which 10 ms hold something above ``level``."""
    whole = samples[: len(samples) // BLOCK * BLOCK].reshape(-1, BLOCK)
    peaks: npt.NDArray[np.bool_] = np.abs(whole.astype(np.int32)).max(axis=1) > level
    return peaks


def silences_ms(speaker: Samples, microphone: Samples) -> list[float]:
    """For each voice that began over an answer: from its onset to the last sound of that answer.

    The answer is speech, with pauses of its own. The next one sounds a second later at the earliest.
    """
    sounding, voice = loud(speaker, 30), loud(microphone, 1500)
    found = []
    for at in range(100, len(voice) - 60):
        if voice[at] and not voice[at - 50 : at].any() and sounding[at - 100 : at].any():
            after = np.flatnonzero(sounding[at : at + 60])
            found.append(float(after[-1] + 1) * 10 if len(after) else 0.0)
    return found


async def test_a_voice_over_the_answer_silences_the_speaker_within_200_ms(
    rig: SoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplex_module, "is_headset", lambda name: True)
    store, catalog = Store(places().models), Catalog.of(places())
    finished: list[Turn] = []
    engines = Talker()
    speaker = open_speaker("default", latency_ms=30)
    ears = Duplex(open_microphone("default"), speaker)
    session = Session(
        "room",
        config=load(None, {"language": "en"}),
        language="en",
        engines=engines,
        voice=Silero(store.path(catalog.card("silero-vad"))),
        microphone=ears,
        speaker=speaker,
        clock=time.monotonic_ns,
        finished=finished.append,
        changed=lambda event: None,
        full_duplex=lambda: ears.trusted,
    )
    hearing = asyncio.create_task(session.run())
    rig.say(Audio(noise(120, dbfs=-60), HEARING_RATE_HZ))
    try:
        await asyncio.sleep(2)
        with rig.record() as room:
            for number in range(INTERRUPTIONS):
                answered = session.next_turn()
                rig.say(speech(number))
                while session.phase != "speaking":
                    await asyncio.sleep(0.01)
                await asyncio.sleep(1.7 + 0.07 * number)  # else it had been the same utterance
                engines.heard = f"Something else, number {number}."
                said = speech(number + 1).samples
                begins = np.flatnonzero(np.abs(said) > 3000)[0]
                after = session.next_turn()
                rig.say(Audio(said[begins:], HEARING_RATE_HZ))
                assert (await answered).outcome == "interrupted"
                while session.phase != "speaking":
                    await asyncio.sleep(0.01)
                session.stop()  # it has been heard that the next answer comes
                assert (await after).outcome == "stopped"
                await asyncio.sleep(1)
    finally:
        await session.close()
        hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing
    took_ms = silences_ms(room.speaker, room.microphone)
    assert len(took_ms) == INTERRUPTIONS, took_ms
    assert sum(ms > 0 for ms in took_ms) > 1, "the answer paused by itself each time"
    assert np.percentile(took_ms, 95) <= WITHIN_MS, took_ms
