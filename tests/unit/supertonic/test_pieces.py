from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from ondam_engines.supertonic.alphabet import measure
from ondam_engines.supertonic.pieces import LONGEST, ends_sentence, halves, pieces


def test_a_short_text_stays_whole() -> None:
    assert list(pieces("안녕하세요. 반갑습니다.")) == ["안녕하세요. 반갑습니다."]


def test_700_syllables_without_a_pause_are_five_parts_and_none_is_lost() -> None:
    text = "가" * 700
    parts = list(pieces(text))
    # 가 is two units, so that 150 fit into 300.
    assert [len(part) for part in parts] == [150, 150, 150, 150, 100]
    assert "".join(parts) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two. three four, five", ["one two. ", "three four, ", "five"]),
        ("one two three four five", ["one two ", "three four ", "five"]),
        ('He said "go." Then more', ['He said "go." ', "Then more"]),
        ("1,250,000,000,000", ["1,250,000,000", ",000"]),
    ],
)
def test_a_text_is_cut_at_the_last_good_pause(text: str, parts: list[str]) -> None:
    assert list(pieces(text, 14 if '"' in text else 13 if text[0] == "1" else 12)) == parts


@given(st.text(alphabet="가강 .,!?ab\u0301é㈜", max_size=400), st.integers(1, 40))
def test_nothing_is_lost_and_nothing_is_longer(text: str, longest: int) -> None:
    parts = list(pieces(text, longest))
    assert "".join(parts) == text
    assert all(parts)
    assert all(measure(part) <= longest or len(part) == 1 for part in parts)


@given(st.text(min_size=1, max_size=60))
def test_halves_are_the_text(text: str) -> None:
    first, second = halves(text)
    assert first + second == text
    assert first
    assert second or len(text) == 1


def test_a_pause_belongs_behind_a_sentence_alone() -> None:
    assert ends_sentence("네. ")
    assert ends_sentence('He said "go." ')
    assert not ends_sentence("네, ")
    assert LONGEST == 300
