"""How late the echo is: what was played against what is heard, by correlation. Pure.

A generalised cross-correlation with the smoothed coherence transform (Carter, Nuttall and Cable, 1973): both
spectra are flattened, so that the echo of speech is a single sharp peak. Spectra are accumulated, so that
an echo far below the room's noise shows after a few seconds, and a user who speaks meanwhile does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ondam.types import HEARING_RATE_HZ, Samples

EARLY = HEARING_RATE_HZ // 4
"""Samples by which a device may tell too late a time for what it plays: the echo seems to come before it."""

LATE = HEARING_RATE_HZ
"""The latest echo that is looked for."""

HOP = HEARING_RATE_HZ // 2
"""Samples of the microphone that are compared at once."""

SIZE = 1 << 15
"""Points of the transforms; at least EARLY + HOP + LATE."""

LOW, HIGH = 200 * SIZE // HEARING_RATE_HZ, 6000 * SIZE // HEARING_RATE_HZ
"""Bins that are used: below is hum, above is hardly any voice."""

KEPT = 0.85
"""Of what was accumulated, with each hop: a memory of 3 s of speech."""

SURE = 20.0
"""Height of the peak over the noise around it, in its standard deviations. Echoes reach 20 to 300. Without
one, a user who speaks at the same time reached 18 in 56 pairs of recordings of people, noise alone 8 ..."""

SURE_AT_FIRST = 90.0
"""... but 72, 34 and 19 at the first three looks, where chance has not been averaged out: over the number of
looks, this is needed."""

NOTHING = 8.0
"""No peak of this height after ``ENOUGH`` hops: there is no echo."""

ENOUGH = 8
"""Hops: 4 s of our own voice."""

SAME = HEARING_RATE_HZ * 3 // 1000
"""Samples by which two findings of the same echo may differ."""

AGREEING, AGREEING_OTHERWISE = 2, 4
"""Sure looks in a row that make a finding; that overthrow another one. Chance may fool two."""

ACTIVE = 30.0
"""Root mean square of a hop (of 32768) from which something was played in it: -61 dBFS."""


@dataclass(frozen=True, slots=True)
class Delay:
    """``samples`` at 16 kHz after what was played its echo is heard; below 0, seemingly before."""

    samples: int
    confidence: float
    """See ``SURE``."""

    @property
    def ms(self) -> float:
        """The same in milliseconds."""
        return self.samples * 1000 / HEARING_RATE_HZ


class DelayEstimator:
    """Fed with both sides of the same moment, block by block; every half second it looks. 1.5 ms then."""

    def __init__(self) -> None:
        self._window = np.hanning(HOP)
        self._lags = np.arange(-EARLY, LATE)
        self.forget()

    def forget(self) -> None:
        """Another device, another room."""
        self._cross: npt.NDArray[np.complex128] = np.zeros(HIGH - LOW, np.complex128)
        self._heard_power: npt.NDArray[np.float64] = np.zeros(HIGH - LOW)
        self._played_power: npt.NDArray[np.float64] = np.zeros(HIGH - LOW)
        self._latest: Delay | None = None
        self._agreeing = 0
        """Sure looks in a row that saw the same."""
        self.hops = 0
        """How often it looked while something was played."""
        self.found: Delay | None = None
        """The echo, from when looks in a row saw the same; None while there is none."""
        self.resume()

    def resume(self) -> None:
        """After a pause in which nothing was given, and nothing was played for as long as ``LATE``."""
        self._heard: Samples = np.zeros(HOP + EARLY, np.int16)
        self._played: Samples = np.zeros(LATE + HOP + EARLY, np.int16)
        self._new: list[tuple[Samples, Samples]] = []
        self._new_samples = 0

    @property
    def absent(self) -> bool:
        """Whether enough was played, and nothing of it is heard."""
        return self.hops >= ENOUGH and self._latest is not None and self._latest.confidence < NOTHING

    @property
    def suspected(self) -> bool:
        """Whether the last look saw an echo, which may be chance."""
        return self.hops >= ENOUGH and self._latest is not None and self._latest.confidence >= SURE

    def observe(self, heard: Samples, played: Samples) -> bool:
        """What was heard and what was played at the same time, as the devices tell it; equally long.

        True when it looked: ``found`` and ``absent`` may have changed.
        """
        self._new.append((heard, played))
        self._new_samples += len(heard)
        if self._new_samples < HOP:
            return False
        self._heard = np.concatenate([self._heard, *(h for h, _ in self._new)])[-HOP - EARLY :]
        self._played = np.concatenate([self._played, *(p for _, p in self._new)])[-LATE - HOP - EARLY :]
        self._new.clear()
        self._new_samples = 0
        return self._look()

    def _look(self) -> bool:
        recent = self._played[-HOP - EARLY : -EARLY].astype(np.float64)
        if np.sqrt(np.mean(recent**2)) < ACTIVE:
            return False
        # Every hop counts alike, so that a user who speaks up outweighs nothing.
        loudness = max(1.0, float(np.sqrt(np.mean(self._heard[:HOP].astype(np.float64) ** 2))))
        heard = np.fft.rfft(self._heard[:HOP] * (self._window / loudness), SIZE)[LOW:HIGH]
        played = np.fft.rfft(self._played.astype(np.float64), SIZE)[LOW:HIGH]
        self._cross = KEPT * self._cross + heard * np.conj(played)
        self._heard_power = KEPT * self._heard_power + np.abs(heard) ** 2
        self._played_power = KEPT * self._played_power + np.abs(played) ** 2
        self.hops += 1
        self._find()
        return True

    def _find(self) -> None:
        scale = np.sqrt(self._heard_power * self._played_power)
        least = 1e-9 * float(scale.max())
        if least == 0:  # a microphone that gives exact zeros hears no echo
            self._latest, self.found = Delay(0, 0.0), None
            return
        flat = np.zeros(SIZE // 2 + 1, np.complex128)
        flat[LOW:HIGH] = self._cross / (scale + least)
        height = np.abs(np.fft.irfft(flat, SIZE)[(self._lags - LATE) % SIZE])
        peak = int(height.argmax())
        # Of a normal distribution the median of absolute values is 0.6745 standard deviations.
        noise = float(np.median(height)) / 0.6745
        before, self._latest = self._latest, Delay(peak - EARLY, float(height[peak]) / noise)
        if self._latest.confidence < max(SURE, SURE_AT_FIRST / self.hops):
            if self.absent:
                self.found = None
            self._agreeing = 0
            return
        same = before is not None and abs(before.samples - self._latest.samples) <= SAME
        self._agreeing = self._agreeing + 1 if same and self._agreeing else 1
        known = self.found is not None and abs(self.found.samples - self._latest.samples) <= SAME
        if known or self._agreeing >= (AGREEING if self.found is None else AGREEING_OTHERWISE):
            self.found = self._latest
