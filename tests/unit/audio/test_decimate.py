from __future__ import annotations

import numpy as np
import pytest

from ondam.audio.decimate import Decimator
from ondam.types import Samples


def tone(hz: float, rate_hz: int = 48_000, amplitude: float = 16_000) -> Samples:
    return np.rint(amplitude * np.sin(2 * np.pi * hz * np.arange(rate_hz) / rate_hz)).astype(np.int16)


def left_db(hz: float) -> float:
    """How much of a tone is left, in dB."""
    out = Decimator(3).process(tone(hz))[1000:-1000].astype(float)
    return float(20 * np.log10(max(1e-9, np.sqrt(np.mean(out**2) * 2)) / 16_000))


@pytest.mark.parametrize("hz", [50, 1000, 4000, 6800])
def test_a_voice_passes_untouched(hz: float) -> None:
    assert left_db(hz) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("hz", [9000, 10_000, 12_000, 15_000, 23_000])
def test_what_would_fold_back_into_the_voice_is_removed(hz: float) -> None:
    assert left_db(hz) < -75  # below what 16 bits can hold of it


@pytest.mark.parametrize("factor", [2, 3, 6])
def test_the_output_is_in_phase_and_comes_a_millisecond_late(factor: int) -> None:
    rate_hz = 16_000 * factor
    sound = tone(440, rate_hz)
    out = Decimator(factor).process(sound)
    assert len(out) == 16_000 - 19
    whole = sound[::factor].astype(int)
    assert np.abs(out[20:].astype(int) - whole[20 : len(out)]).max() <= 2


def test_blocks_of_any_length_give_what_the_whole_gives() -> None:
    sound = np.random.default_rng(1).integers(-20_000, 20_000, 24_000).astype(np.int16)
    cut, whole = Decimator(3), Decimator(3)
    edges = np.cumsum([0, 1, 1, 2, 3, 5, 480, 480, 7, 1000, 0, 3, 480])
    pieces = [cut.process(sound[a:b]) for a, b in zip(edges, [*edges[1:], None], strict=True)]
    assert np.abs(np.concatenate(pieces).astype(int) - whole.process(sound)).max() <= 1


def test_what_is_too_loud_is_clipped_and_does_not_turn_over() -> None:
    square = np.where(np.arange(4800) % 60 < 30, 32_767, -32_768).astype(np.int16)
    out = Decimator(3).process(square)
    assert (out.max(), out.min()) == (32_767, -32_768)
    assert np.all(out[45:49] > 30_000) or np.all(out[45:49] < -30_000)
