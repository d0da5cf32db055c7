"""The gate in front of a real speaker: the microphone always gets its turn again."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.unit.audio.fake_card import FakeCard
from tests.unit.audio.test_speaker import MS, SPEAKER, speaking, with_server

from ondam.pipeline.gate import Gate
from ondam.types import DraftId

TAIL = 200 * MS
DRAFT, NEXT = DraftId(1), DraftId(2)


@pytest.mark.parametrize("rate_hz", [44_100, 32_000])
@pytest.mark.parametrize("count", range(24_000, 24_010))
async def test_after_a_healthy_answer_the_microphone_is_heard_again_whatever_the_devices_rate(
    card: FakeCard, rate_hz: int, count: int
) -> None:
    card.plug("Old card", outputs=2, rate_hz=float(rate_hz))
    card.refuse = lambda options: options["samplerate"] != rate_hz
    async with speaking(card) as mouth:
        await card.run(500)
        gate = Gate(mouth.speaker, card.time.clock)
        gate.open(DRAFT)
        for piece in np.array_split(np.full(count, 1000, np.int16), 7):
            await gate.write(DRAFT, piece)
        await card.run(500 + 30 + 180)  # the sound, the way to the converter, most of the tail
        assert gate.sounding(TAIL)
        await card.run(40)
        assert not gate.sounding(TAIL)


async def test_an_answer_without_a_speaker_does_not_make_the_microphone_deaf(card: FakeCard) -> None:
    async with speaking(card) as mouth:
        await card.run(2000)
        gate = Gate(mouth.speaker, card.time.clock)
        gate.open(DRAFT)
        await gate.write(DRAFT, np.full(48_000, 1000, np.int16))
        assert not gate.sounding(TAIL)
        await gate.drained()


async def test_a_speaker_pulled_out_in_mid_answer_gives_the_microphone_back_and_the_next_answer_sounds(
    card: FakeCard,
) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(4000)
        gate = Gate(mouth.speaker, card.time.clock)
        gate.open(DRAFT)
        await gate.write(DRAFT, np.full(96_000, 1000, np.int16))
        await card.run(300)
        card.serve()
        await card.run(500)
        assert gate.sounding(TAIL)  # it may still be back in time
        writing = asyncio.create_task(gate.write(DRAFT, np.full(480, 1000, np.int16)))
        await card.run(1000)
        assert writing.done()
        assert not gate.sounding(TAIL)
        await gate.drained()
        card.serve(SPEAKER)
        await card.run(1000)
        assert not gate.sounding(TAIL)
        gate.open(NEXT)
        await gate.write(NEXT, np.full(4800, 1000, np.int16))
        assert gate.sounding(TAIL)
        await card.run(100 + 30 + 190)
        assert gate.sounding(TAIL)
        await card.run(20)
        assert not gate.sounding(TAIL)


async def test_an_answer_dropped_while_it_waits_for_the_speaker_is_never_heard(card: FakeCard) -> None:
    async with speaking(card) as mouth:
        gate = Gate(mouth.speaker, card.time.clock)
        gate.open(DRAFT)
        writing = asyncio.create_task(gate.write(DRAFT, np.full(4800, 1000, np.int16)))
        await card.run(100)
        assert not writing.done()
        gate.drop(DRAFT)
        with_server(card)
        played = np.concatenate(await card.run(1000))
        assert len(played)
        assert not played.any()
        assert await writing is None
