from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ondam_engines.qwen_tts.pieces import LONGEST_PIECE, longest_s, pieces


def test_a_short_text_is_one_piece() -> None:
    assert list(pieces(" 안녕하세요. ")) == ["안녕하세요."]
    assert list(pieces(" ")) == []


def test_a_long_text_is_cut_after_a_sentence() -> None:
    first = "가" * 99 + "."
    assert list(pieces(f"{first} {first} 끝.")) == [first, f"{first} 끝."]


def test_a_text_without_pauses_is_cut_where_it_must() -> None:
    assert [len(piece) for piece in pieces("가" * 400)] == [150, 150, 100]


@given(st.text(alphabet="가a1 ,.", max_size=1000))
def test_nothing_is_lost_and_nothing_is_too_long(text: str) -> None:
    cut = list(pieces(text))
    assert "".join(cut).replace(" ", "") == text.replace(" ", "")
    assert all(0 < len(piece) <= LONGEST_PIECE for piece in cut)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 1.5),
        ("네.", 1.5 + 0.3 + 0.12),
        ("hello", 1.5 + 5 * 0.12),
        ("25일", 1.5 + 2 * 0.6 + 0.3),
        ("日本", 1.5 + 2 * 0.3),
    ],
)
def test_a_text_lasts_at_most_what_its_signs_last(text: str, seconds: float) -> None:
    assert longest_s(text) == pytest.approx(seconds)
