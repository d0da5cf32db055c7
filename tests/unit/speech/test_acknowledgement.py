"""Listeners' words against words that want the floor."""

from __future__ import annotations

import pytest

from ondam.speech.acknowledgement import acknowledges, dismisses, may_end_in_one, stops


@pytest.mark.parametrize(
    "words",
    [
        "Mhm.",
        "Uh-huh.",
        "uh huh",
        "Yeah, okay.",
        "I see.",
        "응.",
        "네, 네.",
        "아, 그래요?",
        "응 응 그래",
        "음...",
    ],
)
def test_signs_of_listening_are_no_turn(words: str) -> None:
    assert acknowledges(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "...",
        "No.",
        "Wait",
        "What?",
        "Yes, but why?",
        "아니",
        "아니요, 잠깐만요.",
        "네 그런데요",
        "응 응 응 응 응",
        "뭐라고?",
    ],
)
def test_everything_else_wants_the_floor(words: str) -> None:
    assert not acknowledges(words)


@pytest.mark.parametrize(
    "words",
    [
        "Stop!",
        "Stop it.",
        "That’s enough.",
        "Thank you.",
        "그만!",
        "조용히 해.",
        "조용히 좀 해.",
        "그만 좀 해!",
        "멈춰 줘",
        "됐어요.",
    ],
)
def test_the_wish_for_silence_needs_no_answer(words: str) -> None:
    assert dismisses(words)


@pytest.mark.parametrize(
    "words", ["", "Stop at the next station?", "그만두면 어떻게 돼?", "Thank you, and what about Busan?"]
)
def test_a_question_that_begins_like_one_is_a_question(words: str) -> None:
    assert not dismisses(words)


@pytest.mark.parametrize(
    "words", ["Stop.", "stop it", "Never mind.", "그만!", "이제 그만.", "멈춰", "그만해"]
)
def test_some_wishes_can_be_nothing_else_even_right_after_a_question(words: str) -> None:
    assert stops(words)


@pytest.mark.parametrize(
    "words", ["Thank you.", "Enough?", "cancel", "취소", "정지", "조용히", "고마워", "stop the music", ""]
)
def test_others_may_be_the_rest_of_the_question(words: str) -> None:
    assert not stops(words)


def test_every_entry_is_found_again_at_the_end_of_a_question() -> None:
    assert may_end_in_one("지금 몇 시야 조용히 좀 해 줘")
    assert may_end_in_one("What time is it? Stop it, please.")
    assert may_end_in_one("Stop.")
    assert may_end_in_one("What time is it? Uh-huh.")
    assert not may_end_in_one("When does it stop here?")
    assert not may_end_in_one("")
