from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import numpy as np
import pytest
from tests.unit.audio.virtual_time import VirtualTime, settle

from ondam.audio import open_microphone, open_speaker
from ondam.audio.simulated import NoMicrophone, WavMicrophone, WavSpeaker
from ondam.audio.wav import read_wav, write_wav
from ondam.types import Audio, Block, Samples

START = 1_000_000_000
MS = 1_000_000


def ramp(count: int, first: int = 1) -> Samples:
    return (np.arange(count) + first).astype(np.int16)


def at_16k(samples: Samples) -> Audio:
    return Audio(samples, 16000)


class Listener:
    """Collects blocks with the moment they were delivered."""

    def __init__(self, microphone: WavMicrophone, time: VirtualTime) -> None:
        self.heard: list[tuple[int, Block]] = []
        self._task = asyncio.create_task(self._listen(microphone, time))

    async def _listen(self, microphone: WavMicrophone, time: VirtualTime) -> None:
        async for block in microphone.blocks():
            self.heard.append((time.now_ns, block))

    @property
    def ended(self) -> bool:
        return self._task.done()

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


async def test_blocks_come_on_an_absolute_schedule_ten_milliseconds_after_they_began() -> None:
    time = VirtualTime()
    microphone = WavMicrophone(at_16k(ramp(480)), clock=time.clock, sleep=time.sleep)
    listener = Listener(microphone, time)
    await time.advance(50)
    assert [at for at, _ in listener.heard] == [START + k * 10 * MS for k in range(1, 6)]
    assert [block.at_ns for _, block in listener.heard] == [START + k * 10 * MS for k in range(5)]
    assert [block.first for _, block in listener.heard] == [0, 160, 320, 480, 640]
    said = np.concatenate([block.samples for _, block in listener.heard])
    assert said.tolist() == [*range(1, 481), *[0] * 320]
    await listener.stop()


async def test_a_late_consumer_gets_the_right_times_and_the_schedule_does_not_drift() -> None:
    time = VirtualTime()
    microphone = WavMicrophone(None, clock=time.clock, sleep=time.sleep)
    blocks = microphone.blocks()
    waiting = asyncio.ensure_future(anext(blocks))
    await time.advance(10)
    assert (await waiting).at_ns == START
    time.now_ns += 35 * MS  # the consumer was busy
    for k in range(1, 4):
        waiting = asyncio.ensure_future(anext(blocks))
        await time.advance(0)
        assert (await waiting).at_ns == START + k * 10 * MS
    waiting = asyncio.ensure_future(anext(blocks))
    await time.advance(4.9)
    assert not waiting.done()
    await time.advance(0.1)
    assert (await waiting).at_ns == START + 40 * MS


async def test_a_file_can_end_the_stream_instead_of_falling_silent() -> None:
    time = VirtualTime()
    microphone = WavMicrophone(at_16k(ramp(161)), clock=time.clock, sleep=time.sleep, then="end")
    listener = Listener(microphone, time)
    await time.advance(30)
    assert listener.ended
    assert np.concatenate([block.samples for _, block in listener.heard]).tolist() == [
        *range(1, 162),
        *[0] * 159,
    ]


async def test_another_sound_can_be_said_later_and_its_time_is_known() -> None:
    time = VirtualTime()
    microphone = WavMicrophone(None, clock=time.clock, sleep=time.sleep)
    listener = Listener(microphone, time)
    await time.advance(20)
    assert microphone.play(at_16k(ramp(10))) == 320
    assert microphone.play(at_16k(ramp(10, 500))) == 330
    await time.advance(10)
    assert listener.heard[-1][1].samples[:20].tolist() == [*range(1, 11), *range(500, 510)]
    assert microphone.said_at_ns(320) == START + 20 * MS
    await listener.stop()


async def test_a_file_of_another_rate_is_brought_to_16_khz(tmp_path: Path) -> None:
    time = VirtualTime()
    write_wav(tmp_path / "a.wav", Audio(np.zeros(48000, np.int16), 48000))
    microphone = WavMicrophone(tmp_path / "a.wav", clock=time.clock, sleep=time.sleep, then="end")
    listener = Listener(microphone, time)
    await time.advance(2000)
    assert len(listener.heard) == 100


async def test_closing_the_microphone_ends_its_blocks() -> None:
    time = VirtualTime()
    microphone = WavMicrophone(None, clock=time.clock, sleep=time.sleep)
    listener = Listener(microphone, time)
    await time.advance(10)
    await microphone.close()
    await microphone.close()
    await time.advance(10)
    assert listener.ended
    assert len(listener.heard) == 1


async def test_no_microphone_yields_nothing_until_it_is_closed() -> None:
    microphone = NoMicrophone()
    waiting = asyncio.ensure_future(anext(microphone.blocks(), None))
    await settle()
    assert not waiting.done()
    await microphone.close()
    assert await waiting is None


def speaker_in(time: VirtualTime, path: Path | None = None, rate_hz: int = 1000) -> WavSpeaker:
    """At 1 kHz a sample lasts a millisecond, which makes the sums easy."""
    return WavSpeaker(path, rate_hz=rate_hz, clock=time.clock, sleep=time.sleep)


async def test_what_is_written_is_heard_from_ten_milliseconds_later_on() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    assert await speaker.write(ramp(30)) == 0
    assert await speaker.write(ramp(30)) == 30
    assert speaker.heard == 0
    assert speaker.heard_at_ns(0) is None
    await time.advance(10)
    assert speaker.heard == 0
    assert speaker.heard_at_ns(0) == START + 10 * MS
    await time.advance(25)
    assert speaker.heard == 25
    await time.advance(100)
    assert speaker.heard == 60
    assert speaker.heard_at_ns(59) == START + 69 * MS
    assert speaker.heard_at_ns(60) is None


async def test_times_are_exact_across_a_gap() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(ramp(20))
    await time.advance(31)  # the sound ended at 30: one millisecond late
    await speaker.write(ramp(20))
    await time.advance(100)
    assert speaker.heard_at_ns(19) == START + 29 * MS
    assert speaker.heard_at_ns(20) == START + 41 * MS
    assert speaker.recording().samples.tolist() == [*range(1, 21), *[0] * 11, *range(1, 21)]


async def test_a_flush_fades_within_ten_milliseconds_and_drops_the_rest() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(np.full(100, 1000, np.int16))
    await speaker.write(np.full(100, 1000, np.int16))
    await time.advance(50)
    speaker.flush()
    assert speaker.heard == 40
    await time.advance(500)
    assert speaker.heard == 50
    assert speaker.heard_at_ns(49) == START + 59 * MS
    assert speaker.heard_at_ns(50) is None
    recorded = speaker.recording().samples
    assert len(recorded) == 50
    assert recorded[:41].tolist() == [1000] * 41
    assert np.all(np.diff(recorded[40:]) < 0)
    assert recorded[-1] == 0


async def test_after_a_flush_numbers_go_on_and_dropped_samples_do_not_count() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(ramp(100))
    speaker.flush()  # nothing is on its way yet: sample 0 would be heard in 10 ms
    assert await speaker.write(ramp(5)) == 100
    await time.advance(100)
    assert speaker.heard == 5
    assert speaker.heard_at_ns(0) is None
    assert speaker.heard_at_ns(100) == START + 10 * MS


async def test_writing_waits_while_a_second_is_queued() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(ramp(1500))
    writing = asyncio.ensure_future(speaker.write(ramp(10)))
    await time.advance(509.9)
    assert not writing.done()
    await time.advance(0.1)
    assert writing.done()
    assert await writing == 1500


async def test_a_flush_drops_a_write_that_waits() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(ramp(1500))
    writing = asyncio.ensure_future(speaker.write(ramp(10)))
    await time.advance(100)
    speaker.flush()
    await time.advance(20)
    assert writing.done()
    await time.advance(2000)
    assert speaker.heard == 100
    assert speaker.heard_at_ns(1500) is None


async def test_drained_returns_when_the_last_sample_was_heard_or_dropped() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.drained()
    await speaker.write(ramp(95))
    draining = asyncio.ensure_future(speaker.drained())
    await time.advance(104)
    assert not draining.done()
    await time.advance(1)
    assert draining.done()
    await speaker.write(ramp(1000))
    draining = asyncio.ensure_future(speaker.drained())
    await time.advance(100)
    speaker.flush()
    await time.advance(20)
    assert draining.done()


async def test_the_recording_is_written_when_the_speaker_closes(tmp_path: Path) -> None:
    time = VirtualTime()
    speaker = speaker_in(time, tmp_path / "answer.wav", rate_hz=8000)
    await speaker.write(ramp(800))
    await time.advance(2000)
    await speaker.write(ramp(800))
    await time.advance(200)
    await speaker.close()
    await speaker.close()
    audio = read_wav(tmp_path / "answer.wav")
    assert audio.rate_hz == 8000
    assert len(audio.samples) == 800 + 4000 + 800  # the long silence was cut to half a second
    assert audio.samples[:800].tolist() == list(range(1, 801))


async def test_what_was_not_heard_before_closing_is_not_recorded() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(ramp(100))
    await time.advance(30)
    await speaker.close()
    assert speaker.recording().samples.tolist() == list(range(1, 21))
    await speaker.drained()


async def test_the_factory_reads_the_words_of_the_configuration(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", at_16k(ramp(160)))
    assert open_microphone("none").name == "none"
    assert open_microphone(f"wav:{tmp_path}/a.wav").name == f"wav:{tmp_path}/a.wav"
    nowhere = open_speaker("none", latency_ms=30)
    assert isinstance(nowhere, WavSpeaker)
    await nowhere.write(ramp(10))
    assert len(nowhere.recording().samples) == 0


def test_a_broken_file_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="does not exist"):
        open_microphone(f"wav:{tmp_path}/nowhere.wav")


async def test_the_end_is_that_of_all_that_was_written_until_it_is_dropped() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    assert speaker.ends_at_ns() is None
    await speaker.write(ramp(1500))
    assert speaker.ends_at_ns() == START + 1510 * MS
    writing = asyncio.ensure_future(speaker.write(ramp(100)))
    await time.advance(50)
    assert speaker.ends_at_ns() == START + 1610 * MS
    speaker.flush()
    assert speaker.ends_at_ns() == START + 60 * MS
    await time.advance(500)
    assert writing.done()
    assert speaker.ends_at_ns() == START + 60 * MS


def loud(count: int) -> Samples:
    return np.full(count, 1000, np.int16)


async def test_a_quieter_level_is_reached_within_ten_milliseconds_and_changes_no_time() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(loud(100))
    await time.advance(50)  # 40 heard
    speaker.level(0.1)
    await time.advance(30)
    speaker.level(1)
    await time.advance(100)
    recorded = speaker.recording().samples.tolist()
    assert recorded[:41] == [1000] * 41
    assert recorded[41:50] == [900, 800, 700, 600, 500, 400, 300, 200, 100]
    assert recorded[50:71] == [100] * 21
    assert recorded[71:80] == [200, 300, 400, 500, 600, 700, 800, 900, 1000]
    assert recorded[80:] == [1000] * 20
    assert speaker.heard_at_ns(99) == START + 109 * MS


async def test_what_is_held_goes_on_with_the_next_sample_and_nothing_is_lost_or_doubled() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    speaker.level(1)
    await speaker.write(ramp(60))
    await speaker.write(ramp(40, first=61))
    await time.advance(30)  # 20 heard, 10 more are going to be, fading
    speaker.level(0)
    await time.advance(200)
    assert speaker.heard == 30
    assert speaker.ends_at_ns() == START + (230 + 10 + 70) * MS
    speaker.level(1)
    assert speaker.ends_at_ns() == START + (240 + 70) * MS
    await time.advance(300)
    assert speaker.heard == 100
    assert speaker.heard_at_ns(29) == START + 39 * MS
    assert speaker.heard_at_ns(30) == START + 240 * MS
    assert speaker.heard_at_ns(99) == START + 309 * MS
    recorded = speaker.recording().samples
    assert len(recorded) == 100 + 200  # the gap can be heard
    assert recorded[:20].tolist() == list(range(1, 21))
    assert recorded[29:231].tolist() == [0] * 202  # the fade's end, the gap, the next fade's beginning
    assert recorded[239:].tolist() == list(range(40, 101))


async def test_all_that_is_held_is_still_to_come() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(ramp(500))
    await time.advance(110)
    speaker.level(0)
    draining = asyncio.ensure_future(speaker.drained())
    await speaker.write(ramp(700))
    writing = asyncio.ensure_future(speaker.write(ramp(10)))
    await time.advance(5000)
    assert not writing.done()
    assert not draining.done()
    ends_at_ns = speaker.ends_at_ns()
    assert ends_at_ns is not None
    assert ends_at_ns == time.now_ns + (10 + 500 - 110 + 700 + 10) * MS
    speaker.level(0.5)
    await time.advance(100)
    assert writing.done()
    assert not draining.done()
    await time.advance(1100)
    assert draining.done()
    assert speaker.heard == 1210


async def test_a_flush_drops_what_is_held_and_what_follows_is_as_loud_as_it_was_written() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(loud(100))
    await time.advance(30)
    speaker.level(0)
    await speaker.write(loud(100))
    await time.advance(100)
    speaker.flush()
    draining = asyncio.ensure_future(speaker.drained())
    await time.advance(10)
    assert draining.done()
    assert await speaker.write(ramp(20)) == 200
    await time.advance(100)
    assert speaker.heard == 30 + 20
    assert speaker.heard_at_ns(30) is None
    assert speaker.recording().samples[-20:].tolist() == list(range(1, 21))


async def test_a_flush_fades_from_where_the_level_is() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(loud(100))
    await time.advance(30)
    speaker.level(0.1)
    await time.advance(30)
    speaker.flush()
    await speaker.write(loud(5))
    await time.advance(100)
    recorded = speaker.recording().samples
    assert recorded[50:60].tolist() == [100, 89, 78, 67, 56, 44, 33, 22, 11, 0]
    assert recorded[60:].tolist() == [1000] * 5


async def test_going_on_while_the_fade_is_still_to_be_heard_leaves_only_a_short_gap() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(loud(100))
    await time.advance(30)
    speaker.level(0)
    await time.advance(4)
    speaker.level(1)
    await time.advance(200)
    assert speaker.heard == 100
    assert speaker.heard_at_ns(30) == START + 44 * MS
    recorded = speaker.recording().samples
    assert recorded[20:30].tolist() == [1000, 889, 778, 667, 556, 444, 333, 222, 111, 0]
    assert recorded[30:34].tolist() == [0] * 4
    assert recorded[34:44].tolist() == [0, 111, 222, 333, 444, 556, 667, 778, 889, 1000]


@pytest.mark.parametrize("gain", [-0.1, 1.1])
async def test_a_level_that_would_clip_is_refused(gain: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        speaker_in(VirtualTime()).level(gain)


async def test_a_speaker_to_nowhere_holds_too() -> None:
    time = VirtualTime()
    speaker = WavSpeaker(rate_hz=1000, clock=time.clock, sleep=time.sleep, longest_s=0)
    await speaker.write(ramp(100))
    await time.advance(30)
    speaker.level(0)
    await time.advance(100)
    assert speaker.heard == 30
    speaker.level(1)
    await time.advance(200)
    assert speaker.heard == 100
    assert len(speaker.recording().samples) == 0


async def test_what_was_played_is_told_as_loud_as_it_was_and_with_its_time() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    await speaker.write(loud(100))
    await time.advance(20)
    assert speaker.reference() == ()  # from now on
    await time.advance(10)
    (piece,) = speaker.reference()
    assert (piece.at_ns, piece.rate_hz) == (START + 20 * MS, 1000)
    assert piece.samples.tolist() == [1000] * 10
    speaker.level(0)
    await time.advance(50)
    (piece,) = speaker.reference()
    assert piece.at_ns == START + 30 * MS
    assert piece.samples.tolist() == [1000, 889, 778, 667, 556, 444, 333, 222, 111, 0]
    assert speaker.reference() == ()
    speaker.level(1)
    await time.advance(25)
    (piece,) = speaker.reference()
    assert piece.at_ns == START + 90 * MS
    assert piece.samples.tolist() == [0, 111, 222, 333, 444, 556, 667, 778, 889, *[1000] * 6]
    speaker.flush()
    await time.advance(25)
    (piece,) = speaker.reference()
    assert piece.samples.tolist() == [1000, 889, 778, 667, 556, 444, 333, 222, 111, 0]


async def test_what_nobody_asks_for_is_kept_for_two_seconds() -> None:
    time = VirtualTime()
    speaker = speaker_in(time)
    assert speaker.reference() == ()
    for _ in range(10):
        await speaker.write(loud(500))
        await time.advance(500)
    await time.advance(500)
    pieces = speaker.reference()
    assert sum(len(piece.samples) for piece in pieces) == pytest.approx(2000, abs=500)
    assert pieces[-1].at_ns + len(pieces[-1].samples) * MS == START + 5010 * MS
    await speaker.write(loud(5000))
    await time.advance(6000)
    (piece,) = speaker.reference()
    assert (len(piece.samples), piece.at_ns) == (2000, time.now_ns - (1000 - 10 + 2000) * MS)
