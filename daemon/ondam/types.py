"""Leaf types: the words every layer shares. Imports nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NewType, TypeAlias

import numpy as np
import numpy.typing as npt

Language: TypeAlias = Literal["ko", "en"]
"""Languages Ondam speaks, hears and writes messages in. Korean first."""

Stage: TypeAlias = Literal["stt", "llm", "tts"]
"""What an engine does: speech to text, answer, text to speech."""

Mode: TypeAlias = Literal["open", "name", "push", "muted"]
"""When the microphone counts: always, when called by name, while a button is held, never (it is closed)."""

TurnId = NewType("TurnId", int)
"""A turn's number within its session, counted from 1."""

DraftId = NewType("DraftId", int)
"""An answer's number within its session. A turn may take several: drafts are begun before it is certain that
the user has finished, and dropped when they go on. Every block of audio carries the number of its draft."""

Samples: TypeAlias = npt.NDArray[np.int16]
"""Mono 16-bit samples, shape (n,)."""

Nanoseconds: TypeAlias = int
"""A reading of ``time.monotonic_ns``, or a distance between two."""

HEARING_RATE_HZ = 16_000
"""Everything from capture to recognition is mono at this rate (Silero, Whisper and smart-turn want it)."""


@dataclass(frozen=True, slots=True)
class Audio:
    """A piece of mono sound."""

    samples: Samples
    rate_hz: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate_hz


@dataclass(frozen=True, slots=True)
class Block:
    """What the microphone delivered at once, already at 16 kHz mono.

    ``at_ns`` is when the first sample passed the converter (monotonic clock), ``first`` its running
    number since the stream was opened: consecutive blocks leave no gap and share no sample.
    """

    samples: Samples
    first: int
    at_ns: Nanoseconds
