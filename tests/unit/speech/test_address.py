from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ondam.speech.address import addressed
from ondam.types import Language

NAMES = ("온담", "Ondam")
GOLDEN: dict[str, Any] = tomllib.loads((Path(__file__).parent / "golden_address.toml").read_text("utf-8"))


@pytest.mark.parametrize(("heard", "rest"), GOLDEN["ko"].items())
def test_korean_that_is_addressed_to_it_loses_the_name(heard: str, rest: str) -> None:
    assert addressed(heard, NAMES, "ko") == rest


@pytest.mark.parametrize(("heard", "rest"), GOLDEN["en"].items())
def test_english_that_is_addressed_to_it_loses_the_name(heard: str, rest: str) -> None:
    assert addressed(heard, NAMES, "en") == rest


@pytest.mark.parametrize("heard", GOLDEN["others"]["ko"])
def test_korean_said_to_somebody_else_is_not_taken(heard: str) -> None:
    assert addressed(heard, NAMES, "ko") is None


@pytest.mark.parametrize("heard", GOLDEN["others"]["en"])
def test_english_said_to_somebody_else_is_not_taken(heard: str) -> None:
    assert addressed(heard, NAMES, "en") is None


def test_the_tables_are_long_enough_to_mean_something() -> None:
    assert min(len(GOLDEN["ko"]), len(GOLDEN["en"])) >= 30
    assert min(map(len, GOLDEN["others"].values())) >= 30


@pytest.mark.parametrize(
    ("name", "heard", "rest"),
    [
        ("자비스", "자비쓰 불 켜줘", "불 켜줘"),
        ("자비스", "차비스야 불 켜줘", "불 켜줘"),
        ("자비스", "서비스 불 켜줘", None),
        ("하나", "하나 불 켜줘", "불 켜줘"),
        ("하나", "하나야 불 켜줘", "불 켜줘"),
        ("하나", "한아 불 켜줘", None),
        ("하나", "하나로 불 켜줘", None),
        ("별", "별아 불 켜줘", "불 켜줘"),
        ("별", "뼐 불 켜줘", None),  # a name of one syllable must be spelt right
        ("김 비서", "김 비서, 불 켜줘", "불 켜줘"),
        ("김 비서", "김비서님 불 켜줘", "불 켜줘"),
        ("김 비서", "김치 불에 올려줘", None),
        ("Sam", "Sam, stop", "stop"),
        ("Sam", "Sum, stop", None),  # nor has a short one room for a mistake
        ("Jarvis", "Jarvus, stop", "stop"),
        ("Jarvis", "Hey Jar vis stop", "stop"),
        ("Jarvis", "Service, stop", None),
        ("Big Ben", "Big Ben, stop", "stop"),
        ("Big Ben", "Bigben stop", "stop"),
        ("Big Ben", "Big bang stop", None),
        ("Computer", "Kompjuter, stop", "stop"),
    ],
)
def test_any_name_will_do_and_its_length_says_how_much_may_be_misheard(
    name: str, heard: str, rest: str | None
) -> None:
    language: Language = "en" if name.isascii() else "ko"
    assert addressed(heard, [name], language) == rest


def test_decomposed_hangul_is_the_same_name() -> None:
    assert (
        addressed("\u110b\u1169\u11ab\u1103\u1161\u11b7\u110b\u1161 \u1107\u116e\u11af", NAMES, "ko") == "불"
    )
    assert addressed("온담아 불", ["\u110b\u1169\u11ab\u1103\u1161\u11b7"], "ko") == "불"


def test_without_a_name_nothing_is_addressed() -> None:
    assert addressed("온담아 불 켜줘", [], "ko") is None
    assert addressed("온담아 불 켜줘", ["", " .,"], "ko") is None


@given(st.text(max_size=60), st.sampled_from(["ko", "en"]))
def test_whatever_is_heard_the_rest_is_part_of_it_and_the_name_in_front_is_found(
    heard: str, language: Language
) -> None:
    rest = addressed(heard, NAMES, language)
    assert rest is None or len(rest) <= 4 * len(heard) + 1  # NFC may lengthen
    assert addressed(f"온담아, {heard}", NAMES, language) is not None
