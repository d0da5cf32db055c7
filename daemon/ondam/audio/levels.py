"""How loud it is, in dBFS: of what is heard, and of what is on its way to the speaker."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ondam.types import Nanoseconds, Samples

FLOOR_DB = -100.0
"""Digital silence, and whatever is not louder: the noise of 16 bits lies at -98."""

WINDOW_S = 0.1


def dbfs(power: float) -> float:
    """``power``: the mean square of int16 samples. A square wave of full scale is 0."""
    return max(FLOOR_DB, 10 * math.log10(power / 32768**2)) if power > 0 else FLOOR_DB


@dataclass(slots=True)
class Meter:
    """Gathers what is heard until somebody asks."""

    _sum: float = 0.0
    _count: int = 0

    def hear(self, samples: Samples) -> None:
        """Mono int16, any number. About 3 µs for 10 ms."""
        heard = samples.astype(np.float32)
        self._sum += float(np.dot(heard, heard))
        self._count += len(samples)

    def take(self) -> float | None:
        """RMS (dBFS) of what was heard since the last time; None where that was nothing."""
        level = dbfs(self._sum / self._count) if self._count else None
        self._sum, self._count = 0.0, 0
        return level


class Sounding(Protocol):
    """What is asked of a ``ports.Speaker``."""

    def heard_at_ns(self, sample: int) -> Nanoseconds | None:
        """When a sample passed the converter."""

    def ends_at_ns(self) -> Nanoseconds | None:
        """When the last sample passes."""


class _Piece(NamedTuple):
    first: int
    power: float


class SpeakerMeter:
    """Remembers how loud what was written is, until it is heard: a speaker is written to a second ahead."""

    def __init__(self, rate_hz: int) -> None:
        self._step = round(rate_hz * WINDOW_S)
        self._pieces: deque[_Piece] = deque(maxlen=256)
        self._heard = 0.0

    def write(self, first: int, samples: Samples) -> None:
        """``samples`` are the speaker's from number ``first`` on."""
        for at in range(0, len(samples), self._step):
            piece = samples[at : at + self._step].astype(np.float32)
            self._pieces.append(_Piece(first + at, float(np.dot(piece, piece)) / len(piece)))

    def take(self, speaker: Sounding, now_ns: Nanoseconds, gain: float = 1.0) -> float:
        """RMS (dBFS) of what passes the converter now at ``gain``; ``FLOOR_DB`` while nothing does."""
        while self._pieces and speaker.heard_at_ns(self._pieces[0].first) is not None:
            self._heard = self._pieces.popleft().power
        if (speaker.ends_at_ns() or 0) <= now_ns:
            self._pieces.clear()  # dropped, and never heard
            self._heard = 0.0
        return dbfs(self._heard * gain**2)
