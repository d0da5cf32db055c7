"""A voice that falls away, by its loudness."""

from __future__ import annotations

import numpy as np

from ondam.pipeline.fall import Change, Fall
from ondam.types import Samples


def block(dbfs: float) -> Samples:
    """10 ms at that level."""
    return np.full(160, round(32768 * 10 ** (dbfs / 20)), np.int16)


def hear(fall: Fall, *levels: float, probability: float = 0.5) -> list[Change | None]:
    return [fall.hear(block(level), probability) for level in levels]


def test_thirty_milliseconds_25_db_below_the_loudest_are_a_fall() -> None:
    fall = Fall()
    assert hear(fall, -20, -20, -44, -44, -44) == [None] * 5, "24 dB are none"
    assert hear(fall, -20, -46, -46, -46, -46) == [None, None, None, Change.FELL, None]


def test_a_silence_inside_a_consonant_is_none_while_the_detector_is_sure_of_a_voice() -> None:
    fall = Fall()
    assert hear(fall, -20, -60, -60, -60, probability=0.97) == [None] * 4
    assert hear(fall, -60, probability=0.9) == [Change.FELL]


def test_a_voice_that_is_loud_again_for_20_ms_goes_on() -> None:
    fall = Fall()
    hear(fall, -20, -60, -60, -60)
    assert hear(fall, -30, -60) == [None, None], "one click"
    assert hear(fall, -30, -30) == [None, Change.ROSE]
    assert hear(fall, -60, -60, -60) == [None, None, Change.FELL]


def test_digital_silence_before_any_sound_is_no_fall() -> None:
    assert [Fall().hear(np.zeros(160, np.int16), 0.0) for _ in range(5)] == [None] * 5


def test_another_utterance_may_be_quieter() -> None:
    fall = Fall()
    hear(fall, -10)
    fall.begin()
    assert hear(fall, -40, -40, -40, -40) == [None] * 4
