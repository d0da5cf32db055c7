"""Sound files: read by libsndfile (any PCM or float WAV, also FLAC, Ogg, MP3), written as 16-bit mono WAV."""

from __future__ import annotations

import os
import stat
import tempfile
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ondam.audio.resample import to_int16
from ondam.errors import AudioError
from ondam.types import Audio, Samples

if TYPE_CHECKING:
    import soundfile

FRAMES_AT_ONCE = 1 << 16

LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 1_000, 768_000
"""Of sound that anybody recorded; a header that says otherwise is damaged."""


def usable_rate(rate_hz: int) -> bool:
    """Whether sound at this rate can be resampled and makes sense."""
    return LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ


def regular(path: Path) -> Path:
    """``path``, where it is a file like any other. Raises AudioError.

    Pipes and devices are refused: who opens a pipe waits until somebody writes, and a device may never end.
    """
    try:
        kind = path.stat().st_mode
    except FileNotFoundError as error:
        raise AudioError("sound_file_missing", path=path) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AudioError("sound_file_unreadable", path=path, reason=reason) from error
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise AudioError("sound_file_special", path=path)
    return path


def read_wav(path: Path) -> Audio:
    """The file as mono, at its own rate. Raises AudioError when there is no sound to be had from it.

    A file that ends early (a copy broken off, a recorder that was killed) gives the samples it holds.
    """
    import soundfile  # 5 MB that a daemon with a sound card never needs

    regular(path)
    try:
        with path.open("rb") as file:
            start = file.read(24)
            file.seek(0)
            with soundfile.SoundFile(file) as sound:
                rate_hz = int(sound.samplerate)
                samples = np.concatenate([np.zeros(0, np.int16), *mono_blocks(sound)])
    except FileNotFoundError as error:
        raise AudioError("sound_file_missing", path=path) from error
    except OSError as error:
        raise AudioError("sound_file_unreadable", path=path, reason=error.strerror or error) from error
    except soundfile.LibsndfileError as error:
        if not start:
            raise AudioError("sound_file_empty", path=path) from error
        shown = "".join(c if c.isprintable() else "·" for c in start.decode("latin-1"))
        raise AudioError("sound_file_broken", path=path, start=shown, reason=error.error_string) from error
    if not len(samples):
        raise AudioError("sound_file_empty", path=path)
    if not usable_rate(rate_hz):
        raise AudioError("sound_file_rate", path=path, rate=rate_hz)
    return Audio(samples, rate_hz)


def mono_blocks(sound: soundfile.SoundFile) -> Iterator[Samples]:
    """What is left in ``sound``, mixed down, in blocks of at most ``FRAMES_AT_ONCE`` samples."""
    while len(frames := sound.read(FRAMES_AT_ONCE, dtype="float32", always_2d=True)):
        # Damaged float files hold NaN: to_int16 makes it silence, but a mean would spread it first.
        yield to_int16(np.nan_to_num(frames, nan=0.0, posinf=0.0, neginf=0.0).mean(axis=1))


def write_wav(path: Path, audio: Audio) -> None:
    """``audio`` as a 16-bit mono WAV. The file appears whole or not at all. Raises AudioError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                with wave.open(file, "wb") as sound:
                    sound.setnchannels(1)
                    sound.setsampwidth(2)
                    sound.setframerate(audio.rate_hz)
                    sound.writeframes(audio.samples.astype("<i2").tobytes())
                file.flush()
                os.fsync(file.fileno())
            # mkstemp makes it private; a recording is the user's like any other file of theirs.
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(path)
        except BaseException:  # whatever ended it, half a file stays nowhere
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise AudioError("sound_file_unwritable", path=path, reason=error.strerror or error) from error


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
