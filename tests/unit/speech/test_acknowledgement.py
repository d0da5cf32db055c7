"""Listeners' words against words that want the floor."""

from __future__ import annotations

import pytest

from ondam.speech.acknowledgement import acknowledges, dismisses


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
