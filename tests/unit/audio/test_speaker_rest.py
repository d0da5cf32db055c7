"""A speaker with nothing to play is closed, and opened again in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.unit.audio.fake_card import FakeCard, speaker
from tests.unit.audio.test_speaker import MS, SPEAKER, ramp, speaking, with_server

T = TypeVar("T")


async def test_a_speaker_with_nothing_to_play_rests_after_five_seconds(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(4900)
        assert not card.streams[0].closed
        await card.run(400)
        assert card.streams[0].closed
        await card.run(60_000)
        assert len(card.streams) == 1
        assert mouth.told == []
        assert mouth.speaker.name == "The speaker"


async def test_a_sound_puts_the_rest_off_and_so_does_being_held(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(4000)
        await mouth.speaker.write(ramp(48_000))  # until 5.03 s
        await card.run(5500)
        assert not card.streams[0].closed
        mouth.speaker.level(0)
        await mouth.speaker.write(ramp(480))
        await card.run(20_000)
        assert not card.streams[0].closed
        mouth.speaker.level(1)
        await card.run(5500)
        assert card.streams[0].closed
        assert mouth.speaker.heard == 48_480


async def test_what_is_written_to_a_speaker_that_rests_is_played_whole_and_in_time(
    card: FakeCard,
) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(100)
        await mouth.speaker.write(ramp(480))
        await card.run(6000)
        ended = mouth.speaker.ends_at_ns()
        writing = asyncio.create_task(mouth.speaker.write(ramp(960)))
        draining = asyncio.create_task(mouth.speaker.drained())
        await card.run(10)
        ends = mouth.speaker.ends_at_ns()
        assert ends is not None
        assert ends > card.time.now_ns
        asked_at = card.time.now_ns
        played = np.concatenate(await card.run(100))
        assert writing.done()
        assert played[played > 0].tolist() == ramp(960).tolist()
        assert draining.done()
        assert mouth.told == []
        assert len(card.streams) == 2
        assert ended is not None
        assert mouth.speaker.heard_at_ns(479) == ended - 1_000_000_000 // 48_000 - 1
        heard_at = mouth.speaker.heard_at_ns(480)
        assert heard_at is not None
        assert asked_at + 20 * MS <= heard_at <= asked_at + 40 * MS
        assert mouth.speaker.ends_at_ns() == heard_at + 20 * MS


async def test_a_speaker_that_was_woken_takes_what_is_written_at_once_and_rests_again(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(6000)
        mouth.speaker.wake()
        mouth.speaker.wake()
        await card.run(50)
        assert len(card.streams) == 2
        await asyncio.wait_for(mouth.speaker.write(ramp(480)), 1)
        played = np.concatenate(await card.run(20))
        assert played[:480].tolist() == ramp(480).tolist()
        await card.run(4000)
        mouth.speaker.wake()
        await card.run(4900)
        assert not card.streams[1].closed
        await card.run(600)
        assert card.streams[1].closed
        assert mouth.told == []


async def test_a_speaker_woken_while_it_is_being_closed_is_opened_again(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        real = card.call

        async def slow(job: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
            await card.time.sleep(0.1)
            return await real(job, undo)

        monkeypatch.setattr(card, "call", slow)
        await card.run(4990)
        while mouth.speaker._stream:
            await card.run(10)
        assert not card.streams[0].closed
        writing = asyncio.create_task(mouth.speaker.write(ramp(480)))
        played = np.concatenate(await card.run(300))
        assert writing.done()
        assert card.streams[0].closed
        assert played[played > 0].tolist() == ramp(480).tolist()
        monkeypatch.setattr(card, "call", real)


async def test_b23_a_speaker_that_is_pulled_out_while_it_rests_is_told_and_its_return_too(
    card: FakeCard,
) -> None:
    with_server(card)
    async with speaking(card, "speaker") as mouth:
        await card.run(6000)
        card.serve(speaker("other", default=True))
        await card.run(300)
        assert mouth.told == ["speaker_lost", "speaker_missing"]
        # What is said meanwhile is dropped at once: it is known to be gone.
        await card.run(1000)
        await asyncio.wait_for(mouth.speaker.write(ramp(480)), 1)
        assert (mouth.speaker.ends_at_ns() or 0) <= card.time.now_ns
        card.serve(SPEAKER)
        await card.run(5000)
        assert mouth.told == ["speaker_lost", "speaker_missing", None]
        await card.run(6000)
        assert card.streams[-1].closed


async def test_b23_a_server_that_ends_while_the_speaker_rests_is_told_and_its_return_too(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_server(card)
    async with speaking(card, "speaker") as mouth:
        await card.run(6000)
        server = card.state
        card.state = type(server)()
        for heard in card._heard:
            heard()
        await card.run(300)
        assert mouth.told == ["speaker_lost", "speaker_missing"]
        card.serve(SPEAKER)
        await card.run(5000)
        assert mouth.told == ["speaker_lost", "speaker_missing", None]


async def test_a_new_default_is_followed_at_rest_without_a_sound(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(6000)
        card.serve(speaker("speaker"), speaker("headset", default=True))
        await card.run(3000)
        assert mouth.speaker.name == "The headset"
        assert len(card.streams) == 1
        mouth.speaker.wake()
        await card.run(300)
        assert len(card.streams) == 2
        assert mouth.told == []


async def test_b23_a_server_that_hangs_when_the_speaker_is_woken_is_told_and_the_turn_ends(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(6000)
        real, on = card.call, asyncio.Event()

        async def hanging(job: Callable[[], Any], undo: Callable[[Any], object] | None = None) -> Any:
            await on.wait()
            return await real(job, undo)

        monkeypatch.setattr(card, "call", hanging)
        writing = asyncio.create_task(mouth.speaker.write(ramp(480)))
        draining = asyncio.create_task(mouth.speaker.drained())
        await card.run(1100)
        assert mouth.told == ["speaker_stalled"]
        assert writing.done()
        assert draining.done()
        on.set()
        await card.run(500)
        assert mouth.told == ["speaker_stalled", None]
        assert not np.concatenate(await card.run(100)).any()


async def test_a_speaker_that_rests_can_be_closed(card: FakeCard) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(6000)
        assert mouth.speaker.heard == 0
    await asyncio.wait_for(mouth.speaker.drained(), 1)
