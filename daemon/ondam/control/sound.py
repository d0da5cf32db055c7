"""Sound in requests and answers, in memory only: what is uploaded is never written to a disk."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import soundfile

from ondam.audio.wav import mono_blocks, usable_rate
from ondam.errors import ControlError
from ondam.messages import Phrase
from ondam.types import Audio, Samples

UNKNOWN_LENGTH = 0xFFFF_FFFF
"""What a WAV header says whose end is not known yet (ffmpeg and OpenAI write the same)."""


def decode(data: bytes, most_samples: int) -> Audio:
    """Whatever libsndfile reads, as mono at its own rate.

    ControlError when there is none in it, or more than ``most_samples`` (a little FLAC can be hours).
    """
    pieces: list[Samples] = []
    taken = 0
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as sound:
            rate_hz = int(sound.samplerate)
            if not usable_rate(rate_hz):
                raise ControlError("control_no_sound", reason=Phrase("reason_rate", rate=rate_hz))
            for piece in mono_blocks(sound):
                taken += len(piece)
                if taken > most_samples:
                    raise ControlError("control_sound_too_long", seconds=round(most_samples / rate_hz))
                pieces.append(piece)
    except soundfile.LibsndfileError as error:
        raise ControlError("control_no_sound", reason=error.error_string) from error
    if not pieces:
        raise ControlError("control_no_sound", reason=Phrase("reason_no_samples"))
    return Audio(np.concatenate(pieces), rate_hz)


def encode(audio: Audio) -> bytes:
    """``audio`` as a 16-bit mono WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(audio.rate_hz)
        sound.writeframes(pcm(audio.samples))
    return file.getvalue()


def pcm(samples: Samples) -> bytes:
    """16-bit little-endian."""
    return samples.astype("<i2").tobytes()


def open_header(rate_hz: int) -> bytes:
    """The 44 bytes before the samples of a mono 16-bit WAV of unknown length."""
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", UNKNOWN_LENGTH, b"WAVE"),
        *(b"fmt ", 16, 1, 1, rate_hz, 2 * rate_hz, 2, 16),
        *(b"data", UNKNOWN_LENGTH),
    )
