"""Whole turns in virtual time: scripted engines, a microphone and a speaker made of arithmetic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time

from ondam import messages
from ondam.audio import WavMicrophone, WavSpeaker
from ondam.config import load
from ondam.dialog.history import Exchange
from ondam.errors import EngineError
from ondam.journal.turn import Turn
from ondam.pipeline.ports import Transcript
from ondam.session import Session
from ondam.types import HEARING_RATE_HZ, Audio, Language, Samples


class Loud:
    """A voice activity detector that takes every loud frame for speech."""

    frame = 512

    def __call__(self, frame: Samples) -> float:
        return 0.9 if np.abs(frame).max() > 500 else 0.0

    def reset(self) -> None:
        pass


def voice(seconds: float, *, before: float = 0.3) -> Audio:
    tone = (8000 * np.sin(np.arange(round(seconds * HEARING_RATE_HZ)) * 0.2)).astype(np.int16)
    return Audio(np.concatenate([np.zeros(round(before * HEARING_RATE_HZ), np.int16), tone]), HEARING_RATE_HZ)


class Table:
    """A session with everything around it."""

    def __init__(
        self, engines: ScriptedEngines, end_of_turn: Any = None, full_duplex: bool = False, **config: Any
    ) -> None:
        self.on_battery = False
        loop = asyncio.get_running_loop()

        def clock() -> int:
            return round(loop.time() * 1e9)

        self.engines = engines
        self.finished: list[Turn] = []
        self.changes: list[dict[str, Any]] = []
        self.microphone = WavMicrophone(None, clock=clock)
        self.speaker = WavSpeaker(clock=clock)
        self.session = Session(
            "test",
            config=load(None, {"language": "en", **config}),
            language="en",
            engines=engines,
            voice=Loud(),
            end_of_turn=end_of_turn,
            microphone=self.microphone,
            speaker=self.speaker,
            clock=clock,
            finished=self.finished.append,
            changed=self.changes.append,
            full_duplex=lambda: full_duplex,
            on_battery=lambda: self.on_battery,
        )

    async def speak(self, audio: Audio) -> Turn:
        over = self.session.next_turn()
        self.microphone.play(audio)
        return await over


@asynccontextmanager
async def table(engines: ScriptedEngines, **config: Any) -> AsyncIterator[Table]:
    made = Table(engines, **config)
    hearing = asyncio.create_task(made.session.run())
    await asyncio.sleep(1)
    try:
        yield made
    finally:
        await made.session.close()
        hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing
    assert engines.running == 0


@virtual_time
async def test_a_spoken_question_is_answered_aloud_and_every_stage_is_marked() -> None:
    async with table(ScriptedEngines(), drafts={"most_per_turn": 0}) as t:
        turn = await t.speak(voice(1.0))
    assert turn.outcome == "answered"
    assert turn.transcript == "What time is it?"
    assert turn.heard == "It is three. Good bye."
    assert t.engines.said == ["It is three.", "Good bye."]
    json = turn.as_json()
    assert list(json["marks_ms"]) == [
        "last_voiced",
        "pause_seen",
        "endpoint",
        "stt_sent",
        "stt_final",
        "llm_sent",
        "llm_first_token",
        "first_clause",
        "tts_sent",
        "tts_first_audio",
        "dac_first_sample",
        "dac_last_sample",
    ]
    # The window is 600 ms; Silence is seen in frames of 32 ms, and ends inside one.
    assert 600 <= json["stages_ms"]["endpoint"] <= 600 + 2 * 32
    assert json["stages_ms"]["stt"] == pytest.approx(100)
    assert json["stages_ms"]["llm_first_token"] == pytest.approx(80)
    assert json["stages_ms"]["tts_first_audio"] == pytest.approx(50)
    assert json["stages_ms"]["ipc"] == pytest.approx(0, abs=2)
    assert sum(json["stages_ms"].values()) == pytest.approx(json["first_audio_ms"], abs=0.05)
    assert json["llm_calls"] == 1
    assert json["tokens"] == {"prompt": 20, "cached": 12, "output": 5}


@virtual_time
async def test_the_next_question_carries_what_was_heard_of_the_first_answer() -> None:
    async with table(ScriptedEngines()) as t:
        await t.speak(voice(1.0))
        await asyncio.sleep(1)
        await t.speak(voice(1.0))
    assert t.engines.asked[1][1:] == [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": "It is three. Good bye."},
        {"role": "user", "content": "What time is it?"},
    ]


@virtual_time
async def test_what_the_next_question_will_follow_is_computed_while_the_answer_is_spoken() -> None:
    async with table(ScriptedEngines()) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        while t.session.phase != "speaking":
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert len(t.engines.computed_ahead) == 1, "and not before the last word has come"
        await over
        await t.speak(voice(1.0))
    # The next request begins with it, word for word; the empty question closes the answer as it will be.
    assert t.engines.computed_ahead[0][:-1] == t.engines.asked[1][:-1]
    assert t.engines.computed_ahead[0][-1] == {"role": "user", "content": ""}


@virtual_time
async def test_a_draft_that_is_dropped_computes_nothing_ahead() -> None:
    pieces = [voice(0.6), voice(0.5, before=0.5)]
    said = Audio(np.concatenate([piece.samples for piece in pieces]), HEARING_RATE_HZ)
    async with table(ScriptedEngines(stt_s=0.02, ttft_s=0.02, tts_s=0.4)) as t:
        turn = await t.speak(said)
    assert turn.drafts_made == 2
    assert len(t.engines.computed_ahead) == 1


@virtual_time
async def test_the_first_clause_is_spoken_while_the_rest_is_still_being_generated() -> None:
    engines = ScriptedEngines(
        tokens=["It is three. ", *("And more follows. " for _ in range(100)), "End."], token_s=0.1
    )
    async with table(engines) as t:
        turn = await t.speak(voice(1.0))
    marks = turn.as_json()["marks_ms"]
    assert marks["dac_first_sample"] - marks["llm_first_token"] < 500
    assert marks["dac_last_sample"] - marks["dac_first_sample"] > 10_000


@virtual_time
async def test_b19_the_microphone_is_not_heard_while_the_answer_sounds() -> None:
    async with table(ScriptedEngines()) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        while t.session.phase != "speaking":
            await asyncio.sleep(0.01)
        t.microphone.play(voice(0.5, before=0))  # our own voice comes back through the microphone
        await over
        await asyncio.sleep(3)
    assert [turn.outcome for turn in t.finished] == ["answered"]


@virtual_time
async def test_a_button_that_ends_an_answer_costs_no_first_word() -> None:
    async with table(ScriptedEngines(tokens=["A long answer, which goes on and on. "] * 20)) as t:
        t.microphone.play(voice(1.0))
        while t.session.phase != "speaking":
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        t.engines.heard, t.engines.tokens = "Something else.", ["Fine."]
        over = t.session.next_turn()
        t.session.press()
        t.microphone.play(voice(0.6, before=0))
        await asyncio.sleep(0.7)
        t.session.release()
        turn = await over
    assert (turn.outcome, turn.heard) == ("answered", "Fine.")
    said = t.engines.heard_audio[-1].samples
    assert np.flatnonzero(np.abs(said) > 1000)[0] < 0.1 * HEARING_RATE_HZ
    assert (np.abs(said) > 500).sum() > 0.55 * HEARING_RATE_HZ


@virtual_time
async def test_stopping_is_heard_within_ten_milliseconds_and_nothing_follows() -> None:
    async with table(ScriptedEngines(tokens=["A long answer, which goes on and on. "] * 20)) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        while t.session.phase != "speaking":
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.5)
        before = t.speaker.heard
        t.session.stop()
        turn = await over
        await asyncio.sleep(5)
        assert t.speaker.heard - before <= 0.011 * t.speaker.rate_hz
    assert turn.outcome == "stopped"
    assert turn.heard.startswith("A long answer,")
    assert t.session.history.exchanges == (Exchange("What time is it?", turn.heard),)


@pytest.mark.parametrize(("stage", "code"), [("stt", "stt_down"), ("llm", "llm_down")])
@virtual_time
async def test_an_engine_that_is_down_is_excused_aloud_and_the_next_turn_works(stage: Any, code: str) -> None:
    async with table(ScriptedEngines(down={stage})) as t:
        turn = await t.speak(voice(1.0))
        assert (turn.outcome, turn.fault, turn.cause) == ("failed", f"excuse_{stage}", code)
        assert t.engines.said, "the user was told aloud"
        assert {"type": "notice", "session": "test", "code": f"excuse_{stage}"} in t.changes
        t.engines.down.clear()
        await asyncio.sleep(1)
        assert (await t.speak(voice(1.0))).outcome == "answered"
    assert len(t.session.history.exchanges) == 1


@virtual_time
async def test_without_any_voice_the_turn_ends_and_the_fault_is_shown() -> None:
    async with table(ScriptedEngines(down={"tts"})) as t:
        turn = await t.speak(voice(1.0))
        assert (turn.outcome, turn.fault, turn.cause) == ("failed", "excuse_tts", "tts_down")
        assert {"type": "notice", "session": "test", "code": "excuse_tts"} in t.changes
        t.engines.down.clear()
        assert (await t.speak(voice(1.0))).outcome == "answered"


@virtual_time
async def test_what_was_made_before_the_model_broke_off_is_still_said() -> None:
    async with table(ScriptedEngines(breaks={"llm"})) as t:
        turn = await t.speak(voice(1.0))
    assert turn.outcome == "failed"
    assert t.engines.said[0] == "It is three."
    assert turn.heard == "It is three."
    assert t.session.history.exchanges == (Exchange("What time is it?", "It is three."),)


@pytest.mark.parametrize("tokens", [[], ["   \n"], ["..."], ["🙂"], ["**"], ["```\nx = 1\n"]])
@virtual_time
async def test_b05_an_answer_that_cannot_be_said_is_excused_once_within_a_second(tokens: list[str]) -> None:
    async with table(ScriptedEngines(tokens=tokens)) as t:
        turn = await t.speak(voice(1.0))
    if turn.outcome == "answered":  # a code block may be named
        assert t.engines.said == ["code"]
        return
    assert turn.outcome == "no_answer"
    assert t.engines.said == ["I have no answer to that."]
    assert t.session.history.exchanges == ()


@virtual_time
async def test_a_typed_question_is_answered_in_text_alone() -> None:
    async with table(ScriptedEngines()) as t:
        turn = await t.session.ask("Hello?", aloud=False)
    assert turn.heard == "It is three. Good bye."
    assert t.engines.said == []
    assert t.speaker.heard == 0


@virtual_time
async def test_push_to_talk_without_a_voice_gives_up() -> None:
    async with table(ScriptedEngines()) as t:
        turn = await t.session.listen(patience_s=3)
    assert turn.outcome == "no_speech"
    assert t.engines.heard_audio == []


@virtual_time
async def test_a_draft_is_ready_when_the_user_has_finished_and_leaves_at_once() -> None:
    async with table(ScriptedEngines()) as t:
        turn = await t.speak(voice(1.0))
    json = turn.as_json()
    assert json["drafts"] == {"made": 1, "dropped": 0, "tokens": 0}
    # Everything but the last 10 ms block happened before the endpoint; nobody waited for it.
    assert json["first_audio_ms"] - json["stages_ms"]["endpoint"] <= 15
    assert json["stages_ms"]["stt"] == json["stages_ms"]["llm_first_token"] == 0
    assert sum(json["stages_ms"].values()) == pytest.approx(json["first_audio_ms"], abs=0.05)


@virtual_time
async def test_on_battery_no_draft_is_begun_until_the_machine_is_plugged_in_again() -> None:
    async with table(ScriptedEngines()) as t:
        t.on_battery = True
        first = await t.speak(voice(1.0))
        t.on_battery = False
        second = await t.speak(voice(1.0, before=1.0))
    assert (first.drafts_made, second.drafts_made) == (0, 1)
    assert (first.outcome, second.outcome) == ("answered", "answered")


@virtual_time
async def test_a_draft_is_not_heard_before_the_endpoint() -> None:
    async with table(ScriptedEngines()) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        while t.session.phase != "speaking":
            await asyncio.sleep(0.005)
            if t.session.phase == "hearing":
                assert t.speaker.heard == 0
                assert not [change for change in t.changes if change["type"] == "transcript"]
        await over


@virtual_time
async def test_speech_in_pieces_below_the_window_is_one_turn_and_its_drafts_leave_no_trace() -> None:
    pieces = [voice(0.6), voice(0.4, before=0.4), voice(0.5, before=0.45)]
    said = Audio(np.concatenate([piece.samples for piece in pieces]), HEARING_RATE_HZ)
    async with table(ScriptedEngines(stt_s=0.05, ttft_s=0.05, tts_s=0.02)) as t:
        turn = await t.speak(said)
        await asyncio.sleep(3)
    assert [finished.outcome for finished in t.finished] == ["answered"]
    drafts = turn.as_json()["drafts"]
    assert (drafts["made"], drafts["dropped"]) == (3, 2)
    assert t.engines.heard_audio[-1].seconds >= said.seconds - 0.1
    assert len(t.session.history.exchanges) == 1
    # 22 characters at 50 ms: one answer was heard, not three.
    assert t.speaker.heard / t.speaker.rate_hz == pytest.approx(22 * 0.05, abs=0.1)


class Says:
    """Judges by a script, and remembers what it was asked about."""

    def __init__(self, *verdicts: float) -> None:
        self.left = list(verdicts)
        self.asked: list[Samples] = []

    async def __call__(self, samples: Samples) -> float:
        self.asked.append(samples)
        return self.left.pop(0)


@virtual_time
@pytest.mark.parametrize(
    ("stt_s", "endpoint_ms"),
    [
        (0.01, 192),  # ready before the short window has passed
        (0.15, 30 + 150 + 80 + 20 + 50),  # begun 30 ms after the fall; words, first token, clause, sound
        (0.60, 512),  # not to be waited for
    ],
)
async def test_a_complete_utterance_is_answered_as_soon_as_the_answer_is_ready(
    stt_s: float, endpoint_ms: float
) -> None:
    judge = Says(0.99)
    async with table(ScriptedEngines(stt_s=stt_s), end_of_turn=judge) as t:
        turn = await t.speak(voice(1.0))
    assert endpoint_ms <= turn.as_json()["stages_ms"]["endpoint"] <= endpoint_ms + 2 * 32
    # The pause that the model hears is filled up to 224 ms.
    assert not judge.asked[0][-round(0.15 * HEARING_RATE_HZ) :].any()


@virtual_time
async def test_an_incomplete_utterance_is_waited_for() -> None:
    async with table(ScriptedEngines(), end_of_turn=Says(0.02)) as t:
        turn = await t.speak(voice(1.0))
    assert 1200 <= turn.as_json()["stages_ms"]["endpoint"] <= 1200 + 2 * 32


@virtual_time
@pytest.mark.parametrize("gap", [0.25, 0.5, 1.0, 1.4])
async def test_a_false_endpoint_is_taken_back_and_both_pieces_are_one_utterance(gap: float) -> None:
    pieces = [voice(0.6), voice(0.5, before=gap)]
    said = Audio(np.concatenate([piece.samples for piece in pieces]), HEARING_RATE_HZ)
    engines = ScriptedEngines(stt_s=0.3, ttft_s=0.6, tts_s=0.8)
    async with table(engines, end_of_turn=Says(0.99, 0.99, 0.99)) as t:
        turn = await t.speak(said)
        await asyncio.sleep(3)
    assert [finished.outcome for finished in t.finished] == ["answered"]
    assert turn.as_json()["taken_back"] == (0 if gap < 0.512 else 1)
    assert engines.heard_audio[-1].seconds >= said.seconds - 0.1
    assert len(t.session.history.exchanges) == 1
    assert turn.as_json()["first_audio_ms"] < 3000


@pytest.mark.parametrize("code", ["excuse_stt", "excuse_llm", "excuse_tts", "no_answer", "internal_fault"])
def test_what_is_said_aloud_needs_no_facts_to_be_filled_in(code: str) -> None:
    for language in ("ko", "en"):
        assert "{" not in messages.text(code, language)


@virtual_time
async def test_an_engine_that_dies_in_the_middle_is_excused_whatever_its_error_says() -> None:
    for stage in ("stt", "tts"):
        engines = ScriptedEngines(breaks={stage}, error="engine_hung_up")
        async with table(engines) as t:
            turn = await t.speak(voice(1.0))
            assert (turn.outcome, turn.cause) == ("failed", "engine_hung_up")
            assert engines.failures[0] == (stage, "engine_hung_up")
            engines.breaks.clear()
            await asyncio.sleep(2)
            assert (await t.speak(voice(1.0))).outcome == "answered"


@virtual_time
async def test_b01_a_sentence_that_ends_in_a_decimal_is_spoken_when_the_stream_pauses() -> None:
    engines = ScriptedEngines(tokens=["The value is 3.", "14", "."], token_s=0.02)
    async with table(engines, drafts={"most_per_turn": 0}) as t:
        engines.pause_at_end_s = 2.0
        turn = await t.speak(voice(1.0))
    assert turn.heard == "The value is 3.14."
    marks = turn.as_json()["marks_ms"]
    assert marks["first_clause"] - marks["llm_first_token"] == pytest.approx(40 + 150, abs=2)


class Numbering(ScriptedEngines):
    """Understands how many pieces it was given; ``fails`` says which requests fail."""

    fails: frozenset[int] = frozenset()

    async def transcribe(self, audio: Audio, language: Language, names: Sequence[str] = ()) -> Transcript:
        heard = await super().transcribe(audio, language, names)
        number = len(self.heard_audio)
        if number in self.fails:
            raise EngineError("stt_down")
        return replace(heard, text=f"Piece {number}.")


@virtual_time
async def test_speech_past_the_limit_is_one_question_of_which_nothing_is_lost() -> None:
    said = np.random.default_rng(5).integers(-8000, 8000, 16 * HEARING_RATE_HZ).astype(np.int16)
    off = {"most_per_turn": 0}
    async with table(Numbering(), detect={"max_utterance_s": 5}, drafts=off) as t:
        turn = await t.speak(Audio(said, HEARING_RATE_HZ))
        pieces = t.engines.heard_audio
    assert [finished.outcome for finished in t.finished] == ["answered"]
    assert 4 <= len(pieces) <= 6
    assert turn.transcript == " ".join(f"Piece {number}." for number in range(1, len(pieces) + 1))
    assert t.engines.asked[-1][-1]["content"] == turn.transcript
    assert max(piece.seconds for piece in pieces) <= 5.1, "no more than that is kept of it"
    heard = np.concatenate([piece.samples for piece in pieces])
    first = next(i for i in range(0, len(heard), 160) if np.array_equal(heard[i : i + 160], said[:160]))
    assert np.array_equal(heard[first : first + len(said)], said)
    assert turn.utterance_s == pytest.approx(len(heard) / HEARING_RATE_HZ)
    assert turn.first_audio_ms is not None
    assert turn.first_audio_ms < 1100, "counted from the end of all of it"


@virtual_time
async def test_a_piece_whose_recognition_failed_is_tried_again_when_its_words_are_wanted() -> None:
    engines = Numbering()
    engines.fails = frozenset({1})
    async with table(engines, detect={"max_utterance_s": 5}, drafts={"most_per_turn": 0}) as t:
        turn = await t.speak(voice(8.0))
        assert (turn.outcome, turn.transcript) == ("answered", "Piece 2. Piece 3.")
        engines.fails = frozenset({4, 5})
        await asyncio.sleep(3)
        assert (await t.speak(voice(8.0))).outcome == "failed"


@virtual_time
async def test_stopping_a_long_utterance_lets_go_of_its_pieces() -> None:
    async with table(ScriptedEngines(stt_s=30.0), detect={"max_utterance_s": 5}) as t:
        t.microphone.play(voice(16.0))
        await asyncio.sleep(14)
        assert t.engines.running == 1, "one at a time"
        t.session.stop()
        await asyncio.sleep(0.1)
        assert t.engines.running == 0


@virtual_time
async def test_voice_that_never_ends_and_has_no_words_is_dropped_at_the_limit() -> None:
    async with table(ScriptedEngines(heard=""), detect={"max_utterance_s": 5}) as t:
        t.microphone.play(voice(16.0))
        await asyncio.sleep(20)
        assert {turn.outcome for turn in t.finished} == {"no_speech"}
        assert 3 <= len(t.finished) <= 5
        assert max(audio.seconds for audio in t.engines.heard_audio) <= 5.1
        assert t.session.phase == "listening"


@virtual_time
async def test_who_no_longer_waits_for_a_turn_no_longer_wants_it() -> None:
    async with table(ScriptedEngines(tokens=["A long answer, which goes on and on. "] * 20)) as t:
        said = "A text that takes a while to be said."
        for begin in (t.session.ask("q", aloud=True), t.session.listen(8), t.session.say(said)):
            waiting = asyncio.create_task(begin)
            await asyncio.sleep(0.5)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert t.session.phase == "listening"
            await asyncio.sleep(1)
    assert {turn.outcome for turn in t.finished} == {"stopped"}


@virtual_time
async def test_the_button_takes_what_is_being_said_already() -> None:
    async with table(ScriptedEngines()) as t:
        t.microphone.play(voice(1.5, before=0))
        await asyncio.sleep(0.6)
        assert t.session.phase == "hearing"
        turn = await t.session.listen(8)
    assert turn.outcome == "answered"
    assert t.engines.heard_audio[-1].seconds >= 1.5


@virtual_time
async def test_the_button_takes_what_is_being_said_already_also_where_a_name_is_wanted() -> None:
    async with table(ScriptedEngines()) as t:
        t.session.set_mode("name")
        t.microphone.play(voice(1.0))
        while t.session.phase != "hearing":
            await asyncio.sleep(0.01)
        turn = await t.session.listen(5.0)
    assert (turn.outcome, turn.transcript) == ("answered", "What time is it?")


@virtual_time
async def test_a_microphone_that_goes_away_drops_the_draft_and_counts_it() -> None:
    async with table(ScriptedEngines()) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(0.6))
        while not t.engines.heard_audio:
            await asyncio.sleep(0.01)
        t.session.microphone_lost()
        turn = await over
    assert turn.outcome == "lost"
    assert (turn.drafts_made, turn.drafts_dropped) == (1, 1)


@virtual_time
async def test_a_verdict_that_cannot_be_had_is_told_and_the_plain_window_decides() -> None:
    async def broken(samples: Samples) -> float:
        raise RuntimeError("no model")

    async with table(ScriptedEngines(), end_of_turn=broken) as t:
        turn = await t.speak(voice(1.0))
    assert 600 <= turn.as_json()["stages_ms"]["endpoint"] <= 664
    assert {"type": "notice", "session": "test", "code": "end_of_turn_failed"} in t.changes


@virtual_time
async def test_what_was_stopped_has_let_go_of_everything_when_the_session_is_closed() -> None:
    engines = ScriptedEngines(ttft_s=5.0)
    async with table(engines) as t:
        t.microphone.play(voice(1.0))
        while t.session.phase != "thinking":
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        assert engines.running == 1
        t.session.stop()
        await t.session.close()
        assert engines.running == 0
        hearing = {task for task in asyncio.all_tasks() if task.get_name().startswith("Task-")}
        assert asyncio.all_tasks() == hearing
        assert len(hearing) == 2, "this test, and the microphone"


@virtual_time
async def test_who_waits_for_a_turn_gets_it_also_when_it_could_not_be_remembered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(turn: Turn) -> None:
        raise OSError("no room")

    async with table(ScriptedEngines()) as t:
        t.session._finished = full
        turn = await asyncio.wait_for(t.session.ask("What time is it?", aloud=True), 60)
        again = await asyncio.wait_for(t.session.ask("And now?", aloud=True), 60)
    assert (turn.outcome, again.outcome) == ("answered", "answered")
    assert "could not be remembered" in caplog.text
