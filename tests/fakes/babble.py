"""Something like speech, made of arithmetic: syllables of noise and of tone, with pauses between."""

from __future__ import annotations

import numpy as np

from ondam.types import HEARING_RATE_HZ, Samples


def babble(seconds: float, *, dbfs: float = -20, seed: int = 1, rate_hz: int = HEARING_RATE_HZ) -> Samples:
    """Four syllables a second, every fifth of them silent; ``dbfs`` is the level of the whole."""
    random = np.random.default_rng(seed)
    syllable = rate_hz // 4
    count = -(-round(seconds * rate_hz) // syllable)
    times = np.arange(syllable) / rate_hz
    pieces = []
    for number in range(count):
        pitch = random.uniform(90, 220)
        # A pitch that glides, as it does in speech; a steady one would look like its own echo.
        phase = 2 * np.pi * pitch * (times + random.uniform(-1, 1) * times**2)
        tones = sum(np.sin(phase * k + random.uniform(0, 6)) / k for k in range(1, 20))
        piece = (tones + random.normal(0, 1, syllable)) * np.hanning(syllable)
        pieces.append(piece * (0 if number % 5 == 4 else 1))
    whole = np.concatenate(pieces)[: round(seconds * rate_hz)]
    whole *= 32768 * 10 ** (dbfs / 20) / np.sqrt(np.mean(whole**2))
    return np.clip(np.rint(whole), -32768, 32767).astype(np.int16)


def noise(seconds: float, *, dbfs: float = -80, seed: int = 2) -> Samples:
    """What a quiet room gives."""
    random = np.random.default_rng(seed)
    count = round(seconds * HEARING_RATE_HZ)
    return np.rint(random.normal(0, 32768 * 10 ** (dbfs / 20), count)).astype(np.int16)
