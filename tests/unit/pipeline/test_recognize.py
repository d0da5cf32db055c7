"""B13: what a recognizer writes for silence and noise is no turn; what people say is."""

from __future__ import annotations

import numpy as np
import pytest

from ondam.pipeline.ports import Transcript
from ondam.pipeline.recognize import level_db, meant
from ondam.types import Audio

SPEECH = Audio((8000 * np.sin(np.arange(16_000) * 0.2)).astype(np.int16), 16_000)
ROOM = Audio(np.random.default_rng(1).normal(0, 20, 16_000).astype(np.int16), 16_000)


@pytest.mark.parametrize(
    "text",
    [
        "시청해주셔서 감사합니다!",
        "MBC 뉴스 김철수입니다.",
        "한글자막 by 한효정",
        "구독과 좋아요 부탁드립니다",
        "다음 영상에서 만나요",
        "(keyboard clicking)",
        "네 네 네 " * 30,
    ],
)
def test_b13_a_sign_off_is_no_turn_however_loud(text: str) -> None:
    assert meant(Transcript(text), SPEECH, "ko") == ""


def test_b13_thanks_count_when_they_were_spoken() -> None:
    assert meant(Transcript("감사합니다.", no_speech_prob=0.02), SPEECH, "ko") == "감사합니다."
    assert meant(Transcript("감사합니다.", no_speech_prob=0.02), ROOM, "ko") == ""
    assert meant(Transcript("감사합니다.", no_speech_prob=0.9), SPEECH, "ko") == ""


def test_b13_a_real_sentence_keeps_its_words_and_loses_the_tail() -> None:
    text = "내일 회의 시간 알려 줘. 시청해주셔서 감사합니다."
    assert meant(Transcript(text), SPEECH, "ko") == "내일 회의 시간 알려 줘."


def test_b13_spoken_agreement_with_thanks_is_a_turn() -> None:
    assert meant(Transcript("그래요 감사합니다", no_speech_prob=0.1), SPEECH, "ko") == "그래요 감사합니다"


def test_levels_are_of_the_loudest_ten_milliseconds() -> None:
    assert level_db(np.zeros(16_000, np.int16)) == float("-inf")
    assert level_db(np.full(1600, 3277, np.int16)) == pytest.approx(-20.0, abs=0.01)
