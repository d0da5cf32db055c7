"""Lowers a rate by a whole factor, as a microphone's 48 kHz to 16 kHz.

For this one case, which runs a hundred times a second for ever, a filter of our own takes a third of what
libsamplerate's general one does and lets 0.7 kHz more of the voice through: docs/decisions/decimation.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ondam.types import Samples

REACH = 19
"""Output samples before and after one that its filter reaches: 1.2 ms at 16 kHz, so much is held back."""

CUTOFF = 0.475
"""Of the output rate: half the sound is left at 7.6 kHz for 16 kHz. Flat to 6.8, -80 dB from 9 kHz on."""

BETA = 7.86
"""Kaiser's window for 80 dB (Kaiser 1974)."""

AT_ONCE = 16
"""Output samples made by one column of a product, all of one row: rows of 640 bytes stay in the cache."""


class Decimator:
    """One mono stream; keeps what blocks need of each other. In phase: output k is input k * ``factor``."""

    def __init__(self, factor: int) -> None:
        self._factor = factor
        taps = _low_pass(factor)
        self._taps = len(taps)
        self._row = (AT_ONCE - 1) * factor + self._taps
        self._filter = np.zeros((self._row, AT_ONCE), np.float32)
        for k in range(AT_ONCE):
            self._filter[k * factor : k * factor + self._taps, k] = taps
        self._left: npt.NDArray[np.float32]
        self.reset()

    def reset(self) -> None:
        """The stream starts over."""
        self._left = np.zeros(REACH * self._factor, np.float32)

    def process(self, samples: Samples) -> Samples:
        """``samples`` (n,) in; whatever is ready (m,) out."""
        # int16 values: no scale to change and change back.
        have = np.concatenate([self._left, samples], dtype=np.float32)
        count = (len(have) - self._taps) // self._factor + 1
        if count <= 0:
            self._left = have
            return np.zeros(0, np.int16)
        self._left = have[count * self._factor :].copy()
        rows = -(-count // AT_ONCE)
        missing = (rows - 1) * AT_ONCE * self._factor + self._row - len(have)
        if missing > 0:
            have = np.concatenate([have, np.zeros(missing, np.float32)])
        # Rows overlap: each begins AT_ONCE outputs after the one before it.
        overlapping: npt.NDArray[np.float32] = np.ndarray(
            (rows, self._row), np.float32, have, strides=(AT_ONCE * self._factor * 4, 4)
        )
        out = (overlapping.copy() @ self._filter).ravel()[:count]
        np.rint(out, out=out)
        np.minimum(out, np.float32(32767), out=out)
        np.maximum(out, np.float32(-32768), out=out)
        made: Samples = out.astype(np.int16)
        return made


def _low_pass(factor: int) -> npt.NDArray[np.float32]:
    reach = REACH * factor
    cutoff = CUTOFF / factor
    taps = 2 * cutoff * np.sinc(2 * cutoff * np.arange(-reach, reach + 1)) * np.kaiser(2 * reach + 1, BETA)
    gain_one: npt.NDArray[np.float32] = (taps / taps.sum()).astype(np.float32)
    return gain_one
