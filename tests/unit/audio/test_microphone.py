from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from itertools import pairwise

import numpy as np
import pytest
from tests.unit.audio.fake_card import FakeCard, Told, microphone
from tests.unit.audio.virtual_time import settle

from ondam.audio.microphone import RING, DeviceMicrophone, Hearing
from ondam.types import Block, Samples

MS = 1_000_000
MIC = microphone("mic", default=True)


class Ears:
    def __init__(self, card: FakeCard, spec: str = "default") -> None:
        self.told = Told()
        self.blocks: list[Block] = []
        self.microphone = DeviceMicrophone(
            spec,
            on_fault=self.told,
            clock=card.time.clock,
            sleep=card.time.sleep,
            host=card,
            watch=card,
        )
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for block in self.microphone.blocks():
            self.blocks.append(block)

    @property
    def samples(self) -> Samples:
        return np.concatenate([block.samples for block in self.blocks])


@contextlib.asynccontextmanager
async def listening(card: FakeCard, spec: str = "default") -> AsyncIterator[Ears]:
    ears = Ears(card, spec)
    await settle()
    try:
        yield ears
    finally:
        closing = asyncio.create_task(ears.microphone.close())
        await card.time.advance(10)
        await closing
        await ears.task


def with_server(card: FakeCard) -> None:
    card.plug("pulse", inputs=32, outputs=32, rate_hz=44_100.0)
    card._initialize()
    card.serve(MIC)


def ramp(rate_hz: int, seconds: float) -> Samples:
    return (np.arange(round(rate_hz * seconds)) * 16_000 // rate_hz).astype(np.int16)


async def test_blocks_are_ten_milliseconds_without_a_gap_or_a_doubled_sample(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        sound = ramp(48_000, 1.0)
        for block in np.split(sound, 100):
            await card.run(10, feed=block)
        assert {len(block.samples) for block in ears.blocks} == {160}
        assert [b.first - a.first for a, b in pairwise(ears.blocks)] == [160] * (len(ears.blocks) - 1)
        # A ramp of one step a sample at 16 kHz stays one, across every edge.
        assert np.abs(ears.samples[200:].astype(int) - np.arange(200, len(ears.samples))).max() <= 1


async def test_time_stamps_are_when_the_sound_was_said(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        begun = card.time.now_ns
        await card.run(500)
        # The fake card delivers what began to be said 20 ms ago.
        for block in ears.blocks:
            assert block.at_ns == begun - 20 * MS + block.first * 62_500


async def test_a_card_with_another_rate_and_more_channels_is_used_as_it_is(card: FakeCard) -> None:
    card.plug("Interface", inputs=4, rate_hz=44_100.0)
    card.refuse = lambda options: options["samplerate"] != 44_100 or options["channels"] != 4
    async with listening(card) as ears:
        await card.run(1000, feed=np.full(441, 1000, np.int16))
        assert (card.streams[0].samplerate, card.streams[0].channels) == (44_100.0, 4)
        assert len(ears.samples) == pytest.approx(16_000, abs=160)
        assert set(ears.samples[200:-200].tolist()) <= {999, 1000, 1001}


async def test_the_server_is_asked_for_the_chosen_source(card: FakeCard) -> None:
    with_server(card)
    asked: list[str | None] = []

    def note(_options: dict[str, object]) -> bool:
        asked.append(os.environ.get("PULSE_SOURCE"))
        return False

    card.refuse = note
    async with listening(card):
        pass
    assert asked == ["mic"]
    assert "PULSE_SOURCE" not in os.environ


async def test_b23_a_finished_stream_is_told_and_opened_again_with_numbers_going_on(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        await card.run(500)
        heard = len(ears.blocks)
        card.streams[0].active = False
        card.streams[0].finish()
        await settle()
        assert ears.told == ["microphone_lost"]
        await card.run(1000)
        assert ears.told == ["microphone_lost", None]
        assert len(card.streams) == 2
        assert card.streams[0].closed
        assert ears.blocks[heard].first == heard * 160


async def test_b23_callbacks_that_stop_are_noticed_within_a_second(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        await card.run(1000)
        await card.time.advance(450)
        assert ears.told == []
        await card.time.advance(310)
        assert ears.told == ["microphone_stalled"]


async def test_b23_a_stream_on_the_wrong_source_is_noticed_within_a_second(card: FakeCard) -> None:
    with_server(card)
    card.serve(MIC, attached=frozenset({("microphone", "mic")}))
    async with listening(card, "mic") as ears:
        await card.run(1000)
        card.serve(MIC, attached=frozenset({("microphone", "speaker.monitor")}))
        await card.run(500)
        assert ears.told == ["microphone_moved"]
        card.serve(MIC, attached=frozenset({("microphone", "mic")}))
        await card.run(1000)
        assert ears.told == ["microphone_moved", None]


async def test_b23_a_removed_source_is_noticed_though_the_stream_goes_on(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        await card.run(1000)
        card.serve(microphone("speaker.monitor", default=True, monitor=True))
        await card.run(500)
        assert ears.told == ["microphone_lost", "microphone_missing"]
        assert ears.microphone.name == "default"
        heard = len(ears.blocks)
        await card.run(20_000)
        assert len(ears.blocks) == heard
        card.serve(microphone("speaker.monitor", monitor=True), MIC)
        await card.run(500)
        assert ears.told == ["microphone_lost", "microphone_missing", None]


async def test_b23_exact_zeros_for_thirty_seconds_are_only_a_notice(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        await card.run(500)
        await card.run(29_900, feed=np.zeros(480, np.int16))
        assert ears.told == []
        await card.run(400, feed=np.zeros(480, np.int16))
        assert ears.told == ["microphone_silent"]
        await card.run(60_000, feed=np.zeros(480, np.int16))
        assert ears.told == ["microphone_silent"]
        assert len(card.streams) == 1
        await card.run(100)
        assert ears.told == ["microphone_silent", None]


async def test_b23_no_device_at_the_start_is_no_busy_loop_and_heals(card: FakeCard) -> None:
    async with listening(card) as ears:
        await card.time.advance(60_000)
        assert ears.told == ["microphone_missing"]
        assert 10 <= card.refreshes <= 25  # waits of 0.25, 0.5, 1, 2, then 4 s
        card.plug("Webcam", inputs=1)
        await card.run(5_000)
        assert ears.told == ["microphone_missing", None]
        assert ears.microphone.name == "Webcam"


async def test_b23_the_process_itself_was_stopped_for_five_minutes(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        await card.run(1000)
        card.time.now_ns += 300_000 * MS
        await card.run(1000)
        assert ears.told == []
        assert len(card.streams) == 1


async def test_a_card_that_refuses_is_named_with_the_reason(card: FakeCard) -> None:
    with_server(card)
    card.refuse = lambda _options: True
    async with listening(card) as ears:
        await card.time.advance(1000)
        assert ears.told == ["device_unusable"]


async def test_the_default_is_followed_without_a_word(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        await card.run(4000)
        card.serve(microphone("mic"), microphone("better", default=True))
        await card.run(1000)
        assert ears.told == []
        assert ears.microphone.name == "The better"


async def test_a_microphone_is_plugged_in_again_while_the_speaker_of_a_bare_alsa_stays_open(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ondam.audio import portaudio

    card.plug("Built-in", inputs=1)
    async with listening(card) as ears:
        await card.run(4000)
        host = portaudio.portaudio()
        monkeypatch.setattr(host, "refreshed_at_s", -1000.0)
        assert portaudio.refresh() is False
        assert host.refresh_wanted
        card.refresh_wanted = True
        refreshes = card.refreshes
        await card.run(1000)
        assert card.refreshes == refreshes + 1
        assert ears.told == []


async def test_a_loop_that_is_busy_loses_the_oldest_sound_only(card: FakeCard) -> None:
    with_server(card)
    async with listening(card) as ears:
        for _ in range(RING + 100):
            card.streams[0].feed(np.ones(480, np.int16))
        await settle()
        assert len(ears.blocks) == RING - 1  # the resampler still holds a little of the last


def test_times_stay_right_when_a_stream_begins_in_the_middle_of_the_numbers() -> None:
    hearing = Hearing(16_000, 1, first=8000)
    blocks = list(hearing.take(np.zeros(400, np.int16).tobytes(), 1_000 * MS, 1_020 * MS))
    assert [(block.first, block.at_ns) for block in blocks] == [(8000, 1_000 * MS), (8160, 1_010 * MS)]
    more = list(hearing.take(np.zeros(80, np.int16).tobytes(), 1_025 * MS, 1_045 * MS))
    assert [(block.first, block.at_ns) for block in more] == [(8320, 1_020 * MS)]


async def test_what_nobody_takes_is_noticed_and_so_is_a_keeper_that_is_gone(card: FakeCard) -> None:
    with_server(card)
    ears = Ears(card)

    async def speaks(seconds: int) -> None:
        await card.run(seconds * 1000, feed=np.ones(480, np.int16))

    await settle()
    await speaks(1)
    before_ns = ears.microphone.backlog_ns
    ears.task.cancel()  # as if it hung
    await asyncio.gather(ears.task, return_exceptions=True)
    await speaks(6)
    hung_ns, kept = ears.microphone.backlog_ns, ears.microphone.kept
    ears.task = asyncio.create_task(ears._listen())
    await speaks(1)
    after_ns = ears.microphone.backlog_ns
    keeping = ears.microphone._keeper._task
    assert keeping is not None
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert (before_ns, after_ns, kept, ears.microphone.kept) == (0, 0, True, False)
    assert hung_ns == pytest.approx(6000 * MS, abs=100 * MS)
    ears.task.cancel()
    await asyncio.gather(ears.task, return_exceptions=True)
