"""What a production prompt's file may be, and what is said of one that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ondam.errors import ConfigError
from ondam.measure.prompt import LONGEST, read_prompt
from ondam.tools import read_tools

TOOL = {"type": "function", "function": {"name": "book", "parameters": {"type": "object"}}}


def written(tmp_path: Path, content: object, name: str = "prompt.json") -> Path:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_a_text_is_the_prompt(tmp_path: Path) -> None:
    found = read_prompt(written(tmp_path, "  호텔 접수원입니다.\n두 문장으로 답하세요.\n", "p.txt"))
    assert (found.text, found.tools, found.name) == ("호텔 접수원입니다.\n두 문장으로 답하세요.", (), "p.txt")
    assert found.as_json(None)["tools_sent"] is None
    assert "호텔" not in json.dumps(found.as_json(None), ensure_ascii=False)
    assert found.settings("ko", "field", tmp_path) == {"llm.system_prompt_ko": found.text, "llm.tools": ""}


def test_tools_are_a_field_of_the_request(tmp_path: Path) -> None:
    found = read_prompt(written(tmp_path, {"system": "You book rooms.", "tools": [TOOL, TOOL]}))
    settings = found.settings("en", "field", tmp_path)
    assert settings["llm.system_prompt_en"] == "You book rooms."
    assert read_tools(Path(settings["llm.tools"])) == (TOOL, TOOL)
    assert (found.as_json("field")["tools"], found.as_json("field")["tools_sent"]) == (2, "field")


def test_or_stand_in_the_prompt_one_a_line(tmp_path: Path) -> None:
    found = read_prompt(written(tmp_path, {"system": "You book rooms.", "tools": [TOOL, TOOL]}))
    line = json.dumps(TOOL)
    told = f"You book rooms.\n\n# Tools\n<tools>\n{line}\n{line}\n</tools>"
    assert found.settings("en", "text", tmp_path) == {"llm.system_prompt_en": told, "llm.tools": ""}
    assert found.as_json("text")["tools_sent"] == "text"


def test_a_requests_body_gives_its_system_messages_and_tools(tmp_path: Path) -> None:
    body = {
        "model": "any",
        "messages": [
            {"role": "system", "content": "One."},
            {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
            {"role": "user", "content": "Hello?"},
        ],
        "tools": [TOOL],
    }
    found = read_prompt(written(tmp_path, body))
    assert found.text.startswith("One.\n\nTwo.\n\n# Tools")
    assert "Hello" not in found.text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"system": " "}, "nothing in it"),
        ("{", "cannot be used"),
        ([1], "expected text"),
        ({"sytem": "x"}, "expected text"),
        ({"system": 3}, "expected text"),
        ({"system": "x", "tools": "book"}, "expected text"),
        ({"system": "x", "tools": [{"type": "function", "function": {}}]}, "expected text"),
        ({"messages": [3]}, "expected text"),
        ({"messages": [{"role": "system", "content": [{"type": "image"}]}]}, "expected text"),
        ({"system": "x" * LONGEST}, "100000 can be given"),
    ],
)
def test_what_is_no_prompt_is_told(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_prompt(written(tmp_path, content))
    assert said in str(raised.value)
    assert raised.value.exit_code == 3


def test_an_empty_text_is_no_prompt(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing in it"):
        read_prompt(written(tmp_path, " ", "p.txt"))


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    for name, code in (("absent", "cli_file_missing"), ("latin", "cli_file_unreadable")):
        with pytest.raises(ConfigError) as raised:
            read_prompt(tmp_path / name)
        assert raised.value.code == code
