"""Changes the rate of a stream of samples. State is kept, so nothing is lost where blocks meet.

libsamplerate's ``sinc_fastest``: 53 µs for 10 ms of 48 kHz, and it holds back 1.2 ms (soxr: 7 µs, but 21 ms).
Where the rate falls by a whole factor, a filter of our own: 14 µs, 1.2 ms.
Output is in phase: output sample k is the input at time k / rate_out, it only arrives a little later.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import samplerate

from ondam.audio.decimate import Decimator
from ondam.types import Audio, Samples

FAST = "sinc_fastest"
"""libsamplerate's name for it."""

QUIET_HZ = 5
"""After a fifth of a second of exact zeros (a muted or idle device) zeros are not computed any more."""


class Converter(Protocol):
    """What changes the rate of one stream."""

    def process(self, samples: Samples) -> Samples:
        """``samples`` in; whatever is ready out."""

    def reset(self) -> None:
        """The stream starts over."""


class LibSampleRate:
    """Any rate to any other."""

    def __init__(self, ratio: float, converter: str) -> None:
        self._ratio = ratio
        self._library = samplerate.Resampler(converter, 1)  # one channel

    def process(self, samples: Samples) -> Samples:
        """See ``Converter``."""
        return _clipped(self._library.process(to_float(samples), self._ratio))

    def reset(self) -> None:
        """See ``Converter``."""
        self._library.reset()


class Resampler:
    """One mono stream from ``rate_in_hz`` to ``rate_out_hz``. Equal rates pass through untouched."""

    def __init__(self, rate_in_hz: int, rate_out_hz: int, converter: str = FAST) -> None:
        self.rate_in_hz = rate_in_hz
        self.rate_out_hz = rate_out_hz
        self._taken = 0
        self._given = 0
        self._zeros = 0
        """Samples of exact silence in a row."""
        self._converter: Converter | None = None
        if rate_in_hz != rate_out_hz:
            factor, rest = divmod(rate_in_hz, rate_out_hz)
            if rest or converter != FAST:
                self._converter = LibSampleRate(rate_out_hz / rate_in_hz, converter)
            else:
                self._converter = Decimator(factor)

    def process(self, samples: Samples) -> Samples:
        """``samples`` (n,) in; whatever is ready (m,) out, m may be 0. Output k is at k / rate_out."""
        self._taken += len(samples)
        if self._converter is None:
            self._given += len(samples)
            return samples
        # The last sample alone mostly tells: a look at all of them takes ten times as long.
        sounds = len(samples) and (samples[-1] or samples.any())
        self._zeros = 0 if sounds else self._zeros + len(samples)
        whole, rest = divmod(len(samples) * self.rate_out_hz, self.rate_in_hz)
        if not rest and self._zeros > self.rate_in_hz // QUIET_HZ:
            # The filter holds nothing but zeros, and a whole number of samples leaves its phase where it is.
            self._given += whole
            return np.zeros(whole, np.int16)
        out = self._converter.process(samples)
        self._given += len(out)
        return out

    def finish(self) -> Samples:
        """What was held back, so that as much time has come out as went in. The stream starts over."""
        # Half up: as many samples as the input's length holds at the new rate.
        owed = (2 * self._taken * self.rate_out_hz + self.rate_in_hz) // (2 * self.rate_in_hz) - self._given
        self._taken = self._given = 0
        if self._converter is None:
            return np.zeros(0, np.int16)
        if owed <= 0:
            self._converter.reset()
            return np.zeros(0, np.int16)
        # libsamplerate's own end-of-input loses the last half filter; silence pushes it out instead.
        silence = np.zeros(self.rate_in_hz // 50 + 1, np.int16)
        pieces: list[Samples] = []
        while sum(map(len, pieces)) < owed:
            pieces.append(self._converter.process(silence))
        self._converter.reset()
        return np.concatenate(pieces)[:owed]


def resampled(audio: Audio, rate_hz: int) -> Audio:
    """The whole of ``audio`` at ``rate_hz``."""
    if audio.rate_hz == rate_hz:
        return audio
    stream = Resampler(audio.rate_hz, rate_hz, "sinc_medium")
    return Audio(np.concatenate([stream.process(audio.samples), stream.finish()]), rate_hz)


def mixed(frames: npt.NDArray[np.int16]) -> Samples:
    """``frames`` (n, channels) as mono (n,): the mean of the channels, so that nothing can clip."""
    if frames.shape[1] == 1:
        return frames[:, 0]
    mono: Samples = np.rint(frames.mean(axis=1, dtype=np.float32)).astype(np.int16)
    return mono


def to_float(samples: Samples) -> npt.NDArray[np.float32]:
    """int16 as ±1.0."""
    return samples.astype(np.float32) / np.float32(32768)


def to_int16(samples: npt.NDArray[np.float32]) -> Samples:
    """±1.0 as int16; what is louder is clipped, what is no number is silence."""
    return _clipped(np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0))


def _clipped(samples: npt.NDArray[np.float32]) -> Samples:
    """The hundred-times-a-second half of ``to_int16``: 3 µs for 10 ms, where a look for NaN takes 9 more."""
    scaled = samples * np.float32(32768)
    np.rint(scaled, out=scaled)
    np.minimum(scaled, np.float32(32767), out=scaled)
    np.maximum(scaled, np.float32(-32768), out=scaled)
    return scaled.astype(np.int16)
