"""An answer that comes too late is not given: whole turns in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time
from tests.unit.test_session import table, voice

from ondam.types import Stage


@pytest.mark.parametrize("stage", ["stt", "llm", "tts"])
@virtual_time
async def test_a_turn_without_a_sound_is_given_up_told_and_not_remembered(stage: Stage) -> None:
    engines = ScriptedEngines()
    slow = {"stt": "stt_s", "llm": "ttft_s", "tts": "tts_s"}[stage]
    quick = getattr(engines, slow)
    setattr(engines, slow, 1000.0)
    async with table(engines) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        while not any(change.get("code") == "answer_too_late" for change in t.changes):
            await asyncio.sleep(0.1)
        assert engines.running <= 1, "nothing is left but the excuse, where it has to be made"
        setattr(engines, slow, quick)
        if stage == "tts":
            t.session.stop()  # this excuse would have to be made by the voice that is late
        turn = await over
        assert (turn.fault, turn.cause) == ("answer_too_late", "answer_too_late")
        assert turn.outcome == ("stopped" if stage == "tts" else "failed")
        assert t.session.history.exchanges == ()
        await asyncio.sleep(1)
        assert (await t.speak(voice(1.0))).outcome == "answered"
    # The endpoint came 600 ms after the voice's end, the limit is 30 s after that; the question took 1.3 s.
    assert turn.first_audio_ms is None or turn.first_audio_ms == pytest.approx(30_700, abs=150)


@virtual_time
async def test_questions_to_a_slow_model_do_not_pile_up() -> None:
    engines = ScriptedEngines(ttft_s=1000.0)
    async with table(engines) as t:
        for _ in range(3):
            turn = await t.speak(voice(1.0))
            assert (turn.outcome, turn.fault) == ("failed", "answer_too_late")
            assert engines.running == 0
            await asyncio.sleep(1)
        engines.ttft_s = 0.1
        await t.speak(voice(1.0))
    answered = [turn.outcome for turn in t.finished]
    assert answered == ["failed"] * 3 + ["answered"]
    assert len(t.session.history.exchanges) == 1
