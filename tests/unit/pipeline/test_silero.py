"""Silero on its real weights: what it hears, and that resting on exact silence changes nothing of it."""

from __future__ import annotations

import numpy as np
import pytest

from ondam.control.sound import decode
from ondam.measure.clips import clips
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.silero import FRAME, Silero
from ondam.places import places
from ondam.types import Samples

pytestmark = pytest.mark.engines


@pytest.fixture
def silero() -> Silero:
    return Silero(Store(places().models).path(Catalog.of(places()).card("silero-vad")))


def probabilities(voice: Silero, samples: Samples) -> list[float]:
    whole = len(samples) // FRAME * FRAME
    return [voice(frame) for frame in samples[:whole].reshape(-1, FRAME)]


def test_speech_is_heard_and_noise_is_not(silero: Silero) -> None:
    speech = decode(clips("en")[0].wav, 10**7).samples
    heard = probabilities(silero, speech)
    assert max(heard) > 0.95
    assert heard[0] < 0.2
    silero.reset()
    noise = np.random.default_rng(2).normal(0, 300, 32_000).astype(np.int16)
    assert max(probabilities(silero, noise)) < 0.5


def test_resting_on_exact_silence_does_not_change_what_is_heard_after_it(
    silero: Silero, monkeypatch: pytest.MonkeyPatch
) -> None:
    speech = decode(clips("en")[0].wav, 10**7).samples
    silence = np.zeros(FRAME * 100, np.int16)
    said = np.concatenate([speech, silence, speech])
    rested = probabilities(silero, said)
    assert 0.0 in rested
    monkeypatch.setattr("ondam.pipeline.silero.QUIET_FRAMES", 10**9)
    silero.reset()
    awake = probabilities(silero, said)
    assert 0.0 not in awake
    # Frame by frame the same verdicts, but for at most one frame at an edge.
    assert sum((a > 0.5) != (b > 0.5) for a, b in zip(rested, awake, strict=True)) <= 1


def test_streams_on_the_same_weights_do_not_hear_each_other(silero: Silero) -> None:
    question = decode(clips("en")[0].wav, 10**7).samples
    alone = probabilities(silero, question)
    silero.reset()
    one, other = silero.another(), silero.another()
    noise = np.random.default_rng(0).normal(0, 3000, len(question)).astype(np.int16)
    heard = []
    for at in range(0, len(question) - FRAME + 1, FRAME):
        other(noise[at : at + FRAME])
        heard.append(one(question[at : at + FRAME]))
    assert heard == pytest.approx(alone[: len(heard)], abs=1e-5)
