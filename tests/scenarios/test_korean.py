"""A Korean turn runs the same way. Nothing is claimed about recognition: there is only espeak's Korean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ondam.control.sound import decode
from ondam.measure.clips import clips
from tests.scenarios.house import House, engine

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]


async def test_a_korean_question_is_answered_by_the_korean_voice_with_korean_messages(tmp_path: Path) -> None:
    house = House(tmp_path / "집 한글", {"language": "ko"})
    house.open()
    try:
        status = await house.ready()
        assert status["language"] == "ko"
        assert [e["name"] for e in status["engines"] if e["stage"] == "tts"] == ["espeak"]
        async with house.client() as client:
            turn, wav = await client.wav_turn(clips("ko")[0].wav, "ko", reset_history=True)
            assert turn["outcome"] in {"answered", "no_answer"}
            assert any("가" <= sign <= "힣" for sign in turn["transcript"] or "")
            assert np.abs(decode(wav, 10**8).samples).max() > 1000
            said = await client.say("회의는 3시에 시작합니다.", "ko")
            assert said["audio"]["seconds"] > 1
        assert engine(status, "espeak")["loads"] == 0
    finally:
        assert house.close() == 0
