"""A list of texts to be spoken into files, as JSON, TOML or one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import pydantic

from ondam.config.schema import Table, check, read_toml
from ondam.errors import ConfigError
from ondam.messages import Phrase
from ondam.types import Language


class Item(Table):
    """One text. ``file``: where in the output folder; by default its number, ``001.wav``."""

    text: Annotated[str, pydantic.Field(min_length=1)]
    file: str = ""
    language: Language | None = None


class Spec(Table):
    """The list, as a TOML file names it: ``[[say]]``."""

    say: list[Item]


def read_spec(path: Path) -> list[Item]:
    """Every item with its file named. ConfigError with every problem; nothing is written outside the folder.

    ``.toml``: tables ``[[say]]``. ``.jsonl``: an object a line. Anything else: a JSON array of objects (or of
    texts), or an object with the key ``say``.
    """
    match path.suffix.lower():
        case ".toml":
            values: Any = read_toml(path)
        case ".jsonl":
            values = list(_lines(path))
        case _:
            values = _json(path, _text(path))
    if isinstance(values, list):
        values = {"say": [{"text": item} if isinstance(item, str) else item for item in values]}
    if not isinstance(values, dict):
        raise ConfigError("cli_spec_broken", path=path, reason=Phrase("cli_spec_no_list"))
    items = check(Spec, values, path).say
    placed = [_placed(item, number, path) for number, item in enumerate(items, 1)]
    seen: dict[str, int] = {}
    for number, item in enumerate(placed, 1):
        if (other := seen.setdefault(item.file, number)) != number:
            raise ConfigError("cli_spec_twice", path=path, file=item.file, one=other, other=number)
    return placed


def _placed(item: Item, number: int, path: Path) -> Item:
    file = PurePosixPath(item.file or f"{number:03d}.wav")
    if file.is_absolute() or ".." in file.parts:
        raise ConfigError("cli_spec_outside", path=path, file=file)
    if item.file.endswith("/") or not item.file.isprintable():
        raise ConfigError("cli_spec_no_name", path=path, number=number, file=ascii(item.file))
    return item.model_copy(update={"file": str(file)})


def _lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(_text(path).splitlines(), 1):
        if line.strip():
            yield _json(path, line, number)


def _json(path: Path, written: str, line: int | None = None) -> Any:
    """Any: JSON, judged by ``Spec``."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError) as error:
        reason = error if line is None else Phrase("cli_spec_line", number=line, reason=error)
        raise ConfigError("cli_spec_broken", path=path, reason=reason) from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError("cli_file_missing", path=path) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("cli_file_unreadable", path=path, reason=error) from error
