from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ondam.speech.answer import ClauseStream, spoken
from ondam.speech.reading import reading
from ondam.types import Language

HERE = Path(__file__).parent


def golden(name: str) -> list[tuple[str, str]]:
    return list(tomllib.loads((HERE / name).read_text("utf-8")).items())


@pytest.mark.parametrize(("written", "said"), golden("golden_ko.toml"))
def test_korean_is_read_as_a_korean_would(written: str, said: str) -> None:
    assert reading(written, "ko") == said


@pytest.mark.parametrize(("written", "said"), golden("golden_en.toml"))
def test_english_is_read_as_an_english_speaker_would(written: str, said: str) -> None:
    assert reading(written, "en") == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1,250원", "천이백오십 원"),
        ("010-1234-5678", "공일공 일이삼사 오육칠팔"),
        ("2026-11-29 오후 3시 5분", "이천이십육년 십일월 이십구일 오후 세 시 오 분"),
        ("3개 3명 20살 3층", "세 개 세 명 스무 살 삼 층"),
        ("1번째", "첫 번째"),
        ("-5℃", "영하 오 도"),
        ("50%", "오십 퍼센트"),
        ("1/2", "이분의 일"),
        ("24/7", "이십사 시간 칠 일"),
        ("60km/h", "시속 육십 킬로미터"),
        ("2025년", "이천이십오년"),
        ("0.5배", "영점오 배"),
        ("10,000,000,000원", "백억 원"),
        ("AI·GPU", "에이아이, 지피유"),
    ],
)
def test_b06_numbers_are_read_in_the_system_their_counter_asks_for(written: str, said: str) -> None:
    assert reading(written, "ko") == said


def test_decomposed_hangul_is_read_like_composed() -> None:
    assert reading("3\u1100\u1162", "ko") == "세 개"


@pytest.mark.parametrize("language", ["ko", "en"])
def test_a_character_without_a_reading_never_costs_the_sentence(language: Language) -> None:
    said = reading("AI\u0000 ☃ 東 ふ Ж \U0001fae8 ￼ 3", language)
    assert said.startswith("에이아이" if language == "ko" else "A I")
    assert said.endswith("삼" if language == "ko" else "three")


@given(st.text(max_size=60), st.sampled_from(["ko", "en"]))
def test_any_text_has_a_reading_without_digits_or_control_characters(text: str, language: Language) -> None:
    said = reading(text, language)
    assert not any(sign.isdigit() and sign.isascii() for sign in said)
    assert said == "" or said.isprintable()


def test_the_voice_gets_the_reading_and_the_eye_keeps_the_digits() -> None:
    stream = ClauseStream("ko")
    clauses = [*stream.feed("사과가 3개 있어요. "), *stream.finish()]
    assert [(clause.written, clause.spoken) for clause in clauses] == [
        ("사과가 3개 있어요.", "사과가 세 개 있어요."),
    ]


def test_a_whole_answer_is_filtered_cut_and_read() -> None:
    said = spoken("<think>음</think>**오늘**은 3시에, [문서](https://a.b)를 보세요. 값은 3.14. 🙂", "ko")
    assert said.clauses == ["오늘은 세 시에,", "문서를 보세요.", "값은 삼점일사."]
    assert said.spoken == "오늘은 세 시에, 문서를 보세요. 값은 삼점일사."


@pytest.mark.parametrize("text", ["", "...", "🙂", "```\nx\n```", "<think>x"])
def test_b05_nothing_to_say_gives_no_clause(text: str) -> None:
    assert spoken(text, "ko").clauses == []


def test_b04_clauses_before_an_unopened_closing_tag_are_taken_back() -> None:
    stream = ClauseStream("ko")
    assert [clause.spoken for clause in stream.feed("비밀입니다. 또")] == ["비밀입니다."]
    assert stream.retractions == 0
    clauses = [*stream.feed("</think>답입니다."), *stream.finish()]
    assert stream.retractions == 1
    assert [clause.spoken for clause in clauses] == ["답입니다."]


@pytest.mark.parametrize("address", ["naver.com/map?x=1", "ftp://a.b/c.txt", "mailto:a@b.kr", "a.co.kr/b/"])
def test_an_address_is_named_and_not_read(address: str) -> None:
    assert reading(f"{address}를 보세요", "ko") == "링크를 보세요"
    assert reading(f"See {address}, please.", "en") == "See link, please."
    assert reading("Node.js/Express", "en") == "Node.js or Express"
