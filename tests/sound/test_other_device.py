"""Another speaker and another microphone in the middle of everything, on a real sound server."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest
from tests.sound.rig import RATE_HZ, SoundRig
from tests.sound.test_sound_card import listening, speaking, until

from ondam.audio.pulse import pulse_watch
from ondam.types import Audio, Samples

pytestmark = pytest.mark.sound

SECONDS = 2.0
LOST_S = 0.15
"""What the device had taken and not played yet, and the moment in which there is none."""


async def other(rig: SoundRig, kind: str) -> None:
    """Plug in another speaker, or the monitor of one that somebody speaks into as another microphone."""
    module = "module-null-sink sink_name=other norewinds=1 rate=48000 channels=1"
    await asyncio.to_thread(rig.control, "load-module", *module.split())
    if kind == "microphone":
        remap = "module-remap-source source_name=headset master=other.monitor"
        await asyncio.to_thread(rig.control, "load-module", *remap.split())
    name = "headset" if kind == "microphone" else "other"
    await until(lambda: any(one.name == name for one in pulse_watch().state.devices), 5)


def tone(seconds: float) -> Samples:
    wave: Samples = (8000 * np.sin(np.arange(round(seconds * RATE_HZ)) * 0.06)).astype(np.int16)
    return wave


async def test_an_answer_goes_on_at_the_other_speaker(rig: SoundRig) -> None:
    await other(rig, "speaker")
    with rig.record() as recording:
        async with speaking("speaker") as (speaker, faults):
            await until(lambda: speaker.name != "speaker", 5)
            began = time.monotonic()
            writing = asyncio.create_task(speaker.write(tone(SECONDS / 2)))
            await writing
            await asyncio.sleep(0.3)
            speaker.use("other")
            second = await speaker.write(tone(SECONDS / 2))
            await asyncio.wait_for(speaker.drained(), 5)
            took = time.monotonic() - began
            attached = {name for kind, name in pulse_watch().state.attached if kind == "speaker"}
            assert attached == {"other"}
            assert speaker.heard_at_ns(second + round(SECONDS / 2 * RATE_HZ) - 1) is not None
            heard = speaker.heard / RATE_HZ
    # Nothing but what was on its way is lost, and nothing is played twice.
    assert SECONDS - LOST_S <= heard <= SECONDS
    assert took < SECONDS + 1.0
    sounding = np.flatnonzero(np.abs(recording.speaker.astype(np.int32)) > 1000)
    assert 0.2 < (sounding[-1] - sounding[0]) / RATE_HZ < 1.0
    assert faults.codes == []


async def test_the_other_microphone_is_heard_and_the_first_no_more(rig: SoundRig) -> None:
    await other(rig, "microphone")
    async with listening("microphone") as ears:
        await ears.hear(0.3)
        begun = time.monotonic()
        ears.microphone.use("headset")
        await until(lambda: ("microphone", "headset") in pulse_watch().state.attached, 5)
        await ears.hear(0.3)
        assert time.monotonic() - begun < 2.0
        at = len(ears.blocks)
        player = rig.say(Audio(tone(0.5), RATE_HZ))
        await asyncio.to_thread(player.wait)
        await ears.hear(0.3)
        assert not any(block.samples.any() for block in ears.blocks[at:])  # that one was said into the first
        assert {name for kind, name in pulse_watch().state.attached if kind == "microphone"} == {"headset"}
        assert ears.faults.codes == []
