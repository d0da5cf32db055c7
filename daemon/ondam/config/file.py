"""Writes single values into the user's config.toml; every comment, space and other key stays as it was."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from ondam.config import load
from ondam.errors import ConfigError


def keep(file: Path, values: Mapping[str, Any]) -> None:
    """Write ``values`` (``{"llm": {"model": "…"}, "language": "ko"}``) into ``file``, at once or not at all.

    Makes the file where there is none; without values it is only tried whether all that could be done. Raises
    ConfigError where it cannot be read, written, or would be no configuration afterwards; it is then as it
    was.
    """
    beside: Path | None = None
    try:
        # A link stays a link: its owner keeps the file elsewhere on purpose.
        there = file.resolve()
        before = there.read_bytes().decode("utf-8") if there.exists() else ""
        # An editor on Windows may have put a byte-order mark in front.
        mark = "\ufeff" if before.startswith("\ufeff") else ""
        written = mark + _with(before.removeprefix(mark), values)
        there.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=there.parent, prefix=".config-", suffix=".toml")
        beside = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as new:
            new.write(written)
            new.flush()
            os.fsync(new.fileno())
        load(beside)
        if there.exists():
            beside.chmod(there.stat().st_mode & 0o777)
        if values:
            beside.replace(there)
    except (OSError, UnicodeDecodeError, TOMLKitError, RuntimeError) as error:
        # RuntimeError: links that lead round in a circle.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError("switch_not_kept", path=file, reason=reason) from error
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)


def _with(text: str, values: Mapping[str, Any]) -> str:
    document = tomlkit.parse(text)
    _lay(document, values)
    return tomlkit.dumps(document)


def _lay(table: Any, values: Mapping[str, Any]) -> None:
    """Any: tomlkit's document, tables and inline tables have no type in common that says so."""
    for name, value in values.items():
        if not isinstance(value, Mapping):
            table[name] = value
            continue
        if not isinstance(table.get(name), dict):
            table[name] = tomlkit.table()
        _lay(table[name], value)
