"""The user speaks over the answer: whole turns in virtual time, with a microphone that hears no echo."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time
from tests.unit.test_session import Table, table, voice

from ondam.dialog.events import SpeechStarted, VoiceNoticed
from ondam.dialog.history import Exchange
from ondam.pipeline.ports import Transcript
from ondam.types import Audio, Language

LONG = ["The first sentence is here. ", "Then the second one comes. ", "And then a third, ", "which ends."]
LONG_TEXT = "".join(LONG)

NEW = {"take_back_ms": 0}
"""Whatever is said over an answer is a turn of its own."""


async def until_speaking(t: Table, seconds: float = 0.0) -> None:
    while t.session.phase != "speaking":
        await asyncio.sleep(0.005)
    await asyncio.sleep(seconds)


@virtual_time
async def test_barge_in_silences_the_speaker_within_200_ms_and_the_new_question_is_answered() -> None:
    async with table(ScriptedEngines(tokens=LONG), full_duplex=True, drafts=NEW) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        await until_speaking(t, 1.0)
        t.engines.heard, t.engines.tokens = "No, what day is it?", ["Monday."]
        after = t.session.next_turn()
        t.microphone.play(voice(1.0, before=0))
        await asyncio.sleep(0.2)
        heard = t.speaker.heard
        await asyncio.sleep(0.3)
        assert t.speaker.heard == heard, "silent 200 ms after the voice began"
        first, second = await over, await after
    assert (first.outcome, second.outcome) == ("interrupted", "answered")
    assert second.heard == "Monday."
    assert LONG_TEXT.startswith(first.heard)
    assert 10 < len(first.heard) < len(LONG_TEXT) - 10
    # History holds what was played, and the new request says so.
    assert t.session.history.exchanges == (
        Exchange("What time is it?", first.heard),
        Exchange("No, what day is it?", "Monday."),
    )
    assert t.engines.asked[-1][2] == {"role": "assistant", "content": first.heard}


@pytest.mark.parametrize("words", ["", "Mhm."])
@virtual_time
async def test_a_cough_or_a_sign_of_listening_holds_the_answer_and_it_goes_on_with_nothing_lost(
    words: str,
) -> None:
    async with table(ScriptedEngines(tokens=LONG), full_duplex=True, drafts=NEW) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        await until_speaking(t, 1.0)
        t.engines.heard = words
        t.microphone.play(voice(0.2, before=0))
        first = await over
        await asyncio.sleep(1)
    assert first.outcome == "answered"
    assert first.heard == LONG_TEXT
    # All of it was played once: 50 ms a character in these voices.
    said = sum(len(text) for text in t.engines.said)
    assert t.speaker.heard / t.speaker.rate_hz == pytest.approx(said * 0.05, abs=0.05)
    assert [turn.outcome for turn in t.finished] == ["no_speech", "answered"]


@virtual_time
async def test_a_click_of_one_frame_only_ducks_the_answer() -> None:
    async with table(ScriptedEngines(tokens=LONG), full_duplex=True, drafts=NEW) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        await until_speaking(t, 1.0)
        t.microphone.play(voice(0.001, before=0))
        first = await over
    assert first.outcome == "answered"
    assert [turn.outcome for turn in t.finished] == ["answered"]
    played = t.speaker.recording().samples
    loud = np.abs(played) > 900
    assert 0.9 < loud.mean() < 0.995, "a few hundredths of a second were quieter"


@virtual_time
async def test_where_the_echo_cannot_be_removed_a_voice_over_the_answer_is_not_heard() -> None:
    async with table(ScriptedEngines(tokens=LONG), full_duplex=False) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        await until_speaking(t, 1.0)
        t.microphone.play(voice(0.6, before=0))
        assert (await over).outcome == "answered"
        await asyncio.sleep(3)
    assert [turn.outcome for turn in t.finished] == ["answered"]


@virtual_time
async def test_the_user_who_goes_on_over_the_beginning_of_the_answer_has_said_one_thing() -> None:
    engines = ScriptedEngines(tokens=LONG)
    async with table(engines, full_duplex=True, end_of_turn=_complete) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(0.8))
        await until_speaking(t, 0.1)
        engines.heard, engines.tokens = "What time is it in Busan?", ["Nine."]
        t.microphone.play(voice(0.7, before=0))
        turn = await over
        await asyncio.sleep(3)
    assert [(finished.outcome, finished.taken_back) for finished in t.finished] == [("answered", 1)]
    assert t.session.history.exchanges == (Exchange("What time is it in Busan?", "Nine."),)
    assert engines.heard_audio[-1].seconds > 1.5
    assert turn.first_audio_ms is not None
    assert turn.first_audio_ms < 1000


@virtual_time
async def test_a_cough_right_after_the_endpoint_does_not_change_when_the_user_was_last_heard() -> None:
    engines = ScriptedEngines(tokens=LONG)
    async with table(engines, full_duplex=True, end_of_turn=_complete) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(0.8))
        await until_speaking(t, 0.3)
        t.microphone.play(voice(0.1, before=0))  # the same words as before: nothing was added
        turn = await over
    assert (turn.outcome, turn.taken_back, turn.heard) == ("answered", 0, LONG_TEXT)
    assert turn.first_audio_ms is not None
    assert 200 < turn.first_audio_ms < 600


class Deaf(ScriptedEngines):
    """Understands the piece that was said last for itself too: it is the shorter one."""

    alone: str = "Stop."

    async def transcribe(self, audio: Audio, language: Language, names: Sequence[str] = ()) -> Transcript:
        heard = await super().transcribe(audio, language, names)
        whole = not self.asked or audio.seconds > 1.4
        return heard if whole else replace(heard, text=self.alone)


@pytest.mark.parametrize(("stop", "seconds"), [("Stop.", 0.3), ("Stop it, please.", 0.8), ("그만.", 0.3)])
@pytest.mark.parametrize("heard_s", [None, 0.3])
@virtual_time
async def test_stop_right_after_a_false_endpoint_stops_the_answer_and_asks_nothing(
    heard_s: float | None, stop: str, seconds: float
) -> None:
    engines = Deaf(tokens=LONG, ttft_s=0.08 if heard_s else 0.6)
    async with table(engines, full_duplex=True, end_of_turn=_complete) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.5))
        while t.session.phase != ("speaking" if heard_s else "thinking"):
            await asyncio.sleep(0.005)
        await asyncio.sleep(heard_s or 0.2)
        engines.heard, engines.alone = f"What time is it? {stop}", stop
        t.microphone.play(voice(seconds, before=0))
        turn = await over
        played = t.speaker.heard
        await asyncio.sleep(3)
    assert turn.outcome == "stopped"
    assert [finished.outcome for finished in t.finished] == ["stopped"]
    assert t.speaker.heard == played
    assert [asked[-1]["content"] for asked in engines.asked] == ["What time is it?"]
    # The piece was judged by its own sound, from the endpoint on.
    assert seconds < engines.heard_audio[-1].seconds < seconds + 1.0
    heard = [exchange.answer for exchange in t.session.history.exchanges]
    assert heard == ([turn.heard] if turn.heard else [])


@virtual_time
async def test_words_that_only_end_like_stop_are_one_question_with_the_first_ones() -> None:
    engines = Deaf(tokens=LONG)
    async with table(engines, full_duplex=True, end_of_turn=_complete) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.5))
        await until_speaking(t, 0.1)
        engines.heard, engines.alone = "When does the bus stop?", "does the bus stop?"
        engines.tokens = ["At nine."]
        t.microphone.play(voice(0.7, before=0))
        assert (await over).outcome == "answered"
    assert [exchange.question for exchange in t.session.history.exchanges] == ["When does the bus stop?"]


async def _complete(samples: object) -> float:
    return 0.99


POINTS = {
    "the model is waited for": 0.28,
    "the first token": 0.36,
    "the voice works, nothing sounds yet": 0.42,
    "50 ms into the sound": 0.52,
    "far into the sound": 2.0,
}


@pytest.mark.parametrize("after_s", POINTS.values(), ids=POINTS)
@virtual_time
async def test_b20_at_whatever_moment_the_user_interrupts_nothing_of_the_old_answer_follows(
    after_s: float,
) -> None:
    """Engines that are slow enough that the moments lie apart; ``after_s`` counts from the last voice."""
    engines = ScriptedEngines(tokens=LONG, stt_s=0.02, ttft_s=0.3, tts_s=0.15)
    soon = {"complete_ms": 192}
    async with table(engines, full_duplex=True, end_of_turn=_complete, drafts=NEW, endpoint=soon) as t:
        t.microphone.play(voice(1.0, before=0))
        await asyncio.sleep(1.0 + after_s)
        engines.heard, engines.tokens = "Something else.", ["The second answer is whole."]
        over = t.session.next_turn()
        t.microphone.play(voice(0.7, before=0))
        await asyncio.sleep(0.2)
        heard = t.speaker.heard
        turn = await over
        assert t.speaker.heard - heard == pytest.approx(27 * 0.05 * t.speaker.rate_hz, abs=0.02 * 48_000)
    assert (turn.outcome, turn.heard) == ("answered", "The second answer is whole.")


@virtual_time
async def test_b20_two_interruptions_within_a_tenth_of_a_second_are_one() -> None:
    engines = ScriptedEngines(tokens=LONG)
    async with table(engines, full_duplex=True, drafts=NEW) as t:
        t.microphone.play(voice(1.0))
        await until_speaking(t, 1.0)
        engines.heard, engines.tokens = "Something else.", ["Whole."]
        over = t.session.next_turn()
        t.microphone.play(voice(0.08, before=0))
        t.microphone.play(voice(0.6, before=0.02))
        turn = await over
        await asyncio.sleep(2)
    assert (turn.outcome, turn.heard) == ("answered", "Whole.")
    assert [finished.outcome for finished in t.finished] == ["interrupted", "answered"]


@virtual_time
async def test_b20_in_the_last_50_ms_of_the_answer_the_next_answer_is_whole() -> None:
    engines = ScriptedEngines(tokens=["Short."])
    async with table(engines, full_duplex=True, drafts=NEW) as t:
        t.microphone.play(voice(1.0))
        await until_speaking(t, 6 * 0.05 - 0.06)
        engines.heard, engines.tokens = "Something else.", ["The next one is whole."]
        over = t.session.next_turn()
        t.microphone.play(voice(0.7, before=0))
        turn = await over
    assert (turn.outcome, turn.heard) == ("answered", "The next one is whole.")


@virtual_time
async def test_b21_after_six_interruptions_history_alternates_and_holds_only_what_was_played() -> None:
    engines = ScriptedEngines(tokens=LONG)
    async with table(engines, full_duplex=True, drafts=NEW) as t:
        t.microphone.play(voice(1.0))
        for number, seconds in enumerate((0.3, 1.1, 0.05, 2.0, 0.7, 1.5)):
            await until_speaking(t, seconds)
            engines.heard = f"Question {number}."
            t.microphone.play(voice(0.7, before=0))
            while t.session.phase == "speaking":
                await asyncio.sleep(0.005)
        await until_speaking(t, 0.2)
        engines.heard = "What did I just say?"
        over = t.session.next_turn()
        t.microphone.play(voice(0.7, before=0))
        await over
    asked = engines.asked[-1]
    roles = [message["role"] for message in asked[1:]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    assert asked[-1]["content"] == "What did I just say?"
    for message in asked[1:]:
        assert message["content"].strip()
        assert "..." not in message["content"]
        if message["role"] == "assistant":
            assert LONG_TEXT.startswith(message["content"])
    assert [turn.outcome for turn in t.finished] == ["interrupted"] * 7 + ["answered"]


@pytest.mark.parametrize("ms_before_its_end", [60, 30, 9, 5])
@virtual_time
async def test_b20_an_answer_that_ends_while_it_is_ducked_or_held_leaves_the_next_one_as_loud_as_ever(
    ms_before_its_end: float,
) -> None:
    engines = ScriptedEngines(tokens=["Short."])
    async with table(engines, full_duplex=True, drafts=NEW) as t:
        t.microphone.play(voice(1.0))
        await until_speaking(t)
        ends = t.speaker.ends_at_ns()
        assert ends is not None
        # Frames of the detector are 32 ms and blocks 10: the moment is met by holding it by hand.
        await asyncio.sleep(ends / 1e9 - asyncio.get_running_loop().time() - ms_before_its_end / 1000)
        now_ns = round(asyncio.get_running_loop().time() * 1e9)
        t.session.handle(VoiceNoticed(now_ns))
        if ms_before_its_end <= 10:
            t.session.handle(SpeechStarted(now_ns))
        await asyncio.sleep(0.5)
        engines.tokens = ["The next one is whole."]
        t.session.stop()
        over = t.session.next_turn()
        t.microphone.play(voice(0.7, before=0.5))
        turn = await asyncio.wait_for(over, 10)
    assert t.finished[0].outcome == "answered"
    assert (turn.outcome, turn.heard) == ("answered", "The next one is whole.")
    assert np.abs(t.speaker.recording().samples[-24_000:]).max() > 900


@virtual_time
async def test_a_cough_while_the_model_is_still_waited_for_does_not_cost_the_answer() -> None:
    engines = ScriptedEngines(ttft_s=4.0)
    async with table(engines, full_duplex=True) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        while t.session.phase != "thinking":
            await asyncio.sleep(0.01)
        await asyncio.sleep(2.0)  # too late to be taken back
        engines.heard = ""
        t.microphone.play(voice(0.2, before=0))
        turn = await over
    assert (turn.outcome, turn.heard) == ("answered", "It is three. Good bye.")
    assert len(engines.asked) == 1


@virtual_time
async def test_a_cough_over_the_end_of_a_short_answer_does_not_make_it_be_said_again() -> None:
    engines = ScriptedEngines(tokens=["Three o'clock."])
    async with table(engines, full_duplex=True, end_of_turn=_complete) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        await until_speaking(t, 0.55)
        t.microphone.play(voice(0.15, before=0))
        turn = await over
        await asyncio.sleep(3)
    assert (turn.outcome, turn.heard) == ("answered", "Three o'clock.")
    assert engines.said == ["Three o'clock."]
    assert t.session.history.exchanges == (Exchange("What time is it?", "Three o'clock."),)
