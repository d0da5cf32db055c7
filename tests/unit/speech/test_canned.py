"""Answers of the user's own, before a language model is asked."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import pytest

from ondam.speech.canned import CannedAnswer, CannedAnswers, compiled, normalised
from ondam.types import Language


@dataclass(frozen=True)
class Entry:
    match: tuple[str, ...] = ()
    pattern: str | None = None
    say: tuple[str, ...] = ("yes",)
    language: Language | None = None


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("Hello!", "hello"),
        ("  HELLO,   there… ", "hello there"),
        ("What's up?", "whats up"),
        ("What’s up?", "whats up"),
        ("안녕~ 온담아!!", "안녕 온담아"),
        (unicodedata.normalize("NFD", "안녕"), "안녕"),
        ("GRÜSSE ẞ", "grüsse ss"),
        ("3 + 4 = 7", "3 4 7"),
        ("🙂…?!", ""),
    ],
)
def test_patterns_see_lower_case_letters_digits_and_single_spaces(said: str, plain: str) -> None:
    assert normalised(said) == plain


@pytest.mark.parametrize(
    "said", ["안녕", "안녕!", " 안 녕 ", "HELLO.", "Hello", unicodedata.normalize("NFD", "안녕")]
)
def test_case_spaces_marks_and_the_form_of_hangul_make_no_difference(said: str) -> None:
    answers = CannedAnswers([Entry(match=("안녕", "hello"), say=("네, 안녕하세요.",))])
    assert answers.find(said, "ko") == CannedAnswer(0, "네, 안녕하세요.")


@pytest.mark.parametrize("said", ["안녕하세요", "hello there", "hell", "", "?!", "say hello"])
def test_a_match_is_the_whole_question(said: str) -> None:
    assert CannedAnswers([Entry(match=("안녕", "hello"))]).find(said, "ko") is None


@pytest.mark.parametrize(
    ("said", "fits"),
    [
        ("지금 몇 시야?", True),
        ("몇시", True),
        ("몇 시에 자니", False),
        ("what time is it", False),
        ("WHAT TIME", True),
    ],
)
def test_a_pattern_fits_the_whole_question(said: str, fits: bool) -> None:
    answers = CannedAnswers([Entry(pattern="(지금 )?몇 ?시(야|예요)?|What time")])
    assert (answers.find(said, "ko") is not None) is fits


def test_the_first_entry_that_fits_answers_and_an_entry_of_another_language_does_not() -> None:
    answers = CannedAnswers(
        [
            Entry(match=("hi",), say=("ko",), language="ko"),
            Entry(match=("hi",), say=("en",), language="en"),
            Entry(pattern="h.*", say=("both",)),
        ]
    )
    assert answers.find("Hi", "en") == CannedAnswer(1, "en")
    assert answers.find("Hi", "ko") == CannedAnswer(0, "ko")
    assert answers.find("Hey", "ko") == CannedAnswer(2, "both")


def test_several_answers_take_turns_when_they_were_really_spoken() -> None:
    answers = CannedAnswers([Entry(match=("hi",), say=("one", "two"))])
    said = []
    for _ in range(3):
        found = answers.find("hi", "en")
        assert found is not None
        assert answers.find("hi", "en") == found, "a draft that was dropped takes no turn"
        answers.spoken(found)
        said.append(found.say)
    assert said == ["one", "two", "one"]


def test_a_pattern_that_runs_away_is_stopped_and_not_tried_again() -> None:
    # Doubles its work with every two characters; without a limit this test would not end.
    answers = CannedAnswers([Entry(pattern="(a|aa)+[bc]"), Entry(pattern="a+", say=("second",))])
    found = answers.find("a" * 150, "en")
    assert found == CannedAnswer(1, "second")
    assert answers.run_away == ["(a|aa)+[bc]"]
    assert answers.find("ab", "en") is None
    assert answers.run_away == ["(a|aa)+[bc]"]


def test_a_long_question_is_compared_with_matches_alone() -> None:
    answers = CannedAnswers([Entry(pattern="a+"), Entry(match=("a" * 201,), say=("exact",))])
    assert answers.find("a" * 200, "en") == CannedAnswer(0, "yes")
    assert answers.find("a" * 201, "en") == CannedAnswer(1, "exact")


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "*a", "[z-a]", "(?P<n>a)(?P=m)"])
def test_what_is_no_regular_expression_says_why(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        compiled(pattern)
