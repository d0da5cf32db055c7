"""``[[canned]]``: every problem at once, by its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from ondam.config import load
from ondam.errors import ConfigError

GOOD = """
[[canned]]
match = "안녕"
say = "네, 안녕하세요."

[[canned]]
match = ["hello", "hi"]
pattern = "good (morning|evening)"
say = ["Hello!", "Hi there."]
language = "en"
"""

WRONG = """
[[canned]]
pattern = "("
say = "x"

[[canned]]
match = ["안녕", "?!"]
say = []

[[canned]]
say = "Nobody asks for me."

[[canned]]
match = "hi"
sey = "x"
language = "fr"
"""


def test_one_text_is_a_list_of_one(tmp_path: Path) -> None:
    (file := tmp_path / "config.toml").write_text(GOOD, "utf-8")
    first, second = load(file).canned
    assert (first.match, first.pattern, first.say, first.language) == (
        ["안녕"],
        None,
        ["네, 안녕하세요."],
        None,
    )
    assert (second.match, second.language) == (["hello", "hi"], "en")
    assert second.say == ["Hello!", "Hi there."]


def test_no_answers_of_ones_own_are_shipped() -> None:
    assert load(None).canned == []


def test_every_problem_is_told_at_once_with_its_place_in_the_list(tmp_path: Path) -> None:
    (file := tmp_path / "config.toml").write_text(WRONG, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.message("en").text.splitlines()[1:] == [
        "  canned[0].pattern: not a regular expression: missing ) at position 1 (found '(')",
        "  canned[1].match: an entry has no letter and no digit (found ['안녕', '?!'])",
        "  canned[1].say: there is nothing that can be said (found [])",
        "  canned[2].pattern: neither match nor pattern is given (found None)",
        "  canned[3].say: missing",
        "  canned[3].language: input should be 'ko' or 'en' (found 'fr')",
        '  canned[3].sey: unknown key; did you mean "canned[3].say"?',
    ]
    assert "canned[1].say: 소리 내어 말할 내용이 없습니다(입력: [])" in caught.value.message("ko").text


@pytest.mark.parametrize("say", ['""', '"  "', '["ok", "…"]', '"🙂"'])
def test_an_answer_that_cannot_be_said_is_refused(say: str, tmp_path: Path) -> None:
    (file := tmp_path / "config.toml").write_text(f'[[canned]]\nmatch = "a"\nsay = {say}\n', "utf-8")
    with pytest.raises(ConfigError, match="nothing that can be said"):
        load(file)
