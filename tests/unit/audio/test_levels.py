from __future__ import annotations

import numpy as np
import pytest

from ondam.audio.levels import FLOOR_DB, Meter, SpeakerMeter, dbfs
from ondam.types import Nanoseconds, Samples


def square(level: int, samples: int = 160) -> Samples:
    return np.full(samples, level, np.int16)


@pytest.mark.parametrize(
    ("power", "level"), [(32768.0**2, 0.0), (3276.8**2, -20.0), (0.0, FLOOR_DB), (1e-9, FLOOR_DB)]
)
def test_a_square_wave_of_full_scale_is_0_and_silence_the_floor(power: float, level: float) -> None:
    assert dbfs(power) == pytest.approx(level)


def test_what_was_heard_since_the_last_time_counts_together() -> None:
    meter = Meter()
    meter.hear(square(3277))
    meter.hear(square(0))  # half of the time: half of the power, 3 dB less
    assert meter.take() == pytest.approx(-23.0, abs=0.02)
    meter.hear(square(3277))
    assert meter.take() == pytest.approx(-20.0, abs=0.01)


def test_nothing_heard_is_not_silence() -> None:
    meter = Meter()
    assert meter.take() is None
    meter.hear(square(0))
    assert meter.take() == FLOOR_DB


def test_the_loudest_samples_do_not_overflow() -> None:
    meter = Meter()
    meter.hear(square(-32768, 48_000))
    assert meter.take() == pytest.approx(0.0, abs=0.01)


class Speaker:
    """A thousand samples a second; all before ``now`` were heard."""

    def __init__(self, end: int) -> None:
        self.heard = 0
        self.end = end

    def heard_at_ns(self, sample: int) -> Nanoseconds | None:
        return sample * 1_000_000 if sample < self.heard else None

    def ends_at_ns(self) -> Nanoseconds | None:
        return self.end * 1_000_000

    def level(self, meter: SpeakerMeter, at: int, gain: float = 1.0) -> float:
        self.heard = min(at, self.end)
        return round(meter.take(self, at * 1_000_000, gain))


def test_the_speakers_level_is_that_of_what_is_heard_now_and_not_of_what_was_written() -> None:
    meter, speaker = SpeakerMeter(1000), Speaker(300)
    meter.write(0, np.concatenate([square(3277, 100), square(328, 100), square(32767, 100)]))
    assert speaker.level(meter, 0) == FLOOR_DB
    assert [speaker.level(meter, at) for at in (50, 150, 250)] == [-20, -40, 0]
    assert speaker.level(meter, 150, gain=0.1) == -20  # full scale, ducked
    assert speaker.level(meter, 300) == FLOOR_DB


def test_what_was_dropped_is_never_heard_afterwards() -> None:
    meter, speaker = SpeakerMeter(1000), Speaker(200)
    meter.write(0, square(3277, 200))
    speaker.end = 50  # flushed
    assert speaker.level(meter, 60) == FLOOR_DB
    meter.write(200, square(328, 100))
    speaker.end = 400
    assert speaker.level(meter, 210) == -40


def test_what_waits_is_bounded() -> None:
    meter, speaker = SpeakerMeter(1000), Speaker(10**6)
    for first in range(0, 10**6, 1000):
        meter.write(first, square(3277, 1000))
    assert len(meter._pieces) == 256
    assert speaker.level(meter, 10**6 - 1) == -20
