"""A room without sound cards: a speaker, a microphone that hears it later, and somebody who talks."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence

import numpy as np
import numpy.typing as npt

from ondam.audio import WavMicrophone, WavSpeaker
from ondam.audio.faults import Clock, Sleep
from ondam.audio.played import Played, sample_at
from ondam.audio.resample import resampled
from ondam.pipeline.ports import Reference
from ondam.types import HEARING_RATE_HZ, Audio, Block, Nanoseconds, Samples


class RoomSpeaker(WavSpeaker):
    """Plays into the room, and tells what it plays as any speaker does."""

    def __init__(self, clock: Clock, sleep: Sleep, over_reports_ms: float) -> None:
        super().__init__(clock=clock, sleep=sleep)
        self.name = "room"
        self.over_reports_ns = round(over_reports_ms * 1e6)
        """By how much later than the truth it says that something is heard."""
        self._told: deque[Reference] = deque()
        self._to_room: list[Reference] = []
        super().reference()

    def reference(self) -> Sequence[Reference]:
        self._collect()
        told = [Reference(one.at_ns + self.over_reports_ns, one.samples, one.rate_hz) for one in self._told]
        self._told.clear()
        return told

    def to_room(self) -> list[Reference]:
        """What was heard since the last call."""
        self._collect()
        heard, self._to_room = self._to_room, []
        return heard

    def _collect(self) -> None:
        pieces = super().reference()
        self._told.extend(pieces)
        self._to_room.extend(pieces)


class RoomMicrophone(WavMicrophone):
    """Hears the room."""

    def __init__(self, room: Room, clock: Clock, sleep: Sleep) -> None:
        super().__init__(None, clock=clock, sleep=sleep)
        self.name = "room"
        self._room = room

    async def blocks(self) -> AsyncGenerator[Block, None]:
        async for block in super().blocks():
            yield Block(self._room.heard(block), block.first, block.at_ns)


class Room:
    """``speaker`` and ``microphone`` for a session, in real or virtual time. ``say`` talks in it.

    What the speaker plays is heard ``delay_ms`` after it passed the converter, ``attenuation_db`` quieter,
    with a tail where ``reverberant``; over noise of ``noise_dbfs``. Both figures may be changed at any time;
    an attenuation of ``inf`` is a headset.
    """

    def __init__(
        self,
        *,
        delay_ms: float = 80,
        attenuation_db: float = 12,
        noise_dbfs: float = -80,
        reverberant: bool = False,
        over_reports_ms: float = 0,
        clock: Clock = time.monotonic_ns,
        sleep: Sleep = asyncio.sleep,
        seed: int = 4711,
    ) -> None:
        """``delay_ms``: at least 5, so that it is known what is played."""
        self.delay_ms = delay_ms
        self.attenuation_db = attenuation_db
        self.noise_dbfs = noise_dbfs
        self.speaker = RoomSpeaker(clock, sleep, over_reports_ms)
        self.microphone = RoomMicrophone(self, clock, sleep)
        self._clock = clock
        self._random = np.random.default_rng(seed)
        self._played = Played()
        self._response = _tail(self._random) if reverberant else np.ones(1)
        self._said: list[tuple[int, Samples]] = []
        """Numbers of first samples, and what is said from there on."""

    def say(self, audio: Audio, at_ns: Nanoseconds | None = None) -> Nanoseconds:
        """Somebody says ``audio`` at ``at_ns``, by default now, over whatever else sounds. Returns when."""
        begins_ns = self._clock() if at_ns is None else at_ns
        self._said.append((sample_at(begins_ns), resampled(audio, HEARING_RATE_HZ).samples))
        return begins_ns

    def heard(self, block: Block) -> Samples:
        """What the microphone hears during ``block``."""
        first, count = sample_at(block.at_ns), len(block.samples)
        mixed = self._random.normal(0, 32768 * 10 ** (self.noise_dbfs / 20), count)
        mixed += self._echo(first, count)
        for begin, samples in self._said:
            piece = samples[max(0, first - begin) : max(0, first + count - begin)]
            at = max(0, begin - first)
            mixed[at : at + len(piece)] += piece
        self._said = [(begin, said) for begin, said in self._said if begin + len(said) > first + count]
        return np.clip(np.rint(mixed), -32768, 32767).astype(np.int16)

    def _echo(self, first: int, count: int) -> npt.NDArray[np.float64]:
        for piece in self.speaker.to_room():
            self._played.add(piece.at_ns, piece.samples, piece.rate_hz)
        before = len(self._response) - 1
        begin = first - round(self.delay_ms * HEARING_RATE_HZ / 1000) - before
        played = self._played.at(begin, count + before)
        if not played.any():
            return np.zeros(count)
        echo: npt.NDArray[np.float64] = np.convolve(played, self._response, "valid")
        return echo * 10 ** (-self.attenuation_db / 20)


def _tail(random: np.random.Generator) -> npt.NDArray[np.float64]:
    """A direct path and 150 ms of decay (60 dB in 0.35 s); all of it as loud as the direct path alone."""
    times = np.arange(HEARING_RATE_HZ * 15 // 100) / HEARING_RATE_HZ
    response = random.normal(0, 0.08, len(times)) * 10 ** (-3 * times / 0.35)
    response[0] = 1
    scaled: npt.NDArray[np.float64] = response / np.sqrt((response**2).sum())
    return scaled
