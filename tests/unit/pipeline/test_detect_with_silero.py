"""The detector on Silero's real weights: what counts as a voice, and that nothing makes it deaf."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.fakes.paused_speech import in_a_room, spoken_korean

from ondam.audio.resample import resampled
from ondam.config import load
from ondam.control.sound import decode
from ondam.dialog.events import Event, SpeechStarted
from ondam.measure.clips import clips
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.detect import Detector
from ondam.pipeline.silero import Silero
from ondam.places import places
from ondam.supervisor.environment import installed
from ondam.supervisor.manifest import engine_roots, find_engines
from ondam.types import HEARING_RATE_HZ, Block, Samples

pytestmark = pytest.mark.engines

BLOCK = HEARING_RATE_HZ // 100


@pytest.fixture
def ears() -> Detector:
    model = Store(places().models).path(Catalog.of(places()).card("silero-vad"))
    return Detector(Silero(model), load(None).detect, clock=lambda: 0)


def seconds(length: float) -> int:
    return round(length * HEARING_RATE_HZ)


def silence(length: float) -> Samples:
    return np.zeros(seconds(length), np.int16)


def events(ears: Detector, samples: Samples) -> Iterator[tuple[float, Event]]:
    """Each with the seconds heard by then."""
    for first in range(0, len(samples) // BLOCK * BLOCK, BLOCK):
        for event in ears.hear(Block(samples[first : first + BLOCK], first, 0)):
            yield (first + BLOCK) / HEARING_RATE_HZ, event


def starts(ears: Detector, samples: Samples) -> list[float]:
    """When an utterance would have been opened; none is."""
    return [at for at, event in events(ears, samples) if isinstance(event, SpeechStarted)]


def yes() -> Samples:
    """0.2 s of "네": the loudest piece of what espeak-ng says."""
    here = places()
    espeak = installed(find_engines(engine_roots(here.user_engines))["espeak"], here)
    ((audio, _),) = spoken_korean(espeak.python, ["네"])
    length = seconds(0.2)
    loudness = np.cumsum(np.square(audio.samples.astype(np.float64)))
    first = int(np.argmax(loudness[length:] - loudness[:-length]))
    return audio.samples[first : first + length]


def click() -> Samples:
    """80 ms of a door's latch: a crack that dies away, and the thump of the wood."""
    time = np.arange(seconds(0.08)) / HEARING_RATE_HZ
    crack = np.random.default_rng(7).normal(0, 1, len(time)) * np.exp(-time / 0.006)
    thump = np.sin(2 * np.pi * 140 * time) * np.exp(-time / 0.02)
    return np.asarray(9000 * crack + 9000 * thump).clip(-32768, 32767).astype(np.int16)


def test_a_yes_of_200_ms_counts_and_a_door_click_of_80_ms_does_not(ears: Detector) -> None:
    assert len(starts(ears, in_a_room(np.concatenate([silence(1), yes(), silence(1)]), seed=1))) >= 1
    ears.forget()
    clicks = np.concatenate([silence(1), click(), silence(0.5), click(), silence(1)])
    assert starts(ears, in_a_room(clicks, seed=2)) == []


@pytest.mark.parametrize("noise", [0, 16, 300], ids=["zeros", "a quiet room", "a fan"])
def test_ten_silent_minutes_do_not_deafen_the_detector(ears: Detector, noise: int) -> None:
    question = resampled(decode(clips("en")[0].wav, 10**7), HEARING_RATE_HZ).samples
    minute = np.random.default_rng(3).normal(0, noise, seconds(60)).astype(np.int16)
    fresh = starts(ears, np.concatenate([minute[: seconds(1)], question + minute[: len(question)]]))
    ears.forget()
    for _ in range(10):
        assert starts(ears, minute) == []
    late = starts(ears, np.concatenate([minute[: seconds(1)], question + minute[: len(question)]]))
    # Frames of 32 ms lie elsewhere in the question: no more than two of them may lie between.
    assert late[0] == pytest.approx(fresh[0], abs=0.064)
