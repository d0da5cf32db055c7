from __future__ import annotations

import pytest

from ondam_engines.piper.pieces import LONGEST_PIECE, pieces


def test_a_usual_clause_is_one_piece() -> None:
    text = "The capital of France, as you know, is Paris. Sure."
    assert list(pieces(text)) == [text]


def test_a_long_text_is_cut_behind_its_last_sentence_that_fits() -> None:
    first = "a" * 60 + ". " + "b" * 60 + ", " + "c" * 30 + "."
    assert list(pieces(f"{first} {'d' * 100}, {'e' * 50}.")) == [first, f" {'d' * 100}, {'e' * 50}."]


def test_without_a_sentence_a_comma_is_taken_before_a_space() -> None:
    first = "a" * 150 + ","
    assert next(pieces(f"{first} {'b' * 20} {'c' * 100}")) == first


def test_a_pause_near_the_beginning_is_passed_over() -> None:
    assert next(pieces("Yes. " + "a" * 150 + " " + "b" * 150)) == "Yes. " + "a" * 150


def test_a_word_without_end_is_cut_anywhere() -> None:
    assert [len(piece) for piece in pieces("a" * 450)] == [200, 200, 50]


@pytest.mark.parametrize("text", ["", "a", "word " * 300, "a, b. " * 200, "x" * 1_999, ". " * 500])
def test_nothing_is_lost_and_no_piece_is_too_long(text: str) -> None:
    parts = list(pieces(text))
    assert "".join(parts) == text
    assert all(len(part) <= LONGEST_PIECE for part in parts)
