from __future__ import annotations

import asyncio

import numpy as np
from tests.fakes.gone_speaker import GoneSpeaker
from tests.unit.audio.virtual_time import VirtualTime, settle

from ondam.audio.simulated import WavSpeaker
from ondam.pipeline.gate import Gate
from ondam.types import DraftId, Samples

MS = 1_000_000
TAIL = 200 * MS
ONE, TWO = DraftId(1), DraftId(2)


def sound(ms: int) -> Samples:
    """At 1 kHz."""
    return np.full(ms, 1000, np.int16)


def gate_in(time: VirtualTime) -> Gate:
    """In front of a speaker that plays what is written 10 ms later."""
    return Gate(WavSpeaker(rate_hz=1000, clock=time.clock, sleep=time.sleep), time.clock)


async def test_the_tail_ends_exactly_so_long_after_the_last_sample_has_passed() -> None:
    time = VirtualTime()
    gate = gate_in(time)
    assert not gate.sounding(TAIL)
    gate.open(ONE)
    await gate.write(ONE, sound(100))
    await time.advance(10 + 100 + 200 - 0.001)
    assert gate.sounding(TAIL)
    await time.advance(0.001)
    assert not gate.sounding(TAIL)


async def test_after_a_drop_the_tail_counts_from_the_drop() -> None:
    time = VirtualTime()
    gate = gate_in(time)
    gate.open(ONE)
    await gate.write(ONE, sound(900))
    await time.advance(50)
    gate.drop(ONE)
    await time.advance(199.999)
    assert gate.sounding(TAIL)
    await time.advance(0.001)
    assert not gate.sounding(TAIL)


async def test_a_drop_after_the_end_does_not_begin_the_tail_anew() -> None:
    time = VirtualTime()
    gate = gate_in(time)
    gate.open(ONE)
    await gate.write(ONE, sound(100))
    await time.advance(10 + 100 + 150)
    gate.drop(ONE)
    await time.advance(50)
    assert not gate.sounding(TAIL)


async def test_what_is_let_through_after_a_drop_sounds_to_its_own_end() -> None:
    time = VirtualTime()
    gate = gate_in(time)
    gate.open(ONE)
    await gate.write(ONE, sound(900))
    await time.advance(50)
    gate.drop(ONE)
    gate.open(TWO)
    await gate.write(TWO, sound(300))
    await time.advance(10 + 300 + 199)
    assert gate.sounding(TAIL)
    await time.advance(1)
    assert not gate.sounding(TAIL)


async def test_a_write_that_waits_for_room_is_to_come_until_it_is_dropped() -> None:
    time = VirtualTime()
    gate = gate_in(time)
    gate.open(ONE)
    await gate.write(ONE, sound(1500))
    writing = asyncio.create_task(gate.write(ONE, sound(400)))
    await settle()
    assert not writing.done()
    await time.advance(100)
    gate.drop(ONE)
    await time.advance(200)
    assert await writing is None
    assert not gate.sounding(TAIL)


async def test_a_speaker_that_drops_everything_does_not_make_the_microphone_deaf() -> None:
    gate = Gate(GoneSpeaker(), VirtualTime().clock)
    gate.open(ONE)
    assert await gate.write(ONE, sound(100)) == 0
    assert not gate.sounding(TAIL)
