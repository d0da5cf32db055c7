from __future__ import annotations

import pytest

from ondam.measure.word_errors import Errors, Score, plain, score, total


def test_case_punctuation_and_the_way_of_writing_numbers_are_no_errors() -> None:
    same = score("I don't have 3 apples!", "i dont have three apples", "en")
    assert (same.words, same.characters) == (Errors(0, 5), Errors(0, 24))
    assert same.as_written.wrong > 0


def test_each_word_put_in_left_out_or_added_is_an_error() -> None:
    # sky blue -> skies blew red: two in the place of others, one added, of five words.
    made = score("Why is the sky blue?", "why is the skies blew red", "en")
    assert made.words == Errors(3, 5)
    assert made.as_json()["wer"] == 0.6


def test_hearing_nothing_is_all_errors_and_hearing_more_is_over_one() -> None:
    assert score("Good morning", "", "en").words == Errors(2, 2)
    assert score("Yes", "yes yes yes", "en").as_json()["wer"] == 2.0


def test_korean_counts_characters_and_neither_spaces_nor_numerals() -> None:
    same = score("사과 세 개 주세요.", "사과 3개 주세요", "ko")
    assert same.words is None
    assert same.characters == Errors(0, 7)
    assert score("오늘 날씨", "오늘 달씨", "ko").as_json()["cer"] == 0.25


def test_composed_and_decomposed_hangul_are_the_same() -> None:
    import unicodedata

    assert score("한글", unicodedata.normalize("NFD", "한글"), "ko").as_written == Errors(0, 2)


def test_a_long_utterance_counts_for_more_than_a_short_one() -> None:
    short, long = score("no", "yes", "en"), score("one two three four five six seven", " ".join(
        ["one", "two", "three", "four", "five", "six", "seven"]), "en")  # fmt: skip
    summed = total([short, long])
    assert summed is not None
    assert summed.words == Errors(1, 8)
    assert total([]) is None


@pytest.mark.parametrize("said", ["", " \n", "?!…"])
def test_nothing_said_is_no_reference(said: str) -> None:
    assert plain(said, "en") == plain(said, "ko") == ""
    with pytest.raises(ValueError, match="nothing"):
        score(said, "something", "en")


def test_no_rate_of_nothing() -> None:
    assert Score(None, Errors(0, 0), Errors(0, 0)).as_json()["cer"] is None
