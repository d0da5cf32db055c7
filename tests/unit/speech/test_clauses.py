from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from tests.unit.speech.chunks import chunked, cuts, writing

from ondam.speech.clauses import ClauseCutter, ClauseLengths


def cut(chunks: Iterable[str]) -> list[str]:
    cutter = ClauseCutter()
    clauses = [clause for chunk in chunks for clause in cutter.feed(chunk)]
    return clauses + cutter.finish()


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("파이는 3.14입니다. 값은 3.14. 끝.", ["파이는 3.14입니다.", "값은 3.14.", "끝."]),
        (
            "Dr. Kim arrived at 9:30 a.m. in the U.S. The v1.0.2 is out.",
            ["Dr. Kim arrived at 9:30 a.m. in the U.S.", "The v1.0.2 is out."],
        ),
        ("1. 사과\n2. 배", ["1. 사과", "2. 배"]),
    ],
)
def test_b01_a_stop_inside_a_number_or_an_abbreviation_ends_nothing(text: str, clauses: list[str]) -> None:
    assert cut(text) == clauses


def test_b01_the_stated_english_line_keeps_its_numbers_and_abbreviations_whole() -> None:
    clauses = cut("Dr. Kim arrived at 9:30 a.m. in the U.S. v1.0.2 is out.")
    for whole in ("Dr. Kim", "9:30 a.m.", "U.S.", "v1.0.2"):
        assert any(whole in clause for clause in clauses)


def test_b01_a_decimal_at_the_end_of_a_sentence_is_released_by_the_next_character() -> None:
    cutter = ClauseCutter()
    assert cutter.feed("값은 3.14.") == []
    assert cutter.feed(" ") == ["값은 3.14."]


def test_b01_a_decimal_at_the_end_of_a_sentence_is_released_by_a_flush() -> None:
    cutter = ClauseCutter()
    assert cutter.feed("값은 3.14.") == []
    assert cutter.flush() == ["값은 3.14."]
    assert cutter.feed(" 끝.") + cutter.finish() == ["끝."]


@pytest.mark.parametrize("half", ["Dr.", "1.", "값은", "값은 3", "3월 1일,", "At 9 a.m"])
def test_a_flush_keeps_what_is_no_whole_sentence(half: str) -> None:
    cutter = ClauseCutter()
    assert [*cutter.feed(half), *cutter.flush()] == []


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("네。알겠어요！정말요？", ["네。", "알겠어요！", "정말요？"]),
        ("끝났습니다.다음은 3시입니다.그리고", ["끝났습니다.", "다음은 3시입니다.", "그리고"]),
        ("３．１４입니다", ["３．１４입니다"]),
        ("음…그건 아니에요", ["음…", "그건 아니에요"]),
        ("했습니다.3시예요", ["했습니다.", "3시예요"]),
    ],
)
def test_b02_sentences_end_without_an_ascii_stop_and_a_space(text: str, clauses: list[str]) -> None:
    assert cut(text) == clauses


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("네, 알겠습니다. 좋아요.", ["네,", "알겠습니다.", "좋아요."]),
        ("네. 알겠습니다.", ["네.", "알겠습니다."]),
        (
            "오늘은 맑고, 기온은 23.5도이고, 바람은 약하고, 비는 없습니다.",
            ["오늘은 맑고,", "기온은 23.5도이고,", "바람은 약하고, 비는 없습니다."],
        ),
        ("Sure. It is $19.99, or 1,250 won.", ["Sure.", "It is $19.99,", "or 1,250 won."]),
        ("I was born in 1986. Then we met.", ["I was born in 1986.", "Then we met."]),
        (
            "먼저 1. 사과 2. 배 3. 귤입니다. 답은 42. 다음은요?",
            ["먼저 1. 사과 2. 배 3. 귤입니다.", "답은 42.", "다음은요?"],
        ),
        ("오늘은 2026. 11. 29. 오후 3시 5분입니다.", ["오늘은 2026. 11. 29. 오후 3시 5분입니다."]),
        ("2026.11.29.까지 하세요.", ["2026.11.29.까지 하세요."]),
        ("음... 그건 well... maybe. Wait... What?!", ["음...", "그건 well... maybe.", "Wait...", "What?!"]),
        ('그는 "안녕하세요."라고 했다. "네." 하고', ['그는 "안녕하세요."라고 했다.', '"네."', "하고"]),
        ("https://a.b/c?d=1,2!x 끝.", ["https://a.b/c?d=1,2!x 끝."]),
        (
            "See e.g. this. Mr. Lee's No. 3 is approx. 5 km.",
            ["See e.g. this.", "Mr. Lee's No. 3 is approx. 5 km."],
        ),
        ("On November 29, 2026, we met.", ["On November 29, 2026,", "we met."]),
        ("1, 2, 3 그리고 4입니다.", ["1, 2, 3 그리고 4입니다."]),
        ("가. 첫째\n나. 둘째", ["가. 첫째", "나. 둘째"]),
        ("버전은 v1.0.2. 다음.", ["버전은 v1.0.2.", "다음."]),
        ("IP는 192.168.0.1입니다.", ["IP는 192.168.0.1입니다."]),
        ("제목\n\n본문", ["제목", "본문"]),
        ("...", ["..."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_clauses_end_where_a_reader_would_breathe(text: str, clauses: list[str]) -> None:
    assert cut(text) == clauses


def test_a_connective_ending_ends_a_long_clause() -> None:
    assert cut("날씨가 아주 좋지만 바람이 불어요") == ["날씨가 아주 좋지만", "바람이 불어요"]


def test_a_conjunction_ends_a_long_english_clause() -> None:
    assert cut("The weather in the mountains was fine because the wind had gone") == [
        "The weather in the mountains was fine",
        "because the wind had gone",
    ]


@pytest.mark.parametrize(
    "endless", ["가" * 1000, "낱말 " * 400, "word " * 600, "1" * 1000, "a" * 2000, "." * 5000]
)
def test_endless_text_is_cut_and_nothing_is_lost(endless: str) -> None:
    clauses = cut(endless)
    assert "".join(clauses) == "".join(endless.split(" ")) or "".join("".join(clauses).split()) == "".join(
        endless.split()
    )
    longest = ClauseLengths().cap[2]
    assert all(len(clause) <= max(2 * longest / 0.4 + 1, 1001) for clause in clauses)
    assert max(map(len, cut("word " * 600))) <= 300


def test_a_cap_never_parts_a_number_from_its_counter() -> None:
    assert all(not clause[-1].isdigit() for clause in cut("사과 3 개와 배 12 개와 " * 60))


@given(writing, cuts)
def test_clauses_are_the_same_for_every_chunking_and_lose_nothing(text: str, edges: list[int]) -> None:
    clauses = cut(chunked(text, edges))
    assert clauses == cut([text]) == cut(text)
    assert "".join("".join(clauses).split()) == "".join(text.split())


def test_only_the_first_clause_ends_before_a_phrase_and_never_after_a_number_or_an_abbreviation() -> None:
    assert cut("The capital of France is a beautiful city in the north of the country and it is old.") == [
        "The capital of France is a beautiful city",
        "in the north of the country and it is old.",
    ]
    whole = "We will meet again at half past 9 in the morning."
    assert cut(whole) == [whole]


def test_a_range_of_hours_is_one_clause_though_its_first_half_ends_in_a_stop() -> None:
    assert cut("Open 9 a.m. - 5 p.m. daily. Come in.") == ["Open 9 a.m. - 5 p.m. daily.", "Come in."]


def test_days_in_the_form_of_offices_are_not_cut_where_a_range_parts_them() -> None:
    text = "기간은 2025. 3. 1.~2026. 2. 28.입니다. 끝."
    assert cut(text) == ["기간은 2025. 3. 1.~2026. 2. 28.입니다.", "끝."]
