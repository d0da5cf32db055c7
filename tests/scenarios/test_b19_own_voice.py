"""Our own voice is not heard, the user's is, also over ours: people's voices, the real detector."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ondam.audio.duplex import Duplex
from ondam.audio.resample import resampled
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.silero import FRAME, Silero
from ondam.places import places
from ondam.types import HEARING_RATE_HZ, Audio, Samples
from tests.fakes.human_clips import Clip, human_clips
from tests.fakes.room import Room
from tests.fakes.virtual_time import virtual_time

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

ANSWERS = 10
ANSWER_S = 4.0
VOICE = 0.5
"""Silero's probability from which a frame counts as voice, as shipped."""

TAIL_S = 0.3


@pytest.fixture(scope="module")
def spoken() -> dict[str, Clip]:
    return {clip.name: clip for clip in human_clips()}


@pytest.fixture(scope="module")
def vad() -> Path:
    store, catalog = Store(places().models), Catalog.of(places())
    return store.path(catalog.card("silero-vad"))


def clock() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


def loud(samples: Samples, dbfs: float) -> Audio:
    """As loud as that on the average."""
    power = float(np.sqrt(np.mean((samples / 32768) ** 2)))
    scaled = np.clip(samples * (10 ** (dbfs / 20) / power), -32768, 32767)
    return Audio(scaled.astype(np.int16), HEARING_RATE_HZ)


@dataclass
class Frame:
    """What the detector made of 32 ms."""

    at_ns: int
    voice: float
    trusted: bool


class Ears:
    """A microphone in a room with our own voice, and Silero behind it."""

    def __init__(self, room: Room, vad: Path) -> None:
        self.duplex = Duplex(room.microphone, room.speaker)
        self.frames: list[Frame] = []
        self._voice = Silero(vad)
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        pending = np.zeros(0, np.int16)
        async for block in self.duplex.blocks():
            pending = np.concatenate([pending, block.samples])
            if len(pending) >= FRAME:
                voice = self._voice(pending[:FRAME])
                pending = pending[FRAME:]
                self.frames.append(Frame(clock(), voice, self.duplex.trusted))

    def heard_at_ns(self, from_ns: int, to_ns: int) -> int | None:
        """When an utterance would have begun: the second frame of voice in a row."""
        frames = [frame for frame in self.frames if from_ns <= frame.at_ns <= to_ns]
        for one, other in pairwise(frames):
            if one.voice >= VOICE and other.voice >= VOICE and other.trusted:
                return other.at_ns
        return None

    async def close(self) -> None:
        await self.duplex.close()
        await self._task


async def speak(room: Room, samples: Samples) -> None:
    """At the level of an answer; returns when it was heard."""
    await room.speaker.write(resampled(loud(samples, -20), room.speaker.rate_hz).samples)
    await room.speaker.drained()


def answers(clip: Clip) -> list[Samples]:
    whole = clip.audio.samples
    return [
        whole[round(n * ANSWER_S * HEARING_RATE_HZ) :][: round(ANSWER_S * HEARING_RATE_HZ)]
        for n in range(ANSWERS)
    ]


def word(clip: Clip) -> Samples:
    """The first 0.7 s of what is said, from where the sound begins."""
    samples = clip.audio.samples
    blocks = samples[: len(samples) // 160 * 160].reshape(-1, 160).astype(np.float64)
    power = np.mean(blocks**2, axis=1)
    return samples[int(np.argmax(power > power.max() / 1000)) * 160 :][: 7 * HEARING_RATE_HZ // 10]


@pytest.mark.parametrize("attenuation_db", [12, 30])
@pytest.mark.parametrize("delay_ms", [80, pytest.param(250, marks=pytest.mark.thorough), 600])
def test_b19_ten_answers_make_no_turn_of_their_own_and_a_word_after_each_is_heard(
    delay_ms: float, attenuation_db: float, spoken: dict[str, Clip], vad: Path
) -> None:
    @virtual_time
    async def run() -> None:
        room = Room(clock=clock, delay_ms=delay_ms, attenuation_db=attenuation_db, reverberant=True)
        ears = Ears(room, vad)
        await asyncio.sleep(0.5)
        said = word(spoken["librivox-0880"])
        for number, answer in enumerate(answers(spoken["two_cities"])):
            begun_ns = clock()
            await speak(room, answer)
            await asyncio.sleep(delay_ms / 1000 + TAIL_S)
            assert ears.heard_at_ns(begun_ns, clock()) is None, f"answer {number} heard itself"
            if ears.duplex.trusted:
                at_ns = room.say(loud(said, -30))
                await asyncio.sleep(1.2)
                assert ears.heard_at_ns(at_ns, clock()) is not None, f"a word after answer {number}"
            else:
                assert number == 0
            await asyncio.sleep(0.8)
        assert ears.duplex.mode == "cancelling"
        await ears.close()

    run()


@pytest.mark.parametrize(
    # The louder our own voice is, the more of the user's goes with it.
    ("delay_ms", "attenuation_db", "of_ten"),
    [(80, 12, 7), (250, 30, 10), (600, 20, 9)],
)
def test_a_word_over_the_answer_is_heard_soon_after_it_would_be_without_the_answer(
    delay_ms: float, attenuation_db: float, of_ten: int, spoken: dict[str, Clip], vad: Path
) -> None:
    words = [
        word(spoken[name])
        for name in ("librivox-0870", "librivox-0890", "librivox-0920", "librivox-0930", "jfk")
    ]

    async def delays_ms(room: Room, own_voice: Samples) -> list[float | None]:
        ears = Ears(room, vad)
        speaking = asyncio.create_task(speak(room, own_voice))
        await asyncio.sleep(6)
        found: list[float | None] = []
        for said in words * 2:
            at_ns = room.say(loud(said, -26))
            await asyncio.sleep(1.1)
            heard_ns = ears.heard_at_ns(at_ns, clock())
            found.append(None if heard_ns is None else (heard_ns - at_ns) / 1e6)
            await asyncio.sleep(1.9)
        await speaking
        await ears.close()
        return found

    @virtual_time
    async def run() -> None:
        own_voice = spoken["two_cities"].audio.samples[: 37 * HEARING_RATE_HZ]
        alone = await delays_ms(Room(clock=clock, attenuation_db=float("inf")), own_voice)
        over = await delays_ms(
            Room(clock=clock, delay_ms=delay_ms, attenuation_db=attenuation_db, reverberant=True), own_voice
        )
        later = [there - without for there, without in zip(over, alone, strict=True) if there and without]
        print(
            f"{delay_ms} ms, {attenuation_db} dB: later by",
            [round(ms) for ms in sorted(later)],
            "of",
            len(words) * 2,
        )
        assert len(later) >= of_ten
        assert np.median(later) <= 100
        assert np.percentile(later, 75) <= 200

    run()
