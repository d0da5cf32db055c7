"""Short soft tones that mark what the microphone does now: computed, not files, and always the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from ondam.audio.simulated import SPEAKER_RATE_HZ
from ondam.types import Samples

Cue: TypeAlias = Literal["open", "name", "push", "muted", "pressed", "released"]
"""A mode that was entered, or the button of push to talk."""

PEAK = 0.1
"""Of full scale: 20 dB below it, well under an answer."""

FADE_S = 0.012
"""Raised cosine at both ends of each tone: shorter ones click."""

_TONES: dict[Cue, tuple[tuple[float, float], ...]] = {
    # Up: it hears more than before. Down: it hears less. (Hz, seconds), from C major: C5 E5 G5 C6.
    "open": ((523.25, 0.055), (783.99, 0.065)),
    "name": ((523.25, 0.055), (659.26, 0.065)),
    "push": ((659.26, 0.055), (523.25, 0.065)),
    "muted": ((783.99, 0.055), (523.25, 0.065)),
    "pressed": ((1046.5, 0.06),),
    "released": ((523.25, 0.06),),
}


@lru_cache(maxsize=len(_TONES))
def cue(kind: Cue) -> Samples:
    """The tone for ``kind``: at most 120 ms at 48 kHz, read-only, beginning and ending in silence."""
    whole = np.concatenate([_tone(hz, seconds) for hz, seconds in _TONES[kind]])
    samples: Samples = np.rint(whole * 32_767 * PEAK).astype(np.int16)
    samples.setflags(write=False)
    return samples


def _tone(hz: float, seconds: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Between -1 and 1, shape (seconds * 48,000,)."""
    count = round(seconds * SPEAKER_RATE_HZ)
    fade = round(FADE_S * SPEAKER_RATE_HZ)
    envelope = np.ones(count)
    envelope[:fade] = 0.5 - 0.5 * np.cos(np.pi * np.arange(fade) / fade)
    envelope[-fade:] = envelope[:fade][::-1]
    tone: np.ndarray[tuple[int], np.dtype[np.float64]] = envelope * np.sin(
        2 * np.pi * hz * np.arange(count) / SPEAKER_RATE_HZ
    )
    return tone
