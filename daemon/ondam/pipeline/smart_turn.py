"""Smart-turn v3.2: has the user finished, judged by how it sounds. ONNX, one CPU thread, 23 languages.

Input is the last 8 s of the user's turn at 16 kHz, zeros in front, normalised to zero mean and unit variance,
as Whisper's log-mel features (80 bands, 25 ms windows every 10 ms; Radford et al. 2022, section 2.2).
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from ondam.memory import give_back
from ondam.types import HEARING_RATE_HZ, Samples

Floats = npt.NDArray[np.float32]

WINDOW = 8 * HEARING_RATE_HZ
FFT = 400
HOP = 160
BANDS = 80
FRAMES = WINDOW // HOP


class SmartTurn:
    """Probability that an utterance is complete. Takes about 50 ms, in a thread of its own."""

    def __init__(self, model: Path) -> None:
        self._thread = ThreadPoolExecutor(1, "smart-turn")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Without an arena the memory of one inference is given back instead of kept for the next.
        options.enable_cpu_mem_arena = False
        self._session = onnxruntime.InferenceSession(
            str(model), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._bands = _mel_bands()
        self._window = np.hanning(FFT + 1)[:-1].astype(np.float32)

    async def __call__(self, samples: Samples) -> float:
        """``samples``: the user's turn so far, int16 at 16 kHz, ending now."""
        complete = await asyncio.get_running_loop().run_in_executor(self._thread, self.probability, samples)
        self._thread.submit(give_back)
        return complete

    def probability(self, samples: Samples) -> float:
        """The same, in this thread."""
        features = self.features(samples)
        (probability,) = self._session.run(None, {"input_features": features[None]})
        return float(probability[0, 0])

    def features(self, samples: Samples) -> Floats:
        """Log-mel features, shape (80, 800)."""
        last = samples[-WINDOW:].astype(np.float32) / np.float32(32768)
        sound = np.zeros(WINDOW, np.float32)
        if len(last):
            sound[-len(last) :] = last
        sound = (sound - sound.mean()) / np.sqrt(sound.var() + np.float32(1e-7))
        padded = np.pad(sound, FFT // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, FFT)[::HOP][:FRAMES]
        power = np.square(np.abs(np.fft.rfft(frames * self._window, axis=1))).astype(np.float32)
        log_mel = np.log10(np.maximum(power @ self._bands.T, 1e-10)).T
        log_mel = np.maximum(log_mel, log_mel.max() - 8.0)
        scaled: Floats = ((log_mel + 4.0) / 4.0).astype(np.float32)
        return scaled


def _mel_bands() -> Floats:
    """Triangular filters on Slaney's mel scale with equal area, 0 Hz to 8 kHz; shape (80, 201)."""
    frequencies = np.linspace(0, HEARING_RATE_HZ / 2, FFT // 2 + 1)
    edges = _hz(np.linspace(_mel(0.0), _mel(HEARING_RATE_HZ / 2), BANDS + 2))
    slopes = edges[:, None] - frequencies[None, :]
    widths = np.diff(edges)
    down = -slopes[:-2] / widths[:-1, None]
    up = slopes[2:] / widths[1:, None]
    bands = np.maximum(0.0, np.minimum(down, up)) * (2.0 / (edges[2:] - edges[:-2]))[:, None]
    return bands.astype(np.float32)


LINEAR_BELOW_HZ = 1000.0
HZ_PER_MEL = 200.0 / 3
LOG_STEP = np.log(6.4) / 27.0
"""Slaney's Auditory Toolbox (1998): linear below 1 kHz, 27 mels for a factor of 6.4 above."""


def _mel(hz: float) -> float:
    if hz < LINEAR_BELOW_HZ:
        return hz / HZ_PER_MEL
    return float(LINEAR_BELOW_HZ / HZ_PER_MEL + np.log(hz / LINEAR_BELOW_HZ) / LOG_STEP)


def _hz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    knee = LINEAR_BELOW_HZ / HZ_PER_MEL
    linear = mels * HZ_PER_MEL
    log = LINEAR_BELOW_HZ * np.exp(LOG_STEP * (np.maximum(mels, knee) - knee))
    return np.where(mels < knee, linear, log)
