"""Quieter, held, and on again."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.unit.audio.fake_card import FakeCard
from tests.unit.audio.test_speaker import MS, ramp, speaking, with_server

from ondam.types import Samples

BLOCK = 480
HALF = BLOCK // 2
"""What is played, fading, before a sound stands still."""


def loud(count: int) -> Samples:
    return np.full(count, 10_000, np.int16)


async def test_a_quieter_level_is_reached_within_one_block(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(loud(24_000))
        await card.run(50)
        mouth.speaker.level(0.25)
        played = await card.run(30)
        assert played[0][0] == 10_000
        assert played[0][-1] == 2_500
        assert np.all(np.diff(played[0].astype(int)) <= 0)
        assert np.abs(np.diff(played[0].astype(int))).max() < 20  # no click
        assert played[1].tolist() == played[2].tolist() == [2_500] * BLOCK
        mouth.speaker.level(1)
        played = await card.run(20)
        assert (played[0][0], played[0][-1]) == (2_500, 10_000)
        assert played[1].tolist() == [10_000] * BLOCK


async def test_a_sound_that_is_held_goes_on_with_the_next_sample(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        begun = card.time.now_ns
        await mouth.speaker.write(ramp(10 * BLOCK + 100))
        await mouth.speaker.write(ramp(20 * BLOCK)[10 * BLOCK + 100 :])
        before = np.concatenate(await card.run(50))
        mouth.speaker.level(0)
        fade, *silence = await card.run(500)
        assert not np.concatenate(silence).any()
        assert (fade[0], fade[HALF - 2] > 0, fade[HALF - 1]) == (5 * BLOCK + 1, True, 0)
        assert not fade[HALF:].any()
        mouth.speaker.level(1)
        begin, *after = await card.run(200)
        assert (begin[0], begin[-1]) == (0, 6 * BLOCK + HALF)
        assert before.tolist() == ramp(5 * BLOCK).tolist()
        assert (
            np.concatenate(after)[: 14 * BLOCK - HALF].tolist()
            == ramp(20 * BLOCK)[7 * BLOCK - HALF :].tolist()
        )
        assert mouth.speaker.heard == 20 * BLOCK
        last = 5 * BLOCK + HALF - 1
        assert mouth.speaker.heard_at_ns(last) == begun + 85 * MS - 1_000_000_000 // 48_000 - 1
        assert mouth.speaker.heard_at_ns(last + 1) == begun + (30 + 60 + 490) * MS


async def test_what_is_held_is_still_to_come(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(loud(48_000))
        await card.run(100)
        mouth.speaker.level(0)
        await mouth.speaker.write(loud(9_600))
        writing = asyncio.create_task(mouth.speaker.write(loud(480)))
        draining = asyncio.create_task(mouth.speaker.drained())
        await card.run(10_000)
        assert not writing.done()
        assert not draining.done()
        # A second, 200 and 10 ms were written; 100 ms and the fade were taken.
        assert mouth.speaker.ends_at_ns() == card.time.now_ns + (1000 + 200 + 10 - 105) * MS
        mouth.speaker.level(1)
        await card.run(1300)
        assert writing.done()
        assert draining.done()
        assert mouth.speaker.heard == 48_000 + 9_600 + 480


async def test_a_flush_drops_what_is_held_and_the_next_sound_is_as_loud_as_it_was_written(
    card: FakeCard,
) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(loud(48_000))
        await card.run(100)
        mouth.speaker.level(0)
        await card.run(100)
        mouth.speaker.flush()
        number = await mouth.speaker.write(ramp(BLOCK))
        played = await card.run(30)
        assert played[0].tolist() == ramp(BLOCK).tolist()
        assert not np.concatenate(played[1:]).any()
        await card.run(100)
        assert mouth.speaker.heard == 10 * BLOCK + HALF + BLOCK
        assert mouth.speaker.heard_at_ns(number) is not None
        await asyncio.wait_for(mouth.speaker.drained(), 1)


async def test_what_was_flushed_is_gone_also_when_the_speaker_is_held_right_after(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(loud(48_000))
        await card.run(100)
        mouth.speaker.flush()
        mouth.speaker.level(0)
        await mouth.speaker.write(loud(BLOCK))
        fade, *silence = await card.run(100)
        assert (fade[0], fade[-1]) == (10_000, 0)
        assert not np.concatenate(silence).any()
        assert mouth.speaker.ends_at_ns() == card.time.now_ns + 10 * MS
        mouth.speaker.level(1)
        played = np.concatenate(await card.run(20))
        assert np.count_nonzero(played) == BLOCK - 1  # faded in from its first sample on


async def test_a_flush_fades_from_where_the_level_is(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(loud(48_000))
        mouth.speaker.level(0.25)
        await card.run(100)
        mouth.speaker.flush()
        fade, *silence = await card.run(20)
        assert (fade[0], fade[-1]) == (2_500, 0)
        assert not np.concatenate(silence).any()


async def test_a_sound_held_before_it_began_waits_whole(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        mouth.speaker.level(0)
        await mouth.speaker.write(ramp(2 * BLOCK))
        assert not np.concatenate(await card.run(100)).any()
        mouth.speaker.level(1)
        played = np.concatenate(await card.run(30))
        assert played[BLOCK : 2 * BLOCK].tolist() == ramp(2 * BLOCK)[BLOCK:].tolist()
        assert played[BLOCK - 1] == BLOCK


async def test_a_speaker_that_comes_back_while_it_is_held_goes_on_holding(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(4000)
        await mouth.speaker.write(ramp(9600))
        before = np.concatenate(await card.run(100))
        mouth.speaker.level(0)
        fade = (await card.run(10))[0]
        card.streams[0].active = False
        card.streams[0].finish()
        assert not np.concatenate(await card.run(700)).any()
        assert len(card.streams) == 2
        mouth.speaker.level(1)
        after = np.concatenate(await card.run(200))
        assert mouth.told == ["speaker_lost", None]
        assert before.tolist() == ramp(9600)[: 10 * BLOCK].tolist()
        assert fade[0] == 10 * BLOCK + 1
        assert after[BLOCK : 10 * BLOCK - HALF].tolist() == ramp(9600)[12 * BLOCK - HALF :].tolist()


@pytest.mark.parametrize("rate_hz", [44_100, 96_000])
async def test_nothing_is_lost_whatever_the_rate_of_the_device(card: FakeCard, rate_hz: int) -> None:
    card.plug("Old card", outputs=2, rate_hz=float(rate_hz))
    card.refuse = lambda options: options["samplerate"] != rate_hz
    async with speaking(card) as mouth:
        await card.run(500)
        for piece in np.array_split(loud(24_007), 7):
            await mouth.speaker.write(piece)
        for gain in (0, 1, 0.5, 0, 0.3, 1):
            mouth.speaker.level(gain)
            await card.run(50)
        await card.run(700)
        assert mouth.speaker.heard == 24_007
