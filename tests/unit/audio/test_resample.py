from __future__ import annotations

import numpy as np
import pytest

from ondam.audio.resample import Resampler, mixed, resampled, to_int16
from ondam.types import Audio, Samples

RATES = [(48000, 16000), (44100, 16000), (22050, 48000), (16000, 48000), (8000, 16000), (96000, 16000)]


def tone(rate_hz: int, seconds: float, hz: float = 440.0) -> Samples:
    t = np.arange(round(rate_hz * seconds)) / rate_hz
    return (8000 * np.sin(2 * np.pi * hz * t)).astype(np.int16)


@pytest.mark.parametrize(("rate_in", "rate_out"), RATES)
def test_as_much_time_comes_out_as_went_in(rate_in: int, rate_out: int) -> None:
    stream = Resampler(rate_in, rate_out)
    pieces = [stream.process(block) for block in np.array_split(tone(rate_in, 1.0), 97)]
    assert sum(map(len, pieces)) + len(stream.finish()) == rate_out


@pytest.mark.parametrize(("rate_in", "rate_out"), RATES)
def test_block_edges_leave_no_trace(rate_in: int, rate_out: int) -> None:
    sound = tone(rate_in, 0.5)
    cut, whole = Resampler(rate_in, rate_out), Resampler(rate_in, rate_out)
    in_pieces = np.concatenate(
        [cut.process(block) for block in np.array_split(sound, 61)] + [cut.finish()]
    ).astype(int)
    at_once = np.concatenate([whole.process(sound), whole.finish()]).astype(int)
    assert np.abs(in_pieces - at_once).max() <= 1


@pytest.mark.parametrize(("rate_in", "rate_out"), RATES)
def test_a_click_keeps_its_time(rate_in: int, rate_out: int) -> None:
    sound = np.zeros(rate_in, np.int16)
    sound[rate_in // 2 - 2 : rate_in // 2 + 3] = 20000
    out = resampled(Audio(sound, rate_in), rate_out).samples
    assert np.argmax(out) / rate_out == pytest.approx(0.5, abs=2 / min(rate_in, rate_out))


def test_little_is_held_back_so_that_no_latency_is_added() -> None:
    stream = Resampler(48000, 16000)
    given = sum(len(stream.process(np.zeros(480, np.int16))) for _ in range(10))
    assert 10 * 160 - given <= 32  # 2 ms


def test_equal_rates_pass_through_untouched() -> None:
    sound = tone(16000, 0.1)
    stream = Resampler(16000, 16000)
    assert stream.process(sound) is sound
    assert len(stream.finish()) == 0


def test_a_stream_that_was_finished_can_begin_again() -> None:
    stream = Resampler(48000, 16000)
    first = np.concatenate([stream.process(tone(48000, 0.1)), stream.finish()])
    second = np.concatenate([stream.process(tone(48000, 0.1)), stream.finish()])
    assert np.array_equal(first, second)


def test_channels_are_averaged_so_that_two_loud_ones_do_not_clip() -> None:
    assert mixed(np.array([[32767, 32767], [100, 300], [-32768, -32768]], np.int16)).tolist() == [
        32767,
        200,
        -32768,
    ]


def test_what_is_no_number_becomes_silence_and_what_is_too_loud_is_clipped() -> None:
    assert to_int16(np.array([np.nan, np.inf, 2.0, -2.0, 0.5], np.float32)).tolist() == [
        0,
        0,
        32767,
        -32768,
        16384,
    ]


def test_exact_silence_is_passed_without_changing_what_comes_after_it() -> None:
    sound = (8000 * np.sin(np.arange(48_000) * 0.05)).astype(np.int16)
    silence = np.zeros(48_000, np.int16)
    said = np.concatenate([sound, silence, sound])
    rested, awake = Resampler(48_000, 16_000), Resampler(48_000, 16_000)
    quiet = np.concatenate([rested.process(said[i : i + 480]) for i in range(0, len(said), 480)])
    whole = awake.process(said)
    both = min(len(quiet), len(whole))
    assert abs(len(quiet) - len(whole)) <= 1
    assert np.abs(quiet[:both].astype(int) - whole[:both]).max() <= 1
