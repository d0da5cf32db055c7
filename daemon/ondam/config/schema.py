"""Reads a TOML file into a typed schema and reports every problem at once, with the nearest valid name."""

from __future__ import annotations

import difflib
import errno
import os
import re
import reprlib
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import pydantic
from pydantic_core import ErrorDetails

from ondam.config.contradictions import Contradiction
from ondam.errors import ConfigError
from ondam.messages import Phrase, Phrases, catalog

MOST_BYTES = 1_000_000
"""Of a file that somebody wrote by hand."""

LONGEST_FOUND = 80
"""Characters of a wrong value that are shown."""


class Table(pydantic.BaseModel):
    """A TOML table: unknown keys are refused, nothing is converted, nothing changes after reading."""

    model_config = pydantic.ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=()
    )


TableT = TypeVar("TableT", bound=Table)


def read_toml(path: Path) -> dict[str, Any]:
    """The file as nested dicts. Missing, too large, not UTF-8 or not TOML: ConfigError with the place."""
    try:
        # utf-8-sig: an editor on Windows may have put a byte-order mark in front.
        return tomllib.loads(_content(path).decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError("file_missing", path=path) from error
    except OSError as error:
        raise ConfigError("file_unreadable", path=path, reason=error.strerror or error) from error
    except UnicodeDecodeError as error:
        raise ConfigError("toml_broken", path=path, reason=f"not UTF-8 at byte {error.start}") from error
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        # Also what the parser cannot hold: endless nesting, numbers of thousands of digits.
        raise ConfigError("toml_broken", path=path, reason=error) from error


def _content(path: Path) -> bytes:
    """A pipe would be waited for, and what stands for a device never ends."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "a pipe, and no file")
        content = file.read(MOST_BYTES + 1) or b""
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"more than {MOST_BYTES // 1_000_000} MB")
    return content


def check(
    table: type[TableT],
    values: Mapping[str, Any],
    origin: object,
    *,
    contradictions: Callable[[Mapping[str, object]], Iterable[Contradiction]] = lambda values: (),
    place: Callable[[str], object] = lambda key: None,
) -> TableT:
    """``values`` (from ``origin``) as a ``table``. Raises ConfigError listing every problem, and of the
    ``contradictions`` those between values that are no problem themselves.

    ``place``: where the value of a key stands, if that is not said by ``origin``.
    """
    checked: TableT | None = None
    found: list[tuple[Phrase, str]] = []
    wrong: set[str] = set()
    cause: pydantic.ValidationError | None = None
    try:
        checked = table.model_validate(values)
    except pydantic.ValidationError as error:
        cause = error
        found += zip(_problems(table, error), map(_where, error.errors(include_url=False)), strict=True)
        wrong = {_where(detail) for detail in error.errors(include_url=False)}
    found += [
        (one.problem, next((key for key in one.keys if place(key)), one.keys[0]))
        for one in contradictions(values)
        if not wrong.intersection(one.keys)
    ]
    if checked is None or found:
        problems = [_at(problem, place(key)) for problem, key in found]
        raise ConfigError("config_problems", origin=origin, problems=Phrases(tuple(problems))) from cause
    return checked


def _at(problem: Phrase, place: object) -> Phrase:
    return problem if place is None else Phrase("problem_at", place=place, problem=problem)


def _where(detail: ErrorDetails) -> str:
    """The key, without the names of union branches that pydantic mixes into the location."""
    return _path(
        part for part in detail["loc"] if not re.search(r"[\[\]()]|^(str|int|float|bool)$", str(part))
    )


def _problems(table: type[Table], error: pydantic.ValidationError) -> Iterator[Phrase]:
    for detail in error.errors(include_url=False):
        where = _where(detail)
        if detail["type"] == "extra_forbidden":
            yield Phrase("problem_unknown_key", key=where, near=_nearest(table, detail["loc"]))
        elif detail["type"] == "missing":
            yield Phrase("problem_missing", key=where)
        else:
            found = _shortened(detail["input"])
            near = _nearest_value(detail)
            yield Phrase("problem_value", key=where, reason=_reason(detail), found=found, near=near)


def _path(location: Iterable[int | str]) -> str:
    """Where a value stands, as ``canned[0].say``."""
    written = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return written.removeprefix(".")


def _shortened(value: object) -> str:
    """What was found, no longer than a line."""
    written = reprlib.repr(value)
    return written if len(written) <= LONGEST_FOUND else f"{written[:LONGEST_FOUND]}…"


def _reason(detail: ErrorDetails) -> Phrase | str:
    """What pydantic found, in our words where we have some."""
    if (code := f"value_{detail['type']}") in catalog():
        return Phrase(code, **detail.get("ctx", {}))
    return f"{detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _nearest_value(detail: ErrorDetails) -> Phrase | str:
    """Of the few values that are allowed, where the wrong one is nearly one of them."""
    if detail["type"] != "literal_error":
        return ""
    allowed = re.findall(r"'([^']*)'", detail.get("ctx", {}).get("expected", ""))
    near = difflib.get_close_matches(str(detail["input"]), allowed, n=1)
    return Phrase("near_name", name=near[0]) if near else ""


def _nearest(table: type[Table], location: tuple[int | str, ...]) -> Phrase | str:
    siblings: type[Table] | None = table
    for part in location[:-1]:
        siblings = _table_at(siblings, part) if siblings else None
    wanted = str(location[-1])
    if siblings and (found := difflib.get_close_matches(wanted, _keys(siblings), n=1)):
        return Phrase("near_name", name=_path([*location[:-1], found[0]]))
    for path, name in _every_key(table):
        if name == wanted:
            return Phrase("near_place", path=path)
    near = difflib.get_close_matches(wanted, [name for _, name in _every_key(table)], n=1)
    return Phrase("near_name", name=next(p for p, n in _every_key(table) if n == near[0])) if near else ""


def _table_at(table: type[Table], key: int | str) -> type[Table] | None:
    field = table.model_fields.get(str(key))
    if field is None:
        return None if not isinstance(key, int) else table
    for candidate in (field.annotation, *get_args(field.annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Table):
            return candidate
    return None


def _every_key(table: type[Table], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name in _keys(table):
        yield f"{prefix}{name}", name
        if inner := _table_at(table, name):
            yield from _every_key(inner, f"{prefix}{name}.")


def _keys(table: type[Table]) -> list[str]:
    """The table's keys as a file has them: a field has another name where pydantic needs its own."""
    return [field.alias or name for name, field in table.model_fields.items()]
