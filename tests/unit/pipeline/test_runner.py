"""One draft's work: what is said when, and what is not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.fakes.virtual_time import virtual_time
from tests.unit.pipeline.one_draft import Room, Voices, some_voice

from ondam import messages
from ondam.dialog.events import Answered, Failed, Heard, Transcribed
from ondam.speech import spoken
from ondam.speech.form import form_of
from ondam.types import Language

FILLER_S = 11 * 0.05
"""“One moment.” at 50 ms a character."""


@dataclass(frozen=True)
class Entry:
    match: tuple[str, ...]
    say: tuple[str, ...]
    pattern: str | None = None
    language: Language | None = None


def sounding(room: Room) -> list[tuple[float, float]]:
    """From when to when the speaker was not silent, in seconds; gaps below 5 ms do not count."""
    audio = room.speaker.recording()
    loud = np.flatnonzero(np.abs(audio.samples) > 100)
    parts = np.split(loud, np.flatnonzero(np.diff(loud) > audio.rate_hz // 200) + 1) if len(loud) else []
    return [(part[0] / audio.rate_hz, (part[-1] + 1) / audio.rate_hz) for part in parts]


def clauses(code: str) -> list[str]:
    return spoken(messages.text(code, "en"), "en").clauses


# Excuses.


@virtual_time
async def test_b25_an_excuse_is_heard_although_no_voice_is_up() -> None:
    engines = Voices()
    room = Room(engines)
    await room.phrases.prepare("en")
    engines.down.add("tts")
    made = len(engines.said)
    runner = await room.asked()
    assert len(engines.said) == made
    assert runner.turn.fault == "excuse_tts"
    assert runner.turn.heard == "", "an excuse is no part of the answer"
    # In clauses: 6, 16 and 32 characters at 50 ms.
    ((begin, end),) = sounding(room)
    assert end - begin == pytest.approx((6 + 16 + 32) * 0.05, abs=0.01)
    assert room.told(Answered)[-1][1] == Answered(room.told(Answered)[-1][1].at_ns, runner.draft, spoken=True)


@virtual_time
async def test_an_excuse_that_is_there_asks_no_engine() -> None:
    engines = Voices(down={"llm"})
    room = Room(engines)
    await room.phrases.prepare("en")
    made = len(engines.said)
    runner = await room.asked()
    assert runner.turn.fault == "excuse_llm"
    assert len(engines.said) == made
    assert sounding(room)


@virtual_time
async def test_an_excuse_that_is_not_there_is_made() -> None:
    engines = Voices(down={"llm"})
    room = Room(engines)
    await room.asked()
    assert engines.said == clauses("excuse_llm")
    assert sounding(room)


@virtual_time
async def test_without_excuse_and_without_voice_the_turn_ends_all_the_same() -> None:
    room = Room(Voices(down={"tts"}))
    runner = await room.asked()
    assert [event.code for _, event in room.told(Failed) if isinstance(event, Failed)] == ["excuse_tts"] * 2
    assert runner.turn.cause == "tts_down"
    assert sounding(room) == []


@virtual_time
async def test_a_stop_ends_a_phrase_from_the_store_at_once() -> None:
    engines = Voices()
    room = Room(engines)
    await room.phrases.prepare("en")
    engines.down |= {"llm", "tts"}
    runner = room.draft()
    runner.respond("q", (), aloud=True)
    runner.commit()
    await asyncio.sleep(1.0)
    before = room.speaker.heard
    runner.cancel()
    await runner.ended()
    await asyncio.sleep(5)
    assert room.speaker.heard - before <= 0.011 * room.speaker.rate_hz


@virtual_time
async def test_a_text_to_be_read_is_taken_from_the_store_in_the_voice_that_speaks() -> None:
    engines = Voices()
    room = Room(engines)
    await room.phrases.prepare("en")
    made = len(engines.said)
    for expected in (0, 1):
        runner = room.draft()
        runner.say("One moment.")
        runner.commit()
        await room.over()
        assert len(engines.said) - made == expected
        assert runner.turn.heard == "One moment."
        engines.name = "second"


# Fillers.


@virtual_time
async def test_an_answer_that_takes_long_is_announced_once_and_follows() -> None:
    room = Room(Voices(ttft_s=4.0))
    await room.phrases.prepare("en")
    began = room.clock() / 1e9
    runner = await room.asked()
    filler, answer = sounding(room)
    assert filler[1] - filler[0] == pytest.approx(FILLER_S, abs=0.01)
    # The filler is due after 1.5 s and passes the converter 10 ms later; the recording begins with it.
    assert runner.turn.filler_ms == pytest.approx(1510, abs=1)
    first = room.runners[0].turn.marks.at_ns["dac_first_sample"] / 1e9 - began
    assert first == pytest.approx(4.0 + 0.05 + 0.02 + 0.01, abs=0.02)
    assert answer[0] - filler[0] == pytest.approx(first - 1.51, abs=0.01)
    assert runner.turn.heard == "It is three. Good bye."
    assert "One moment." not in " ".join(room.texts_heard)
    assert runner.turn.answer_s == pytest.approx(22 * 0.05 - 0.05, abs=0.1)
    json = runner.turn.as_json()
    assert json["filler_ms"] == pytest.approx(1510, abs=1)
    assert json["first_audio_ms"] > 4000


@virtual_time
async def test_an_answer_that_comes_during_the_filler_waits_for_its_end() -> None:
    # First clause at 1.4 + 0.02 s, its sound 0.3 s later: 0.2 s into the filler.
    room = Room(Voices(ttft_s=1.4, tts_s=0.3))
    await room.phrases.prepare("en")
    runner = await room.asked()
    assert runner.turn.filler_ms is not None
    (spoken,) = sounding(room)
    # Nothing overlaps and nothing is lost: filler and both clauses, one after the other.
    assert spoken[1] - spoken[0] == pytest.approx(FILLER_S + 12 * 0.05 + 9 * 0.05, abs=0.02)
    marks = runner.turn.marks
    first, after = marks.at_ns["dac_first_sample"], runner.turn.filler_ns
    assert after is not None
    assert (first - after) / 1e9 == pytest.approx(FILLER_S, abs=0.005)


@virtual_time
async def test_never_in_two_turns_running() -> None:
    room = Room(Voices(ttft_s=2.5))
    await room.phrases.prepare("en")
    had = [(await room.asked(turn)).turn.filler_ms is not None for turn in (1, 2, 3, 4)]
    assert had == [True, False, True, False]


@virtual_time
async def test_a_filler_is_counted_from_the_commit_and_covers_recognition() -> None:
    room = Room(Voices(stt_s=3.0))
    await room.phrases.prepare("en")
    runner = room.draft()
    runner.recognize(some_voice())
    await asyncio.sleep(1.0)
    committed = room.clock()
    runner.commit()
    await room.over()
    assert runner.turn.filler_ns is not None
    assert (runner.turn.filler_ns - committed) / 1e6 == pytest.approx(1510, abs=1)


@pytest.mark.parametrize(
    "config",
    [{"filler": {"after_ms": 0}}, {"filler": {"after_ms": 6000}}, {"answer": {"within_s": 1.0}}],
    ids=["off", "not yet", "given up before"],
)
@virtual_time
async def test_no_filler_when_it_is_off_or_not_due(config: dict[str, Any]) -> None:
    room = Room(Voices(ttft_s=4.0), **config)
    await room.phrases.prepare("en")
    assert (await room.asked()).turn.filler_ms is None


@virtual_time
async def test_a_filler_that_is_not_made_yet_is_not_asked_for() -> None:
    room = Room(Voices(ttft_s=4.0))
    runner = await room.asked()
    assert runner.turn.filler_ms is None
    assert room.engines.said == ["It is three.", "Good bye."]


@virtual_time
async def test_no_filler_before_the_commit_or_without_words_or_for_what_is_read_or_shown() -> None:
    room = Room(Voices(stt_s=0.5, tts_s=4.0, heard=""))
    await room.phrases.prepare("en")
    held = room.draft(1)
    held.respond("q", (), aloud=True)
    await asyncio.sleep(10)
    held.cancel()

    nothing = room.draft(2)
    nothing.recognize(some_voice())
    nothing.commit()
    assert isinstance(await room.over(), Transcribed)
    await asyncio.sleep(10)

    late = room.draft(3)
    late.recognize(some_voice())
    await room.over()
    late.commit()
    await asyncio.sleep(10)

    read = room.draft(4)
    read.say("A text that takes a while.")
    read.commit()
    await room.over()

    room.engines.ttft_s = 4.0
    shown = room.draft(5)
    shown.respond("q", (), aloud=False)
    shown.commit()
    await room.over()
    for runner in room.runners:
        await runner.ended()
    assert [runner.turn.filler_ms for runner in room.runners] == [None] * 5
    assert len(sounding(room)) == 1


@virtual_time
async def test_b20_a_stop_during_the_filler_silences_it_and_the_answer() -> None:
    room = Room(Voices(ttft_s=4.0))
    await room.phrases.prepare("en")
    runner = room.draft()
    runner.respond("q", (), aloud=True)
    runner.commit()
    await asyncio.sleep(1.7)
    before = room.speaker.heard
    assert before
    runner.cancel()
    await runner.ended()
    await asyncio.sleep(10)
    assert room.speaker.heard - before <= 0.011 * room.speaker.rate_hz
    assert room.engines.running == 0


# Canned answers.


@virtual_time
async def test_a_canned_answer_asks_no_model_and_is_remembered_as_heard() -> None:
    canned = [Entry(("hello",), ("Hello there. **Nice** to see you.",))]
    room = Room(Voices(), canned=canned)
    runner = await room.asked(question="Hello!")
    assert room.engines.asked == []
    turn = runner.turn.as_json()
    assert (turn["llm_calls"], turn["canned"], turn["clauses"]) == (0, True, 2)
    assert runner.turn.heard == "Hello there. Nice to see you."
    last = room.told(Heard)[-1][1]
    assert isinstance(last, Heard)
    assert last.text == "Hello there. Nice to see you."
    other = await room.asked(2, question="Hello to you")
    assert (other.turn.llm_calls, other.turn.canned) == (1, False)


@virtual_time
async def test_answers_take_turns_and_a_dropped_draft_takes_none() -> None:
    room = Room(Voices(), canned=[Entry(("hello",), ("One.", "Two."))])
    for _ in range(3):
        dropped = room.draft()
        dropped.respond("hello", (), aloud=True)
        await asyncio.sleep(1)
        dropped.cancel()
    early = room.draft()
    early.respond("hello", (), aloud=True)
    await asyncio.sleep(1)
    early.commit()
    await room.over()
    heard = [early.turn.heard] + [(await room.asked(question="hello")).turn.heard for _ in range(2)]
    assert heard == ["One.", "Two.", "One."]


@virtual_time
async def test_a_typed_question_has_canned_answers_too() -> None:
    room = Room(Voices(), canned=[Entry(("hello",), ("Hi.",))])
    runner = room.draft()
    runner.respond("Hello", (), aloud=False)
    runner.commit()
    await room.over()
    assert (runner.turn.heard, room.engines.said, room.engines.asked) == ("Hi.", [], [])


@virtual_time
async def test_a_pattern_that_runs_away_is_told_and_the_model_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    entry = Entry((), ("never",), pattern="(a|aa)+[bc]")
    room = Room(Voices(), canned=[entry])
    runner = await room.asked(question="a" * 150)
    assert runner.turn.llm_calls == 1
    assert "takes too long" in caplog.text


# Forms.


@pytest.mark.parametrize("early", [True, False], ids=["draft", "committed"])
@virtual_time
async def test_what_the_model_filled_in_is_told_once_and_only_of_the_answer(early: bool) -> None:
    room = Room(Voices(tokens=['{"say": "It is ', 'three.", "intent": ', '"time"}']))
    slots = {"type": "object", "properties": {"say": {"type": "string"}, "intent": {"type": "string"}}}
    room.form = form_of(slots, instruction="{slots}", max_tokens=32)
    dropped = room.draft()
    dropped.respond("q", (), aloud=True)
    await asyncio.sleep(1)
    dropped.cancel()
    assert room.filled == []
    runner = room.draft()
    runner.respond("q", (), aloud=True)
    await asyncio.sleep(1 if early else 0)
    runner.commit()
    await room.over()
    assert room.filled == [{"intent": "time"}]
    assert runner.turn.heard == "It is three."


@virtual_time
async def test_a_question_that_is_too_long_is_excused_in_words_of_its_own() -> None:
    room = Room(Voices(breaks={"llm"}, tokens=["a"] * 9, error="llm_question_too_long"))
    assert (await room.asked()).turn.fault == "excuse_question_too_long"


# Too late.


@pytest.mark.parametrize("stage", ["stt", "llm", "tts"])
@virtual_time
async def test_an_answer_that_does_not_come_is_given_up_and_said_so(
    stage: str, caplog: pytest.LogCaptureFixture
) -> None:
    engines = Voices()
    room = Room(engines, filler={"after_ms": 0})
    await room.phrases.prepare("en")
    setattr(engines, {"stt": "stt_s", "llm": "ttft_s", "tts": "tts_s"}[stage], 1000.0)
    runner = room.draft()
    runner.recognize(some_voice())
    await asyncio.sleep(0.05)
    committed = room.clock()
    runner.commit()
    await room.over()
    ((at, failed),) = room.told(Failed)
    assert isinstance(failed, Failed)
    assert failed.code == "answer_too_late"
    assert at - committed / 1e9 == pytest.approx(30.0, abs=0.01)
    assert engines.running == 0
    assert (runner.turn.fault, runner.turn.cause, runner.turn.heard) == ("answer_too_late",) * 2 + ("",)
    assert f"given up at {stage}" in caplog.text
    ((begin, end),) = sounding(room)
    assert end - begin == pytest.approx(len("".join(clauses("answer_too_late"))) * 0.05, abs=0.01)
    await runner.ended()
    engines.stt_s = engines.ttft_s = engines.tts_s = 0.1
    assert (await room.asked(2)).turn.heard == "It is three. Good bye."


@virtual_time
async def test_an_answer_that_has_begun_is_not_given_up() -> None:
    room = Room(Voices(tokens=["And more follows. "] * 40, token_s=1.0), answer={"within_s": 3.0})
    runner = await room.asked()
    assert room.told(Failed) == []
    assert runner.turn.heard.count("And more follows.") == 40


@virtual_time
async def test_what_is_stopped_in_time_is_not_given_up_later() -> None:
    room = Room(Voices(ttft_s=1000.0))
    runner = room.draft()
    runner.respond("q", (), aloud=True)
    runner.commit()
    await asyncio.sleep(29.9)
    runner.cancel()
    await runner.ended()
    await asyncio.sleep(100)
    assert room.events == []


@virtual_time
async def test_a_shown_answer_and_a_text_to_be_read_have_the_engines_own_limits() -> None:
    room = Room(Voices(ttft_s=60.0, tts_s=60.0))
    shown = room.draft()
    shown.respond("q", (), aloud=False)
    shown.commit()
    await room.over()
    assert shown.turn.heard == "It is three. Good bye."
    read = room.draft(2)
    read.say("A text.")
    read.commit()
    await room.over()
    assert (read.turn.heard, room.told(Failed)) == ("A text.", [])


# Texts that a voice refuses.


@virtual_time
async def test_a_clause_that_the_voice_refuses_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    room = Room(Voices(tokens=["It is three. ", "Bad one. ", "Good bye."], refuses="Bad"))
    runner = await room.asked()
    assert isinstance(room.events[-1][1], Answered)
    assert runner.turn.fault is None
    assert runner.turn.heard == "It is three. Good bye."
    assert "a clause is left out" in caplog.text
    assert "Bad one" not in caplog.text


@virtual_time
async def test_a_first_clause_that_is_refused_does_not_end_the_answer() -> None:
    room = Room(Voices(tokens=["Bad one. ", "It is three. "], refuses="Bad"))
    assert (await room.asked()).turn.heard == "It is three."


@virtual_time
async def test_a_voice_that_refuses_everything_is_excused() -> None:
    room = Room(Voices(tokens=["It is three. ", "Good bye."]))
    await room.phrases.prepare("en")
    room.engines.refuses = "."
    runner = await room.asked()
    assert (runner.turn.fault, runner.turn.cause) == ("excuse_tts", "engine_refused")
    assert sounding(room)


@virtual_time
async def test_three_refusals_in_a_row_are_a_broken_voice() -> None:
    room = Room(Voices(tokens=["It is three. ", *["Bad one. "] * 9, "Good bye."]))
    await room.phrases.prepare("en")
    room.engines.refuses = "Bad"
    runner = await room.asked()
    assert (runner.turn.heard, runner.turn.fault) == ("It is three.", "excuse_tts")
    assert room.engines.failures.count(("tts", "engine_refused")) == 3 + 1


@virtual_time
async def test_a_voice_that_hangs_up_ends_the_answer() -> None:
    room = Room(Voices(breaks={"tts"}, error="engine_hung_up"))
    runner = await room.asked()
    assert (runner.turn.fault, runner.turn.cause) == ("excuse_tts", "engine_hung_up")


@virtual_time
async def test_b09_a_clause_that_never_stops_is_cut_and_the_next_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room(Voices(tokens=["Number one. ", "Good bye."], never_stops="one"))
    runner = await room.asked()
    assert runner.turn.heard == "Number one. Good bye."
    assert runner.turn.fault is None
    assert "went on for more than 2.7 s" in caplog.text


@virtual_time
async def test_b09_a_clause_without_samples_is_skipped() -> None:
    room = Room(Voices(tokens=["It is three. ", "Silent one. ", "Good bye."], silent="Silent"))
    runner = await room.asked()
    assert (runner.turn.heard, runner.turn.fault) == ("It is three. Good bye.", None)
