from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import numpy as np
import pytest
from tests.unit.audio.fake_card import FakeCard, Told, speaker
from tests.unit.audio.virtual_time import settle

from ondam.audio.speaker import DeviceSpeaker
from ondam.types import Samples

MS = 1_000_000
SPEAKER = speaker("speaker", default=True)


class Mouth:
    def __init__(self, card: FakeCard, spec: str) -> None:
        self.told = Told()
        self.speaker = DeviceSpeaker(
            spec,
            latency_ms=30,
            on_fault=self.told,
            clock=card.time.clock,
            sleep=card.time.sleep,
            host=card,
            watch=card,
        )


@contextlib.asynccontextmanager
async def speaking(card: FakeCard, spec: str = "default") -> AsyncIterator[Mouth]:
    mouth = Mouth(card, spec)
    await settle()
    try:
        yield mouth
    finally:
        closing = asyncio.create_task(mouth.speaker.close())
        await card.time.advance(10)
        await closing


def with_server(card: FakeCard) -> None:
    card.plug("pulse", inputs=32, outputs=32, rate_hz=44_100.0)
    card._initialize()
    card.serve(SPEAKER)


def ramp(count: int) -> Samples:
    return (np.arange(count) % 30_000 + 1).astype(np.int16)


async def test_what_is_written_is_played_whole_and_its_time_is_the_converters(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        first = await mouth.speaker.write(ramp(1000))
        asked_at = card.time.now_ns
        assert mouth.speaker.heard_at_ns(first) is None
        played = np.concatenate(await card.run(100))
        assert played[:1000].tolist() == ramp(1000).tolist()
        assert not played[1000:].any()
        assert mouth.speaker.heard_at_ns(0) == asked_at + 30 * MS
        assert mouth.speaker.heard_at_ns(480) == asked_at + 40 * MS
        assert mouth.speaker.heard == 1000


async def test_heard_counts_what_has_passed_the_converter_not_what_was_handed_over(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(ramp(4800))
        await card.run(50)
        assert mouth.speaker.heard == 960  # 30 of the 50 ms are still on their way
        draining = asyncio.create_task(mouth.speaker.drained())
        await card.run(70)
        assert not draining.done()
        await card.run(30)
        assert draining.done()


async def test_times_are_exact_across_a_gap(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(ramp(480))
        begun = card.time.now_ns
        await card.run(200)
        await mouth.speaker.write(ramp(480))
        await card.run(100)
        assert mouth.speaker.heard_at_ns(479) == begun + 30 * MS + 479 * 1_000_000_000 // 48_000
        assert mouth.speaker.heard_at_ns(480) == begun + 230 * MS


async def test_a_flush_fades_the_next_ten_milliseconds_and_drops_the_rest(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(np.full(24_000, 10_000, np.int16))
        await mouth.speaker.write(np.full(24_000, 10_000, np.int16))
        await card.run(100)
        mouth.speaker.flush()
        number = await mouth.speaker.write(np.full(480, 5_000, np.int16))
        played = await card.run(40)
        assert played[0][0] == 10_000
        assert np.all(np.diff(played[0].astype(int)) <= 0)
        assert played[0][-1] == 0
        assert played[1].tolist() == [5_000] * 480
        assert not played[2].any()
        await card.run(100)
        assert number == 48_000
        assert mouth.speaker.heard == 11 * 480 + 480
        assert mouth.speaker.heard_at_ns(11 * 480) is None


async def test_what_was_flushed_before_it_began_is_never_heard(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(np.full(480, 10_000, np.int16))
        mouth.speaker.flush()
        assert not np.concatenate(await card.run(50)).any()
        assert mouth.speaker.heard == 0


async def test_writing_waits_while_a_second_is_queued(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(np.ones(72_000, np.int16))
        writing = asyncio.create_task(mouth.speaker.write(np.ones(10, np.int16)))
        await card.run(490)
        assert not writing.done()
        await card.run(30)
        assert writing.done()


async def test_a_stereo_card_of_another_rate_plays_at_the_right_speed_on_both_sides(card: FakeCard) -> None:
    card.plug("Old card", outputs=2, rate_hz=44_100.0)
    card.refuse = lambda options: options["samplerate"] != 44_100 or options["channels"] != 2
    async with speaking(card) as mouth:
        await card.run(500)
        asked_at = card.time.now_ns
        await mouth.speaker.write(np.full(48_000, 1_000, np.int16))
        played = np.concatenate(await card.run(1200))
        assert 44_000 < np.count_nonzero(played > 900) <= 44_100
        at_ns = mouth.speaker.heard_at_ns(24_000)
        assert at_ns is not None
        assert abs(at_ns - (asked_at + 530 * MS)) < MS


async def test_an_answer_goes_on_where_it_stopped_when_the_speaker_is_back_within_a_second(
    card: FakeCard,
) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(4000)
        await mouth.speaker.write(ramp(9600))
        before = np.concatenate(await card.run(100))
        card.streams[0].active = False
        card.streams[0].finish()
        draining = asyncio.create_task(mouth.speaker.drained())
        after = np.concatenate(await card.run(1000))
        assert mouth.told == ["speaker_lost", None]
        assert np.concatenate([before, after[after > 0]]).tolist() == ramp(9600).tolist()
        assert draining.done()


async def test_a_speaker_that_stays_away_drops_what_is_written_and_the_turn_ends(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(4000)
        await mouth.speaker.write(ramp(9600))
        await card.run(100)
        card.serve()
        await card.run(300)
        assert mouth.told == ["speaker_lost", "speaker_missing"]
        heard = mouth.speaker.heard
        writing = asyncio.create_task(mouth.speaker.write(ramp(100)))
        draining = asyncio.create_task(mouth.speaker.drained())
        await card.run(1100)
        assert writing.done()
        assert draining.done()
        assert mouth.speaker.heard == heard
        card.serve(SPEAKER)
        await card.run(500)
        assert mouth.told[-1] is None
        assert not np.concatenate(await card.run(100)).any()


async def test_underruns_are_counted_over_the_life_of_the_speaker(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        card.streams[0].play(underflow=True)
        card.streams[0].finish()
        card.streams[0].active = False
        await card.run(1000)
        card.streams[1].play(underflow=True)
        assert mouth.speaker.underruns == 2


@pytest.mark.parametrize("rate_hz", [44_100, 32_000, 96_000])
@pytest.mark.parametrize("piece", [481, 997, 4800])
async def test_every_written_sample_is_heard_whatever_the_rate_of_the_device(
    card: FakeCard, rate_hz: int, piece: int
) -> None:
    card.plug("Old card", outputs=2, rate_hz=float(rate_hz))
    card.refuse = lambda options: options["samplerate"] != rate_hz
    async with speaking(card) as mouth:
        await card.run(500)
        sound = np.full(24_007, 1000, np.int16)
        asked_at = card.time.now_ns
        for start in range(0, len(sound), piece):
            await mouth.speaker.write(sound[start : start + piece])
        await card.run(600)
        assert mouth.speaker.heard == 24_007
        last = mouth.speaker.heard_at_ns(24_006)
        assert last is not None
        assert abs(last - (asked_at + 30 * MS + 24_006 * 1_000_000_000 // 48_000)) < 2 * MS
        assert mouth.speaker.ends_at_ns() == pytest.approx(last, abs=30_000)


async def test_draining_plays_what_the_resampler_holds_back_and_returns(card: FakeCard) -> None:
    card.plug("Old card", outputs=1, rate_hz=44_100.0)
    card.refuse = lambda options: options["samplerate"] != 44_100
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(np.full(4800, 1000, np.int16))
        await mouth.speaker.write(np.full(1, 1000, np.int16))
        draining = asyncio.create_task(mouth.speaker.drained())
        played = np.concatenate(await card.run(200))
        assert np.count_nonzero(played > 500) == pytest.approx(4411, abs=1)
        assert draining.done()
        assert mouth.speaker.heard_at_ns(4800) is not None


async def test_the_end_is_known_from_the_first_write_on_and_is_exact_once_it_is_heard(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        assert mouth.speaker.ends_at_ns() is None
        begun = card.time.now_ns
        await mouth.speaker.write(ramp(4800))
        assert mouth.speaker.ends_at_ns() == begun + 100 * MS
        await card.run(50)
        assert mouth.speaker.ends_at_ns() == begun + 80 * MS + 50 * MS
        await card.run(500)
        assert mouth.speaker.ends_at_ns() == begun + 130 * MS


async def test_after_a_flush_no_more_is_to_come_than_what_the_device_has_and_a_fade(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        begun = card.time.now_ns
        await mouth.speaker.write(ramp(72_000))
        writing = asyncio.create_task(mouth.speaker.write(ramp(480)))
        await card.run(100)
        mouth.speaker.flush()
        assert mouth.speaker.ends_at_ns() == begun + 130 * MS + 10 * MS
        await card.run(100)
        assert writing.done()
        assert mouth.speaker.ends_at_ns() == begun + 140 * MS


async def test_nothing_is_to_come_from_a_speaker_that_is_given_up(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(4000)
        await mouth.speaker.write(ramp(48_000))
        await card.run(100)
        card.serve()
        await card.run(300)
        ends = mouth.speaker.ends_at_ns()
        assert ends is not None
        assert ends > card.time.now_ns
        await card.run(1000)
        ends = mouth.speaker.ends_at_ns()
        assert ends is not None
        assert ends < card.time.now_ns - 900 * MS
        await mouth.speaker.write(ramp(480))
        assert mouth.speaker.ends_at_ns() == ends
