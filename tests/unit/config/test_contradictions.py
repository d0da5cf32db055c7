"""Settings that are each fine and make no sense together are refused at load, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ondam import messages
from ondam.config import defaults, load
from ondam.config.contradictions import LIMITS, contradictions
from ondam.config.conversation import for_conversation
from ondam.errors import ConfigError

WRONG: dict[str, Any] = {
    "detect": {"release": 0.6, "min_speech_ms": 600},
    "endpoint": {"complete_ms": 1300, "sure": 0.5},
    "llm": {"context_tokens": 32},
}


def problems(given: dict[str, Any], language: Any = "en") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(None, given)
    return caught.value.message(language).text.splitlines()[1:]


def test_all_contradictions_are_told_with_both_keys_and_values() -> None:
    told = problems(WRONG)
    assert told[0] == (
        "  detect.release = 0.6 does not go with detect.threshold = 0.5: what ends a voice would lie above "
        "what begins it, and cut it up; lower detect.release or raise detect.threshold"
    )
    pairs = [("min_speech_ms = 600", "speech_ms = 500"), ("threshold = 0.7", "sure = 0.5")]
    pairs += [("complete_ms = 1300", "incomplete_ms = 1200"), ("max_tokens = 64", "context_tokens = 32")]
    assert len(told) == 5
    for line, (one, other) in zip(told[1:], pairs, strict=True):
        assert one in line
        assert other in line


def test_in_korean_too() -> None:
    assert problems({"detect": {"release": 0.6}}, "ko") == [
        "  detect.release = 0.6와(과) detect.threshold = 0.5은(는) 함께 쓸 수 없습니다. "
        "말의 끝을 정하는 값이 시작을 정하는 값보다 높으면 말이 중간에 끊깁니다. "
        "detect.release을(를) 낮추거나 detect.threshold을(를) 높이세요"
    ]


def test_other_problems_are_told_beside_them_and_a_value_that_is_wrong_itself_only_once() -> None:
    told = problems({"detect": {"release": 0.6, "speech_ms": -1}, "supervisor": {"backoff_first_s": 40.0}})
    assert [line.split()[0] for line in told] == [
        "detect.speech_ms:",
        "detect.release",
        "supervisor.backoff_first_s",
    ]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.key)
def test_every_limit_holds_beyond_its_value_and_not_at_it(limit: Any) -> None:
    values = defaults()
    (table, name), (by_table, by_name) = limit.key.split("."), limit.by.split(".")
    assert name in values[table]
    assert by_name in values[by_table]
    values[by_table][by_name] = 8
    values[table][name] = 8 * limit.times
    assert limit.key not in [found.keys[0] for found in contradictions(values) if found.keys[1] == limit.by]
    values[table][name] = 8 * limit.times + 0.1
    assert (limit.key, limit.by) in [found.keys for found in contradictions(values)]
    for language in ("ko", "en"):
        assert messages.text(limit.why, language)


def test_what_is_shipped_contradicts_nothing_and_what_sets_no_limit_sets_none() -> None:
    assert list(contradictions(defaults())) == []
    assert load(None, {"llm": {"max_tokens": 8192, "context_tokens": 0}}).llm.max_tokens == 8192
    assert list(contradictions({"detect": "no table", "endpoint": {"sure": True, "threshold": 2}})) == []


def test_a_file_is_refused_as_well_as_a_conversation_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[endpoint]\nincomplete_ms = 500\n", "utf-8")
    with pytest.raises(ConfigError, match=r"endpoint\.complete_ms = 512 does not go with"):
        load(file)
    with pytest.raises(ConfigError, match=r"detect\.release = 0\.9 does not go with"):
        for_conversation(load(None), {"detect": {"release": 0.9}})


@pytest.mark.parametrize("value", ["inf", "nan", "-inf"])
def test_a_number_without_end_is_refused(tmp_path: Path, value: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[measure]\nbudget_ms = {value}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"measure\.budget_ms: input should be a finite number"):
        load(file)


def test_a_whole_number_of_any_length_can_be_compared() -> None:
    assert load(None, {"llm": {"context_tokens": 10**400}}).llm.context_tokens == 10**400
