"""What the echo canceller is told of what is played."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.audio.fake_card import FakeCard
from tests.unit.audio.test_speaker import MS, ramp, speaking, with_server

from ondam.types import Samples

BLOCK = 480


def loud(count: int) -> Samples:
    return np.full(count, 10_000, np.int16)


async def test_it_is_what_the_device_got_and_known_before_it_is_heard(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        assert mouth.speaker.reference() == ()
        await mouth.speaker.write(ramp(1000))
        begun = card.time.now_ns
        played = [card.streams[0].play()]
        (piece,) = mouth.speaker.reference()
        assert (piece.at_ns, piece.rate_hz) == (begun + 30 * MS, 48_000)
        assert piece.samples.tolist() == played[0].tolist() == ramp(BLOCK).tolist()
        await card.time.advance(10)
        played = await card.run(50)
        pieces = mouth.speaker.reference()
        assert [piece.at_ns for piece in pieces] == [begun + 40 * MS, begun + 50 * MS]
        assert [piece.samples.tolist() for piece in pieces] == [one.tolist() for one in played[:2]]
        assert mouth.speaker.reference() == ()


async def test_it_is_quieter_held_and_faded_where_the_sound_is(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        mouth.speaker.reference()
        await mouth.speaker.write(loud(48_000))
        played = await card.run(20)
        mouth.speaker.level(0.5)
        played += await card.run(20)
        mouth.speaker.level(0)
        played += await card.run(100)
        mouth.speaker.level(1)
        played += await card.run(20)
        mouth.speaker.flush()
        played += await card.run(100)
        pieces = mouth.speaker.reference()
        sounding = [one.tolist() for one in played if one.any()]
        assert len(sounding) == 2 + 2 + 1 + 2 + 1
        assert [piece.samples.tolist() for piece in pieces] == sounding
        assert pieces[5].at_ns - pieces[4].at_ns == 100 * MS


async def test_nothing_is_collected_until_somebody_asks_and_then_no_more_than_two_seconds(
    card: FakeCard,
) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        await mouth.speaker.write(loud(4800))
        await card.run(200)
        assert mouth.speaker.reference() == ()
        await mouth.speaker.write(ramp(5 * 48_000))
        await card.run(4500)
        pieces = mouth.speaker.reference()
        assert len(pieces) == 200
        assert pieces[-1].samples.tolist() == ramp(5 * 48_000)[449 * BLOCK : 450 * BLOCK].tolist()


async def test_it_goes_on_with_a_device_of_another_rate(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(3000)
        mouth.speaker.reference()
        card.refuse = lambda options: options["samplerate"] != 44_100
        card.streams[0].active = False
        card.streams[0].finish()
        await card.run(1500)
        assert mouth.speaker.reference() == ()
        await mouth.speaker.write(loud(9600))
        begun = card.time.now_ns
        await card.run(50)
        pieces = mouth.speaker.reference()
        assert [(piece.rate_hz, len(piece.samples)) for piece in pieces] == [(44_100, 441)] * 5
        # At this rate the position in nanoseconds is rounded.
        assert pieces[0].at_ns == pytest.approx(begun + 30 * MS, abs=100)


async def test_right_after_the_device_ran_dry_nothing_is_told_until_its_time_is_known(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        mouth.speaker.reference()
        await mouth.speaker.write(loud(9600))
        stream = mouth.speaker._stream
        assert stream is not None
        card.streams[0].play()
        stream.reports.append(None)  # the next callback has begun
        assert mouth.speaker.reference() == ()
        card.streams[0].play()
        assert len(mouth.speaker.reference()) == 2
