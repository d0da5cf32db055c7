"""Speech to text on recordings of people, short and longer than Whisper's window."""

from __future__ import annotations

import re

import jiwer
import pytest
from tests.engine_contract.exercise import Hearing
from tests.engine_contract.launched import Launched
from tests.fakes.human_clips import human_clips

from ondam.clients.wyoming_stt import WyomingRecognizer


def words(text: str) -> str:
    plain = re.sub(r"[^a-z' ]", "", text.lower().replace("-", " "))
    return " ".join({"mr": "mister"}.get(word, word) for word in plain.split())


@pytest.mark.timeout(300)
async def test_people_are_understood_and_nothing_of_44_seconds_is_lost(
    engine: Launched, hearing: Hearing
) -> None:
    hearing.understands()
    if hearing.language != "en":
        pytest.skip("there are no recordings in its language")
    clips = human_clips()
    recognizer = WyomingRecognizer(engine.address, timeout_s=60)
    heard = [words((await recognizer.transcribe(clip.audio, "en")).text) for clip in clips]
    wrong = jiwer.process_words([words(clip.text) for clip in clips], heard)
    # whisper-base has 1 to 3 of the 212 words wrong, whatever its window; half a minute lost would be 80.
    assert wrong.wer <= 0.03, heard
    # In no clip is anything said twice, or left out.
    assert wrong.deletions + wrong.insertions <= 3, heard
