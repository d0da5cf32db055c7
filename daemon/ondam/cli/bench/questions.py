"""The spoken questions of a run: those that come with Ondam, or a folder of WAVs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ondam.errors import AudioError

if TYPE_CHECKING:
    from ondam.measure.bench import Question
    from ondam.types import Language

LONGEST_CLIP = 10_000_000
"""Samples; those that come with Ondam have a hundredth."""


def questions(folder: Path | None, language: Language) -> list[Question]:
    """From ``folder``, else the shipped ones in ``language``. Raises AudioError."""
    from ondam.audio.resample import resampled
    from ondam.audio.wav import read_wav
    from ondam.control.sound import decode
    from ondam.measure.bench import Question
    from ondam.measure.clips import clips
    from ondam.measure.transcripts import wavs
    from ondam.types import HEARING_RATE_HZ

    if folder is None:
        return [
            Question(
                clip.name, clip.wav, resampled(decode(clip.wav, LONGEST_CLIP), HEARING_RATE_HZ), clip.words
            )
            for clip in clips(language)
        ]
    found = wavs(folder)
    if not found:
        raise AudioError("bench_no_clips", path=folder)
    # Reading it as sound says first what is wrong with one.
    read = ((path, resampled(read_wav(path), HEARING_RATE_HZ)) for path in found)
    return [Question(path.name, path.read_bytes(), audio) for path, audio in read]


def without_words(question: Question) -> Question:
    """A stub hears only how long it was."""
    from dataclasses import replace

    return replace(question, words=None)
