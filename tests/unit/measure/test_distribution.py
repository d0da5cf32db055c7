from __future__ import annotations

from typing import Any

import pytest

from ondam.journal.marks import STAGES
from ondam.measure.distribution import differences, distribution, prompts, served_whole, summary

STAGES_MS = dict.fromkeys(STAGES, 10.0) | {"endpoint": 300.0}


def turn(first_audio_ms: float | None, **others: Any) -> dict[str, Any]:
    return {
        "clip": "sky.wav",
        "outcome": "answered",
        "first_audio_ms": first_audio_ms,
        "answer_ms": (first_audio_ms or 0.0) + 2000,
        "stages_ms": STAGES_MS,
        "engine_ms": {"sum": 400.0},
        "tokens": {"prompt": 42, "cached": 30},
        "drafts": {"made": 2, "dropped": 1, "tokens": 5},
        "taken_back": 0,
        "cut_short": False,
        "misheard": False,
        **others,
    }


FAILED = {"clip": "sky.wav", "outcome": "failed", "first_audio_ms": None, "error": {"code": "x", "text": "y"}}


def test_percentiles_lie_on_the_line_between_neighbouring_values() -> None:
    figures = distribution([100, 200, 300, 400, 500, None])
    assert figures == {"p50": 300.0, "p90": 460.0, "p95": 480.0, "p99": 496.0, "max": 500, "n": 5}


def test_no_values_have_no_percentiles() -> None:
    assert distribution([None]) == {"p50": None, "p90": None, "p95": None, "p99": None, "max": None, "n": 0}


def test_first_audio_and_whole_answer_stay_apart() -> None:
    figures = summary([turn(600), turn(900)], budget_ms=800)
    assert figures["first_audio_ms"]["p50"] == 750
    assert figures["answer_ms"]["p50"] == 2750
    assert figures["after_endpoint_ms"]["p50"] == 450
    assert figures["stages_ms"]["endpoint"]["max"] == 300
    assert figures["over_budget"] == 1
    assert figures["drafts"] == {"made": 4, "dropped": 2, "tokens": 10}


def test_a_turn_that_failed_or_was_not_heard_is_counted_and_makes_no_figure() -> None:
    unheard = turn(None, outcome="unheard")
    figures = summary([turn(600), FAILED, unheard], budget_ms=800)
    assert figures["failed"] == 2
    assert figures["first_audio_ms"]["n"] == 1


def test_answers_to_half_a_question_or_to_other_words_are_counted() -> None:
    figures = summary([turn(600, cut_short=True), turn(600, misheard=True), turn(600)], budget_ms=800)
    assert (figures["cut_short"], figures["misheard"]) == (1, 1)


def test_pairs_are_compared_one_by_one() -> None:
    ours = [turn(600), turn(700), FAILED, turn(500)]
    others = [turn(1000), turn(1000), turn(1000), FAILED]
    figures = differences(ours, others)
    assert (figures["p50"], figures["max"], figures["n"]) == (350, 400, 2)


@pytest.mark.parametrize(
    ("prompt", "cached", "whole"),
    [(43, 42, True), (43, 43, True), (43, 30, False), (None, None, False), (43, None, False)],
)
def test_a_prompt_of_which_only_the_last_token_was_computed_came_from_the_cache(
    prompt: int | None, cached: int | None, whole: bool
) -> None:
    assert served_whole({"prompt": prompt, "cached": cached}) is whole


def test_cached_tokens_are_told_beside_the_prompts() -> None:
    told = prompts([{"prompt": 40, "cached": 30}, {"prompt": 44, "cached": 43}])
    assert told == {"prompt_tokens_p50": 42, "cached_tokens_p50": 36.5, "whole_from_cache": 1}
