"""Another device in the middle of everything: what sounds goes on, what is listened to goes on."""

from __future__ import annotations

import asyncio
import os

import numpy as np
from tests.unit.audio.fake_card import FakeCard, microphone, speaker
from tests.unit.audio.test_microphone import listening
from tests.unit.audio.test_speaker import ramp, speaking

ONE, OTHER = speaker("one", default=True), speaker("other")
MIC, HEADSET = microphone("mic", default=True), microphone("headset")


def with_server(card: FakeCard) -> None:
    card.plug("pulse", inputs=32, outputs=32, rate_hz=44_100.0)
    card._initialize()
    card.serve(ONE, OTHER, MIC, HEADSET)


async def test_an_answer_goes_on_at_the_other_speaker_where_it_stopped(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        first = await mouth.speaker.write(ramp(24_000))
        before = np.concatenate(await card.run(200))
        mouth.speaker.use("other")
        after = np.concatenate(await card.run(600))
        assert mouth.speaker.name == "The other"
        assert [stream.closed for stream in card.streams] == [True, False]
        # What the device had taken went with it (here: nothing that was not heard); the rest follows.
        played = np.concatenate([before, after])
        heard = played[played > 0]
        assert len(heard) >= 24_000 - 48 * 40
        assert (np.diff(heard.astype(np.int32)) >= 0).all()
        assert mouth.told == []
        assert mouth.speaker.heard_at_ns(first + 23_999) is not None


async def test_a_speaker_that_rests_is_another_one_after_the_change(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(7000)
        assert card.streams[-1].closed  # at rest
        mouth.speaker.use("other")
        await card.run(300)
        assert mouth.speaker.name == "The other"
        writing = asyncio.create_task(mouth.speaker.write(ramp(480)))
        assert np.concatenate(await card.run(200)).any()
        await writing
        assert mouth.told == []


async def test_the_same_device_again_is_no_change(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        mouth.speaker.use("default")
        await card.run(500)
        assert len(card.streams) == 1


async def test_the_other_microphone_is_opened_at_once_after_the_first_was_closed(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        await card.run(500, feed=np.full(480, 100, np.int16))
        ears.microphone.use("headset")
        await card.run(500, feed=np.full(480, 200, np.int16))
        assert ears.microphone.name == "The headset"
        assert [stream.closed for stream in card.streams] == [True, False]
        assert ears.samples[-1] == 200
        firsts = [block.first for block in ears.blocks]
        assert firsts == sorted(set(firsts))  # numbers go on, whatever device they come from
        assert ears.told == []


async def test_one_that_is_not_there_is_told_and_used_once_it_comes(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        await card.run(500)
        ears.microphone.use("usb")
        await card.run(500)
        assert ears.told == ["microphone_missing"]
        card.serve(ONE, OTHER, MIC, HEADSET, microphone("usb"))
        await card.run(1500)
        assert ears.microphone.name == "The usb"
        assert ears.told[-1] is None


async def test_back_to_the_default_follows_the_default_again(card: FakeCard) -> None:
    with_server(card)
    async with listening(card, "headset") as ears:
        await card.run(500)
        ears.microphone.use("default")
        await card.run(500)
        assert ears.microphone.name == "The mic"
        card.serve(ONE, OTHER, microphone("mic"), microphone("headset", default=True))
        await card.run(1000)
        assert ears.microphone.name == "The headset"
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert "PULSE_SOURCE" not in os.environ
