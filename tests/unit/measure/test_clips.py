from __future__ import annotations

import io
import wave

import pytest

from ondam.measure.clips import clips
from ondam.types import Language


def test_there_are_eight_english_questions_of_different_length() -> None:
    shipped = clips("en")
    assert len(shipped) >= 8
    assert len({clip.words for clip in shipped}) == len(shipped)
    lengths = [seconds(clip.wav) for clip in shipped]
    assert max(lengths) > 1.5 * min(lengths)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_clips_are_small_and_at_the_rate_that_is_heard(language: Language) -> None:
    for clip in clips(language):
        with wave.open(io.BytesIO(clip.wav)) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        assert seconds(clip.wav) < 6


def seconds(wav: bytes) -> float:
    with wave.open(io.BytesIO(wav)) as file:
        return float(file.getnframes() / file.getframerate())
