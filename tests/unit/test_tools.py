"""Files of tools, and what is said of one that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ondam.config import load
from ondam.errors import ConfigError
from ondam.tools import read_tools

TOOL = {"type": "function", "function": {"name": "book", "parameters": {"type": "object"}}}


def written(folder: Path, content: object) -> Path:
    path = folder / "tools.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


@pytest.mark.parametrize("content", [[TOOL], {"tools": [TOOL], "messages": []}], ids=["list", "request"])
def test_a_list_or_a_request_that_holds_one(tmp_path: Path, content: object) -> None:
    path = written(tmp_path, content)
    assert read_tools(path) == (TOOL,)
    assert load(None, {"llm": {"tools": str(path)}}).llm.definitions() == (TOOL,)


def test_without_a_file_there_are_none() -> None:
    assert load(None).llm.definitions() == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "cannot be read"),
        ({}, "no list of tools"),
        ([3], "no list of tools"),
        ([{"name": "book"}], "no list of tools"),
        ([{"type": "function", "function": {"name": ""}}], "no list of tools"),
    ],
)
def test_what_are_no_tools_is_told_before_anything_starts(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(None, {"llm": {"tools": str(written(tmp_path, content))}})
    assert "llm.tools: " in str(raised.value)
    assert said in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent"):
        load(None, {"llm": {"tools": str(tmp_path / "absent")}})
