from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from ondam.audio.cues import Cue, cue
from ondam.audio.simulated import SPEAKER_RATE_HZ
from ondam.types import Samples

KINDS: tuple[Cue, ...] = get_args(Cue)


def loudest_hz(samples: Samples) -> float:
    """Of the strongest sine in ``samples``, to 1 Hz."""
    spectrum = np.abs(np.fft.rfft(samples.astype(float), SPEAKER_RATE_HZ))
    return float(spectrum.argmax())


@pytest.mark.parametrize("kind", KINDS)
def test_a_cue_is_short_soft_and_does_not_click(kind: Cue) -> None:
    samples = cue(kind)
    assert samples.dtype == np.int16
    assert samples.ndim == 1
    assert 0.04 <= len(samples) / SPEAKER_RATE_HZ <= 0.12
    peak_db = 20 * np.log10(np.abs(samples.astype(float)).max() / 32_768)
    assert peak_db == pytest.approx(-20, abs=0.1)
    assert samples[0] == samples[-1] == 0
    # A full-scale step is a click; the steepest slope of a sine of 1 kHz at this level is 429 a sample.
    assert np.abs(np.diff(samples.astype(int))).max() <= 450
    # The first and the last 2 ms are 24 dB and more below the peak.
    assert np.abs(samples[:96]).max() <= 3277 * 0.07
    assert np.abs(samples[-96:]).max() <= 3277 * 0.07


def test_each_cue_can_be_told_from_the_others_and_is_always_the_same() -> None:
    assert len({cue(kind).tobytes() for kind in KINDS}) == len(KINDS)
    before = cue("open").copy()
    cue.cache_clear()
    assert np.array_equal(cue("open"), before)


@pytest.mark.parametrize(
    ("kind", "rises"), [("open", True), ("name", True), ("push", False), ("muted", False)]
)
def test_a_mode_that_hears_more_rises_and_one_that_hears_less_falls(kind: Cue, rises: bool) -> None:
    samples = cue(kind)
    first, second = loudest_hz(samples[:2640]), loudest_hz(samples[2640:])
    assert (second > first) is rises
    assert abs(first - second) > 100


def test_a_cue_cannot_be_changed_by_whoever_plays_it() -> None:
    with pytest.raises(ValueError, match="read-only"):
        cue("open")[0] = 1
