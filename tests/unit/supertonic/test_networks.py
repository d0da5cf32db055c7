from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ondam_engines.kit.cancel import Cancel, Cancelled
from ondam_engines.supertonic.networks import Networks, Sound, Style, TooLong

SOUND = Sound(rate_hz=1_000, frame=100, width=4)
STYLE = Style(np.zeros((1, 50, 256), np.float32), np.zeros((1, 8, 16), np.float32))
IDS = np.zeros((1, 7), np.int64)


@dataclass
class Scripted:
    """Answers with ``answer`` of its inputs, and counts."""

    answer: Callable[[Mapping[str, Any]], Any]
    asked: list[Mapping[str, Any]] = field(default_factory=list)

    def run(self, inputs: Mapping[str, Any], cancel: Cancel) -> Any:
        cancel.check()
        self.asked.append(inputs)
        return self.answer(inputs)


def networks(
    seconds: float = 0.25,
    *,
    steps: int = 3,
    speed: float = 1.0,
    estimate: Callable[[Mapping[str, Any]], Any] = lambda inputs: inputs["noisy_latent"],
) -> Networks:
    return Networks(
        duration_predictor=Scripted(lambda inputs: np.array([seconds], np.float32)),
        text_encoder=Scripted(lambda inputs: np.zeros((1, 256, inputs["text_ids"].shape[1]), np.float32)),
        vector_estimator=Scripted(estimate),
        # As long as its frames, and told apart by their first number.
        vocoder=Scripted(lambda inputs: np.repeat(inputs["latent"][0, 0], SOUND.frame)[None]),
        sound=SOUND,
        steps=steps,
        speed=speed,
        seed=0,
        longest_frames=10,
    )


@pytest.mark.parametrize(
    ("seconds", "speed", "samples", "frames"),
    [(0.25, 1.0, 250, 3), (0.2, 1.0, 200, 2), (0.25, 2.0, 125, 2), (0.0004, 1.0, 0, 1), (-1.0, 1.0, 0, 1)],
)
def test_speech_is_exactly_as_long_as_predicted(
    seconds: float, speed: float, samples: int, frames: int
) -> None:
    used = networks(seconds, speed=speed)
    assert len(used.speak(IDS, STYLE, Cancel())) == samples
    assert isinstance(used.vector_estimator, Scripted)
    assert used.vector_estimator.asked[0]["noisy_latent"].shape == (1, 4, frames)
    assert used.vector_estimator.asked[0]["latent_mask"].shape == (1, 1, frames)


def test_a_duration_that_ends_at_a_frame_as_a_32_bit_number_needs_no_frame_more_than_its_mask() -> None:
    real = Sound(rate_hz=44_100, frame=3072, width=144)
    for seconds in np.arange(1, 200, dtype=np.float32) * np.float32(3072 / 44_100):
        samples = int(real.rate_hz * float(seconds))
        assert 0 <= real.frames(samples) * real.frame - samples < real.frame


def test_every_step_gets_what_the_one_before_made() -> None:
    used = networks(steps=3, estimate=lambda inputs: inputs["noisy_latent"] + 1)
    wave = used.speak(IDS, STYLE, Cancel())
    assert isinstance(used.vector_estimator, Scripted)
    asked = used.vector_estimator.asked
    assert [float(inputs["current_step"][0]) for inputs in asked] == [0, 1, 2]
    assert {float(inputs["total_step"][0]) for inputs in asked} == {3}
    assert np.allclose(wave[::100], used.noise(3)[0, 0] + 3)


def test_a_cancel_during_a_step_lets_no_other_begin() -> None:
    cancel = Cancel()

    def estimate(inputs: Mapping[str, Any]) -> Any:
        if inputs["current_step"][0] == 2:
            cancel.cancel()
        return inputs["noisy_latent"]

    used = networks(steps=8, estimate=estimate)
    with pytest.raises(Cancelled):
        used.speak(IDS, STYLE, cancel)
    assert isinstance(used.vector_estimator, Scripted)
    assert isinstance(used.vocoder, Scripted)
    assert (len(used.vector_estimator.asked), len(used.vocoder.asked)) == (3, 0)


def test_the_same_text_is_made_of_the_same_noise_whatever_was_said_before() -> None:
    used = networks()
    first = used.speak(IDS, STYLE, Cancel())
    used.speak(np.zeros((1, 3), np.int64), STYLE, Cancel())
    assert np.array_equal(first, used.speak(IDS, STYLE, Cancel()))
    # A longer one begins with the noise of a shorter one.
    assert np.array_equal(used.noise(2), used.noise(5)[:, :, :2])


def test_noise_is_as_wide_as_a_normal_distribution() -> None:
    drawn = networks().noise(2_000)
    assert drawn.shape == (1, 4, 2_000)
    assert drawn.dtype == np.float32
    assert abs(float(drawn.mean())) < 0.05
    assert abs(float(drawn.std()) - 1) < 0.05


def test_what_would_last_too_long_is_told_before_it_is_computed() -> None:
    used = networks(1.01)
    with pytest.raises(TooLong, match="11 frames are over 10"):
        used.speak(IDS, STYLE, Cancel())
    assert isinstance(used.text_encoder, Scripted)
    assert used.text_encoder.asked == []


def test_a_duration_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="nan"):
        networks(float("nan")).speak(IDS, STYLE, Cancel())
