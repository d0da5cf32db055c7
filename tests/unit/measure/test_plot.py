"""The picture of a run: what is in it, and that it is one."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.control.fake_daemon import turn as wire_turn

from ondam.measure.plot import MOST_DOTS, median_turn, svg

SVG = "{http://www.w3.org/2000/svg}"


def turns(*first_audio_ms: float, population: str = "settled") -> list[dict[str, Any]]:
    settled = population == "settled"
    return [
        {**wire_turn(), "clip": f"{ms:g}.wav", "first_audio_ms": ms, "answer_ms": ms + 2000}
        | {"settled": settled, "population": population}
        for ms in first_audio_ms
    ]


def result(ours: list[dict[str, Any]], other: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    run = {"started_at": "2026-11-30T07:00:00", "budget_ms": 800.0, "seed": 0}
    run |= {"load_average_before": 0.5, "load_average_after": 0.6}
    made: dict[str, Any] = {"conditions": {"cores": 2, "run": run}, "turns": ours}
    return made | ({"against": {"turns": other}} if other is not None else {})


def drawn(given: dict[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(svg(given, "en"))


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def dots(root: ElementTree.Element, look: str) -> int:
    return sum(1 for element in root.iter(f"{SVG}circle") if element.get("class") == look)


def test_first_audio_and_the_whole_answer_have_an_axis_each_and_sides_a_colour() -> None:
    root = drawn(result(turns(500, 600, 700), turns(900, 950)))
    assert (dots(root, "a"), dots(root, "b")) == (6, 4)
    told = words(root)
    assert {"first audio, ms", "whole answer, ms", "budget 800", "p50 600", "p50 2600"} <= set(told)
    assert "the median turn A: 600 ms to first audio (600.wav)" in told
    assert "the median turn B: 900 ms to first audio (900.wav)" in told


def test_cold_turns_are_drawn_apart_and_never_are_the_median() -> None:
    given = turns(100, 100, 100, population="cold") + turns(600, 700)
    root = drawn(result(given))
    assert (dots(root, "cold"), dots(root, "a")) == (6, 4)
    assert "the median turn: 600 ms to first audio (600.wav)" in words(root)
    assert "p50 650" in words(root), "the settled ones alone"


def test_one_turn_far_out_is_counted_at_the_edge_and_squeezes_nothing() -> None:
    root = drawn(result(turns(*[600.0] * 19, 20_000)))
    assert "1 ▸" in words(root)
    assert dots(root, "a") == 2 * 19
    assert max(float(each.get("cx", 0)) for each in root.iter(f"{SVG}circle")) < 960


def test_many_turns_make_no_larger_a_file() -> None:
    many = turns(*[500 + n % 300 for n in range(20_000)])
    assert dots(drawn(result(many)), "a") == 2 * MOST_DOTS


def test_it_can_be_read_in_light_and_in_dark_and_aloud() -> None:
    root = drawn(result(turns(600)))
    style = root.find(f"{SVG}style")
    assert style is not None and "prefers-color-scheme: dark" in (style.text or "")
    assert root.find(f"{SVG}title") is not None and root.find(f"{SVG}desc") is not None
    assert float(root.get("height", 0)) > 300


@pytest.mark.parametrize("nothing", [[], [{**turns(1)[0], "outcome": "failed", "first_audio_ms": None}]])
def test_a_run_without_an_answer_is_a_picture_without_dots(nothing: list[dict[str, Any]]) -> None:
    assert dots(drawn(result(nothing)), "a") == 0
    assert median_turn(nothing) is None


def test_a_clip_named_like_markup_stays_a_name() -> None:
    given = turns(600)
    given[0]["clip"] = "</text><script>&\x00.wav"
    assert any("</text><script>&.wav" in each for each in words(drawn(result(given))))


def test_sides_are_named_above_and_counts_stand_below_their_label() -> None:
    given = result(turns(600, population="cold"), turns(900))
    given["profile"] = "shipped"
    given["against"]["profile"] = "endpoint.mode=silence," * 20
    told = words(drawn(given))
    assert "A: shipped" in told
    assert any(line.startswith("B: endpoint.mode=silence,") and len(line) == 125 for line in told)
    assert told.count("n=1") == 4
    # 240 pixels stand left of the axis, some 7 to a character.
    assert max(len(line) for line in told if line.startswith(("A · ", "B · "))) <= 34


def test_long_names_stay_on_the_paper() -> None:
    given = result(turns(600))
    given["turns"][0]["clip"] = "x" * 300
    given["conditions"]["engines"] = {stage: {"model": stage * 30} for stage in ("stt", "llm", "tts")}
    assert max(map(len, words(drawn(given)))) <= 125


def test_figures_on_a_line_have_a_rim_of_paper() -> None:
    style = drawn(result(turns(600))).find(f"{SVG}style")
    assert style is not None
    assert "paint-order: stroke" in (style.text or "")
    assert "text.small { stroke: #14181c; }" in (style.text or "")
