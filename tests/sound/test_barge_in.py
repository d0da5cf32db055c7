"""The speaker under a user who speaks over the answer: held, on again, dropped; and at rest before it.

Moments in the recording are put on our clock by the time stamp of the first sample that is heard.
"""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest
from tests.sound.rig import RATE_HZ, SoundRig, onsets
from tests.sound.test_sound_card import click, speaking, until

from ondam.audio import speaker as speaker_module
from ondam.types import Nanoseconds, Samples

pytestmark = pytest.mark.sound

both_servers = pytest.mark.parametrize("rig", ["pulseaudio", "pipewire"], indirect=True)

DOWN, UP = RATE_HZ // 200, RATE_HZ // 100
"""How long the fades are."""

SILENT_WITHIN_MS = 60.0
HOLDS = 6


def stairs(count: int) -> Samples:
    """Never two samples far from each other alike: each place in it can be told."""
    return (5_000 + np.arange(count) // 6).astype(np.int16)


@both_servers
async def test_a_sound_that_is_held_falls_silent_soon_and_goes_on_without_a_loss(rig: SoundRig) -> None:
    written = stairs(RATE_HZ * 3)
    held_ns: list[Nanoseconds] = []
    async with speaking() as (speaker, _):
        await asyncio.sleep(0.5)
        with rig.record() as recording:
            first = await speaker.write(written[: RATE_HZ // 2])
            writing = asyncio.create_task(speaker.write(written[RATE_HZ // 2 :]))
            for _ in range(HOLDS):
                # Not a whole number of callbacks.
                await asyncio.sleep(0.2137)
                held_ns.append(time.monotonic_ns())
                speaker.level(0)
                await asyncio.sleep(0.2)
                assert (speaker.ends_at_ns() or 0) > time.monotonic_ns()
                speaker.level(1)
            await writing
            await speaker.drained()
        begun_ns = speaker.heard_at_ns(first)
        assert speaker.heard == len(written)
    assert begun_ns is not None
    heard = recording.speaker[round(onsets(recording.speaker)[0] * RATE_HZ) :]
    silences = gaps(heard)
    assert len(silences) == HOLDS
    late_ms = [
        (begun_ns + start * 1_000_000_000 // RATE_HZ - at_ns) / 1e6
        for (start, _), at_ns in zip(silences, held_ns, strict=True)
    ]
    print("silent after", [round(late, 1) for late in late_ms], "ms")
    assert max(late_ms) <= SILENT_WITHIN_MS
    # As it would have sounded: with each fade down and up, and nothing of what was written left out.
    expected = written.astype(float)
    place = 0
    for (start, _), (_, before) in zip(silences, [(0, 0), *silences], strict=False):
        place += start - before
        expected[place - DOWN : place] *= np.linspace(1, 0, DOWN)
        expected[place : place + UP] *= np.linspace(0, 1, UP)
    parts = np.split(heard, [edge for gap in silences for edge in gap])[::2]
    played = np.concatenate(parts)[: len(written)]
    assert np.abs(played - np.round(expected)).max() <= 1


async def test_what_is_held_and_flushed_is_never_heard_and_the_next_sound_is(rig: SoundRig) -> None:
    async with speaking() as (speaker, _):
        with rig.record() as recording:
            await speaker.write(np.full(RATE_HZ * 3, 10_000, np.int16))
            await until(lambda: speaker.heard > RATE_HZ // 4, 5)
            speaker.level(0)
            await asyncio.sleep(0.3)
            speaker.flush()
            await asyncio.wait_for(speaker.drained(), 0.3)
            heard = speaker.heard
            await asyncio.sleep(0.2)
            number = await speaker.write(click())
            await speaker.drained()
        assert speaker.heard == heard + len(click())
        assert speaker.heard_at_ns(number) is not None
    loud = np.flatnonzero(np.abs(recording.speaker.astype(int)) > 500)
    ends = loud[np.flatnonzero(np.diff(loud) > UP)]
    assert len(ends) == 1  # one pause, and after it the click alone, as loud as it was written
    after = recording.speaker[ends[0] + 1 :]
    assert np.count_nonzero(after == 16_000) == RATE_HZ // 500
    assert RATE_HZ // 4 < np.count_nonzero(recording.speaker == 10_000) < RATE_HZ // 2


@both_servers
@pytest.mark.parametrize("woken", [False, True])
async def test_from_its_rest_the_speaker_plays_soon_and_tells_the_right_times(
    rig: SoundRig, monkeypatch: pytest.MonkeyPatch, woken: bool
) -> None:
    monkeypatch.setattr(speaker_module, "REST_NS", 300_000_000)
    late_ms: list[float] = []
    async with speaking() as (speaker, faults):
        with rig.record() as recording:
            for _ in range(4):
                await until(lambda: speaker.callbacks_ns == (), 3)
                if woken:
                    speaker.wake()
                    await asyncio.sleep(0.25)
                begun_ns = time.monotonic_ns()
                number = await speaker.write(click())
                await speaker.drained()
                heard_at_ns = speaker.heard_at_ns(number)
                assert heard_at_ns is not None
                late_ms.append((heard_at_ns - begun_ns) / 1e6)
        assert faults.codes == []
        assert speaker.heard == 4 * len(click())
    print("heard after", [round(late, 1) for late in late_ms], "ms")
    assert len(onsets(recording.speaker)) == 4
    assert np.median(late_ms) < (60 if woken else 120)


async def test_b23_a_speaker_that_is_pulled_out_while_it_rests_is_told_and_comes_back(
    rig: SoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaker_module, "REST_NS", 300_000_000)
    async with speaking("speaker") as (speaker, faults):
        await until(lambda: speaker.callbacks_ns == (), 3)
        await asyncio.to_thread(rig.remove, "speaker")
        await until(lambda: faults.codes == ["speaker_lost", "speaker_missing"], 2)
        await asyncio.to_thread(rig.add, "speaker")
        await until(lambda: faults.codes[-1] is None, 6)
        await until(lambda: speaker.callbacks_ns == (), 3)
        rig.kill()
        await until(lambda: faults.codes[3:] == ["speaker_lost", "speaker_missing"], 2)
        await asyncio.to_thread(rig.start)
        await until(lambda: faults.codes[-1] is None, 8)
        with rig.record() as recording:
            await speaker.write(click())
            await speaker.drained()
    assert len(onsets(recording.speaker)) == 1


def gaps(samples: Samples, least: int = RATE_HZ // 20) -> list[tuple[int, int]]:
    """Begin and end of each silence of at least ``least`` samples between two fades.

    A fade's last sample, and the first of the next one, are silent too.
    """
    sounding = np.flatnonzero(samples)
    wide = np.flatnonzero(np.diff(sounding) > least)
    return [(int(sounding[k]) + 2, int(sounding[k + 1]) - 1) for k in wide]
