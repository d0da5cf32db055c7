"""A character that a voice cannot say never reaches one, and never costs the sentence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ondam.speech import spoken
from ondam.types import Language

SAYABLE = re.compile(r"[A-Za-z0-9가-힣 .,!?…:;'\-]*")


@pytest.mark.parametrize(
    ("text", "language", "left"),
    [
        ("가나다 𓀀 abc", "ko", "가나다 abc"),
        ("가나다 𓀀 abc", "en", "가나다 abc"),
        ("Привет", "ko", ""),
        ("Привет", "en", ""),
        ("Hello Привет world.", "en", "Hello world."),
        ("漢字", "ko", "한자"),
        ("漢字", "en", ""),
        ("हिन्दी and English", "en", "and English"),
        ("안녕 친구", "en", "안녕 친구"),
        ("끝입니다. 𓀀𓀀𓀀. 다음입니다.", "ko", "끝입니다. 다음입니다."),
    ],
)
def test_the_rest_of_the_sentence_is_said(text: str, language: Language, left: str) -> None:
    assert spoken(text, language).spoken == left


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=60), language=st.sampled_from(["ko", "en"]))
def test_a_voice_is_given_hangul_and_ascii_alone(text: str, language: Language) -> None:
    for clause in spoken(text, language).clauses:
        assert SAYABLE.fullmatch(clause), clause
        assert any(sign.isalnum() for sign in clause)
