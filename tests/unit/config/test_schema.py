"""Every problem at once, by its key, in the reader's language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ondam.config import load
from ondam.errors import ConfigError
from ondam.types import Language

WRONG: dict[str, Any] = {
    "audio": {"microfone": "default", "tail_ms": "long"},
    "detect": {"threshold": 1.0},
    "endpoint": {"mode": "never"},
    "llm": {"silence_ms": 500},
}


def told(language: Language) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(None, WRONG)
    return sorted(caught.value.message(language).text.splitlines())


def test_problems_are_told_in_english() -> None:
    assert told("en") == [
        '  audio.microfone: unknown key; did you mean "audio.microphone"?',
        "  audio.tail_ms: input should be a valid integer (found 'long')",
        "  detect.threshold: input should be less than 1.0 (found 1.0)",
        "  endpoint.mode: input should be 'smart_turn' or 'silence' (found 'never')",
        '  llm.silence_ms: unknown key; it belongs at "endpoint.silence_ms"',
        "defaults.toml with --set cannot be used:",
    ]


def test_problems_are_told_in_korean() -> None:
    assert told("ko") == [
        '  audio.microfone: 알 수 없는 키입니다. "audio.microphone"을(를) 찾으시나요?',
        "  audio.tail_ms: 정수여야 합니다(입력: 'long')",
        "  detect.threshold: 1.0보다 작아야 합니다(입력: 1.0)",
        "  endpoint.mode: 다음 중 하나여야 합니다: 'smart_turn' or 'silence'(입력: 'never')",
        '  llm.silence_ms: 알 수 없는 키입니다. "endpoint.silence_ms"에 적어야 합니다',
        "defaults.toml(--set 포함) 파일을 사용할 수 없습니다:",
    ]


def test_a_problem_that_has_no_words_of_ours_keeps_pydantics(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, {"engines": {"piper": {1: "x"}}})
    assert "engines.piper" in caught.value.message("ko").text


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"mode": "mute"}, "listen.mode: input should be 'open', 'name', 'push' or 'muted' (found 'mute')"),
        ({"mode": "mute"}, '; did you mean "muted"?'),
        ({"name_ko": " ,"}, "listen.name_ko:"),
        ({"name_en": ""}, "listen.name_en:"),
        ({"name_en": "x" * 41}, "listen.name_en:"),
    ],
)
def test_when_it_listens_is_checked(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(None, {"listen": given})
    assert problem in str(raised.value)


def test_a_value_that_resembles_none_has_no_nearest() -> None:
    with pytest.raises(ConfigError) as raised:
        load(None, {"listen": {"mode": "always"}})
    assert "did you mean" not in str(raised.value)
