"""Definitions of tools, as OpenAI's field ``tools`` has them: sent along, so that a prompt costs what it
does in production. Ondam runs none of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ondam.at_home import at_home

Tool: TypeAlias = Mapping[str, Any]
"""``{"type": "function", "function": {"name": …, "parameters": JSON Schema}}``. Any: it is JSON."""

LONGEST = 1_000_000
"""Bytes of a file: many times what any context holds."""


class BrokenTools(Exception):
    """Raised for what is no list of tools. ``code`` names the text that says why."""

    def __init__(self, code: str, **facts: str) -> None:
        super().__init__(code, facts)
        self.code = code
        self.facts = facts


def read_tools(path: Path) -> tuple[Tool, ...]:
    """Those in a JSON file: a list, or an object with the list as its ``tools``. Raises BrokenTools."""
    try:
        with at_home(path).open("rb") as file:
            given = json.loads(file.read(LONGEST))
    except (OSError, ValueError, RecursionError) as error:
        raise BrokenTools("tools_unreadable", path=str(path), reason=str(error)) from error
    return tools_of(given.get("tools") if isinstance(given, dict) else given)


def tools_of(given: object) -> tuple[Tool, ...]:
    """``given`` itself, once every entry has a type, and a function its name. Raises BrokenTools."""
    if not isinstance(given, list) or not all(map(_is_tool, given)):
        raise BrokenTools("tools_shape")
    return tuple(given)


def _is_tool(given: object) -> bool:
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        return False
    if given["type"] != "function":
        return True  # a kind of the server's own
    function = given.get("function")
    return isinstance(function, dict) and isinstance(function.get("name"), str) and bool(function["name"])
