"""The files that the configuration is made of, the machine's below the user's own, and where values stand.

``tomllib`` tells no lines, ``tomlkit`` neither: each statement is parsed once more by itself, so that
whatever TOML allows (dotted and quoted keys, strings and arrays over many lines) is read as TOML reads it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ondam.at_home import at_home
from ondam.config.schema import read_toml
from ondam.deploy.migrate import CONFIG, migrated_config
from ondam.errors import ConfigError
from ondam.places import MACHINE_CONFIG


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Layer:
    """One file. ``places``: full key (``llm.model``, ``canned[0].say``) to where it stands."""

    file: Path
    values: dict[str, Any]
    schema: int
    """What the file was written for; ``values`` are of today."""
    places: Mapping[str, Place] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Layer:
        """Raises ConfigError for a file that is none; MigrationError for one of a later Ondam."""
        written = read_toml(file)
        values, schema = migrated_config(written, file)
        text = file.read_bytes().decode("utf-8-sig")
        # What a migration moved stands where it stood before; its new name is where its table is.
        return cls(file, values, schema, {key: Place(file, line) for key, line in lines(text)})

    @property
    def outdated(self) -> bool:
        """Written for an earlier Ondam."""
        return self.schema < CONFIG.newest


def machine_config(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The machine's file below everybody's own: ``/etc/ondam/config.toml``, or ``ONDAM_SYSTEM_CONFIG``
    (empty: none). With ``ONDAM_HOME``, which moves everything, only where that is named. Raises ConfigError.
    """
    named = environ.get("ONDAM_SYSTEM_CONFIG")
    if named is not None:
        try:
            return at_home(named) if named else None
        except OSError as error:
            raise ConfigError("file_unreadable", path=named, reason=error.strerror) from error
    return None if environ.get("ONDAM_HOME") else MACHINE_CONFIG


def config_files(own: Path) -> tuple[Path, ...]:
    """Those of the two that are there, the lowest first."""
    candidates = [machine_config(), own]
    return tuple(dict.fromkeys(file for file in candidates if file is not None and _is_there(file)))


def _is_there(file: Path) -> bool:
    """Also a link that leads nowhere, and what may not be looked at: whoever reads it then says so."""
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def placed(layers: Iterable[Layer], key: str) -> Place | None:
    """Where the value of ``key`` that counts was written; None: nowhere, it is the shipped one.

    What is inside of an array stands where the array does: ``canned[0].say[1]`` where ``canned[0].say``.
    """
    for layer in reversed(tuple(layers)):
        looked = key
        while looked:
            if (place := layer.places.get(looked)) is not None:
                return place
            looked, inside = _shorter(looked)
            if not inside:
                break
    return None


def _shorter(key: str) -> tuple[str, bool]:
    """``key`` without its last part, and whether what is left is an array or inside of one."""
    if found := re.search(r"\[\d+\]$", key):
        return key[: found.start()], True
    shorter = key.rpartition(".")[0]
    return shorter, "[" in shorter


def lines(text: str) -> Iterator[tuple[str, int]]:
    """Every key and table of ``text``, which is valid TOML, with the line it begins on."""
    table: list[str] = []
    arrays: dict[str, int] = {}
    for statement, begun in _statements(text.replace("\r\n", "\n")):
        parsed = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = _header(parsed, arrays)
            yield _joined(table), begun
        else:
            for key in _keys(parsed):
                yield _joined([*table, *key]), begun


TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|'
    + r"'''.*?'{3,5}|"
    + r'"(?:\\.|[^"\\\n])*"|'
    + r"'[^'\n]*'|#[^\n]*|[\[\]{}\n]",
    re.DOTALL,
)
"""What a statement may go on through: strings, comments, brackets; and the end of a line."""


def _statements(text: str) -> Iterator[tuple[str, int]]:
    """Each statement of ``text``, with the line it begins on: a line that ends outside of every bracket."""
    begin, begun, line, depth = 0, 1, 1, 0
    for token in TOKEN.finditer(text + "\n"):
        found = token[0]
        depth += (found in "[{") - (found in "]}")
        line += found.count("\n")
        if found == "\n" and not depth:
            yield text[begin : token.end()], begun
            begin, begun = token.end(), line


def _header(parsed: Mapping[str, Any], arrays: dict[str, int]) -> list[str]:
    """The path of ``[a.b]`` or ``[[a.b]]``, arrays counted."""
    path: list[str] = []
    inside: Any = parsed
    while inside:
        ((name, inside),) = inside.items()
        path.append(name)
        whole = _joined(path)
        if isinstance(inside, list):
            arrays[whole] = arrays.get(whole, -1) + 1
            inside = inside[0]
        if whole in arrays:
            path[-1] = f"{name}[{arrays[whole]}]"
    return path


def _keys(parsed: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, value in parsed.items():
        yield [name]
        if isinstance(value, dict):
            yield from ([name, *below] for below in _keys(value))


def _joined(path: Iterable[str]) -> str:
    return ".".join(path)
