"""Fixed phrases as sound: made once, bounded, there when no voice is."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes.virtual_time import virtual_time
from tests.unit.pipeline.one_draft import Voices

from ondam import messages
from ondam.pipeline.phrases import FILLER, LONGEST_S, MOST, PREPARED, Fillers, Phrases
from ondam.types import Language, TurnId

ONE_MOMENT = messages.text(FILLER, "en")


@virtual_time
async def test_each_phrase_is_made_once_for_a_voice_and_a_language() -> None:
    engines = Voices()
    phrases = Phrases(engines)
    await asyncio.gather(phrases.prepare("en"), phrases.prepare("en"))
    said = len(engines.said)
    assert len(phrases) == len(PREPARED)
    await phrases.prepare("en")
    assert len(engines.said) == said
    await phrases.prepare("ko")
    assert len(phrases) == 2 * len(PREPARED)
    engines.name = "second"
    await phrases.prepare("en")
    assert len(phrases) == 3 * len(PREPARED)
    assert engines.running == 0


@virtual_time
async def test_the_filler_is_made_first_and_no_phrase_counts_as_an_answer() -> None:
    engines = Voices()
    await Phrases(engines).prepare("en")
    assert engines.said[0] == ONE_MOMENT
    assert engines.counted == []


@virtual_time
async def test_a_phrase_is_what_the_voice_said() -> None:
    phrases = Phrases(Voices())
    await phrases.prepare("en")
    audio = phrases.find(ONE_MOMENT, "en")
    assert audio is not None
    # 11 characters at 50 ms.
    assert audio.rate_hz == 22_050
    assert audio.seconds == pytest.approx(0.55, abs=0.001)
    assert phrases.find(ONE_MOMENT, "ko") is None
    assert phrases.find("Two moments.", "en") is None


@virtual_time
async def test_the_voice_that_speaks_now_is_preferred_and_any_other_will_do() -> None:
    engines = Voices(second_per_character=0.05)
    phrases = Phrases(engines)
    await phrases.prepare("en")
    engines.name, engines.second_per_character = "spare", 0.1
    assert phrases.find(ONE_MOMENT, "en", any_voice=False) is None
    other = phrases.find(ONE_MOMENT, "en")
    assert other is not None
    assert other.seconds == pytest.approx(0.55, abs=0.001)
    await phrases.prepare("en")
    spare = phrases.find(ONE_MOMENT, "en")
    assert spare is not None
    assert spare.seconds == pytest.approx(1.1, abs=0.001)
    engines.down.add("tts")
    assert phrases.find(ONE_MOMENT, "en") is not None
    assert phrases.find(ONE_MOMENT, "en", any_voice=False) is None


@virtual_time
async def test_what_was_not_used_for_longest_makes_room() -> None:
    engines = Voices()
    phrases = Phrases(engines, most=len(PREPARED))
    await phrases.prepare("en")
    assert phrases.find(ONE_MOMENT, "en") is not None  # used: now the youngest
    engines.name = "second"
    engines.refuses = "Sorry"  # only four others are made
    await phrases.prepare("en")
    assert len(phrases) == len(PREPARED)
    engines.name = "first"
    kept = [code for code in PREPARED if phrases.find(messages.text(code, "en"), "en", any_voice=False)]
    gone = {"excuse_llm", "excuse_tts", "excuse_stt", "answer_too_late"}
    assert kept == [code for code in PREPARED if code not in gone]


@virtual_time
async def test_all_together_are_no_longer_than_the_bound() -> None:
    # 11 to 71 characters each: 0.5 to 3.6 s, and about 18 s together in a voice.
    engines = Voices()
    phrases = Phrases(engines, longest_s=40.0)
    for engines.name in ("first", "second", "third"):
        await phrases.prepare("en")
    assert 40 - 3.6 < phrases.seconds <= 40


@virtual_time
async def test_a_phrase_without_sound_or_too_long_to_be_one_is_not_kept() -> None:
    phrases = Phrases(Voices(silent="Sorry"))
    await phrases.prepare("en")
    assert phrases.find(messages.text("excuse_llm", "en"), "en") is None
    assert phrases.find(ONE_MOMENT, "en") is not None
    slow = Phrases(Voices(second_per_character=1.0))
    await slow.prepare("en")
    assert slow.find(ONE_MOMENT, "en") is not None
    assert slow.find(messages.text("excuse_llm", "en"), "en") is None
    assert slow.seconds <= LONGEST_S


@virtual_time
async def test_a_voice_that_goes_on_and_on_leaves_no_half_phrase() -> None:
    phrases = Phrases(Voices(never_stops="Sorry"))
    await phrases.prepare("en")
    assert phrases.find(messages.text("excuse_llm", "en"), "en") is None
    assert phrases.find(messages.text("no_answer", "en"), "en") is not None


@virtual_time
async def test_a_voice_that_is_gone_ends_the_preparing_and_the_next_one_completes_it() -> None:
    engines = Voices(breaks={"tts"})
    phrases = Phrases(engines)
    await phrases.prepare("en")
    assert (len(phrases), len(engines.said)) == (0, 1)
    engines.breaks.clear()
    engines.down.add("tts")
    await phrases.prepare("en")
    assert len(engines.said) == 1
    engines.down.clear()
    await phrases.prepare("en")
    assert len(phrases) == len(PREPARED)


@virtual_time
async def test_what_the_first_voice_cannot_say_the_spare_one_does() -> None:
    spare = Voices(name="spare")
    engines = Voices(breaks={"tts"}, spare=spare)
    phrases = Phrases(engines)
    await phrases.prepare("en")
    assert (len(phrases), len(engines.said)) == (len(PREPARED), 1)
    assert phrases.find(ONE_MOMENT, "en") is not None
    engines.breaks.clear()
    await phrases.prepare("en")
    assert len(phrases) == 2 * len(PREPARED)


@virtual_time
async def test_an_interrupted_preparing_holds_no_engine() -> None:
    engines = Voices()
    phrases = Phrases(engines)
    preparing = asyncio.create_task(phrases.prepare("en"))
    await asyncio.sleep(0.02)
    assert engines.running == 1
    preparing.cancel()
    await asyncio.gather(preparing, return_exceptions=True)
    assert engines.running == 0
    await phrases.prepare("en")
    assert len(phrases) == len(PREPARED)


def test_two_voices_in_two_languages_have_room() -> None:
    assert 4 * len(PREPARED) <= MOST


@pytest.mark.parametrize("language", ["ko", "en"])
@pytest.mark.parametrize("code", PREPARED)
def test_a_phrase_is_whole_without_facts(code: str, language: Language) -> None:
    assert "{" not in messages.text(code, language)


def test_a_filler_comes_once_in_a_turn_and_not_in_two_turns_running() -> None:
    fillers = Fillers()
    may = []
    for turn in map(TurnId, (1, 1, 2, 3, 3, 4, 5)):
        may.append(fillers.may(turn))
        if may[-1]:
            fillers.said(turn)
    assert may == [True, False, False, True, False, False, True]
