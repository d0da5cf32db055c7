from __future__ import annotations

import pytest

from ondam.clients.json_text import (
    Surrogates,
    count_at,
    json_object,
    list_at,
    number_at,
    object_at,
    one_line,
    text_at,
)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "null",
        "1",
        '"x"',
        "",
        "{",
        '{"a": NaN}',
        '{"a": Infinity}',
        "[" * 100_000,
        b'{"a": "\xff"}',
        "{} {}",
    ],
)
def test_only_an_object_of_valid_json_is_taken(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_object(text)


def test_a_number_too_large_for_a_float_is_no_number() -> None:
    with pytest.raises(ValueError, match="no number"):
        number_at(json_object('{"a": 1e999}'), "a")


@pytest.mark.parametrize("reader", [text_at, number_at, count_at])
def test_absent_and_null_are_none(reader: object) -> None:
    assert callable(reader)
    assert reader({}, "a") is None
    assert reader({"a": None}, "a") is None


@pytest.mark.parametrize("reader", [text_at, number_at, count_at, object_at, list_at])
def test_a_truth_value_is_nothing_else(reader: object) -> None:
    assert callable(reader)
    with pytest.raises(ValueError, match='"a" is no'):
        reader({"a": True}, "a")


def test_a_count_is_whole_and_not_below_zero() -> None:
    assert count_at({"a": 3}, "a") == 3
    for wrong in (-1, 1.5):
        with pytest.raises(ValueError, match="no count"):
            count_at({"a": wrong}, "a")


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        text_at(json_object(r'{"a": "\ud83d"}'), "a")


def test_a_character_cut_in_two_is_joined() -> None:
    surrogates = Surrogates()
    assert [surrogates.whole(t) for t in ("네 \ud83d", "\ude42 끝", "ok")] == ["네 ", "🙂 끝", "ok"]


def test_a_half_without_its_other_half_is_left_out() -> None:
    surrogates = Surrogates()
    assert [surrogates.whole(t) for t in ("a\ude42b", "\ud83d", "c")] == ["ab", "", "c"]


def test_a_servers_words_fit_on_one_line() -> None:
    assert one_line("a\n\x1b[31m b\t\0c") == "a [31m b c"
    assert len(one_line("x" * 10_000)) == 200
