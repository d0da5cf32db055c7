from __future__ import annotations

import unicodedata

import pytest

from ondam_engines.supertonic.alphabet import Alphabet, measure

KNOWN = {chr(code) for code in (*range(0x20, 0x7F), *range(0x300, 0x309), *range(0x1100, 0x1200))}
"""Latin, some accents, Hangul in its parts."""

ALPHABET = Alphabet(KNOWN.__contains__)


@pytest.mark.parametrize(
    ("text", "fitted"),
    [
        ("별점은 ⭐⭐⭐ 입니다", "별점은 입니다"),
        ("데이터 分析 결과", "데이터 결과"),
        ("우리 가족 👨\u200d👩\u200d👧\u200d👦 입니다", "우리 가족 입니다"),
        ("좋아요👍🏽네", "좋아요 네"),
        ("한글🇰🇷국기", "한글 국기"),
        ("1️⃣ 번", "1 번"),
        ("naïve café", "naïve café"),
        ("Łódź, Straße", "Lódź, Strasse"),
        ("Ωmega", "mega"),
        ("soft\u00adhyphen", "softhyphen"),
        ("zero\u200bwidth", "zerowidth"),
        ("안녕。 반가워요、 네", "안녕. 반가워요, 네"),
        ("「온담」", '"온담"'),
        ("３시 ＡＢＣ", "３시 ＡＢＣ"),
        ("hi \U000e0001 x", "hi x"),
        ("a\ud800b", "ab"),
        ("<ko>말</ko>", "ko 말 /ko"),
        ("me@home", "me at home"),
        ("e.g., this", "for example, this"),
        ("줄\n바꿈\t탭", "줄 바꿈 탭"),
    ],
)
def test_what_is_unknown_leaves_and_what_is_known_stays(text: str, fitted: str) -> None:
    assert ALPHABET.fit(text) == fitted


@pytest.mark.parametrize("text", ["", " ", "...", "⭐", "分析", "👨\u200d👩\u200d👧", "\u200b", "?!", "–"])
def test_nothing_to_say_is_empty(text: str) -> None:
    assert ALPHABET.fit(text) == ""


def test_hangul_from_a_mac_and_hangul_of_its_letters_alone_are_read() -> None:
    decomposed = unicodedata.normalize("NFD", "한국어")
    assert len(decomposed) == 8
    assert ALPHABET.fit(decomposed) == "한국어"
    # ㅋ is a letter of its own (U+314B) whose decomposed form is one that a syllable is made of.
    assert ALPHABET.fit("ㅋㅋ") == "ㅋㅋ"


def test_an_unknown_accent_leaves_its_letter() -> None:
    without_accents = Alphabet(lambda sign: sign.isascii())
    assert without_accents.fit("naïve café") == "naive cafe"


def test_every_character_there_is_can_be_fitted() -> None:
    everything = "".join(map(chr, range(0x110000)))
    fitted = unicodedata.normalize("NFKD", ALPHABET.fit(everything))
    assert set(fitted) <= KNOWN


def test_a_syllable_measures_as_many_units_as_it_has_letters() -> None:
    assert measure("가") == 2
    assert measure("강") == 3
    assert measure("a b") == 3
    assert measure("안녕하세요") == 3 + 3 + 2 + 2 + 2
