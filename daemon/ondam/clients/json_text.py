"""JSON from a server that may send anything: strict, shallow, and typed on the way out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import NoReturn, TypeAlias

from ondam.errors import Foreign

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def json_object(text: str | bytes) -> dict[str, Json]:
    """The object in ``text``. ValueError for anything else: another type, NaN, broken UTF-8, deep nesting."""
    try:
        value = json.loads(text, parse_constant=_no_such_number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"not an object but {type(value).__name__}")  # noqa: TRY004 - one kind of error for callers
    return value


def _no_such_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def text_at(table: Mapping[str, Json], key: str) -> str | None:
    """The string at ``key``; None when absent or null. ValueError for another type, or half a character."""
    value = raw_text_at(table, key)
    if value is not None:
        value.encode()  # UnicodeEncodeError, a ValueError, for a lone surrogate
    return value


def raw_text_at(table: Mapping[str, Json], key: str) -> str | None:
    """``text_at`` for a stream of texts, which may begin or end in half a character; see ``Surrogates``."""
    value = table.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f'"{key}" is no text')


class Surrogates:
    """Joins characters that a server cut in two.

    Servers that count in UTF-16 send "\\ud83d" in one chunk and "\\ude42" in the next: valid JSON, and no
    text until they are together.
    """

    def __init__(self) -> None:
        self._half = ""

    def whole(self, text: str) -> str:
        """``text`` joined to the half before it, less a half at its end, less halves that match nothing."""
        if text.isascii() and not self._half:
            return text
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text.removesuffix(self._half)
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def number_at(table: Mapping[str, Json], key: str) -> float | None:
    """The finite number at ``key``; None when absent or null. ValueError for another type."""
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f'"{key}" is no number')
    return float(value)


def count_at(table: Mapping[str, Json], key: str) -> int | None:
    """The whole number, not below zero, at ``key``; None when absent or null. ValueError for another type."""
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f'"{key}" is no count')
    return value


def object_at(table: Mapping[str, Json], key: str) -> dict[str, Json]:
    """The object at ``key``; empty when absent or null. ValueError for another type."""
    value = table.get(key)
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise ValueError(f'"{key}" is no object')


def list_at(table: Mapping[str, Json], key: str) -> list[Json]:
    """The list at ``key``; empty when absent or null. ValueError for another type."""
    value = table.get(key)
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise ValueError(f'"{key}" is no list')


def one_line(text: str, limit: int = 200) -> Foreign:
    """A server's own words, fit for a message: printable, on one line, at most ``limit`` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * limit]).split())
    return Foreign(line if len(line) <= limit else line[: limit - 1] + "…")
