"""Takes over what an earlier Ondam wrote: pure steps from schema to schema, a copy kept, nothing guessed.

A file says what it was written for: ``[ondam] schema`` in config.toml, ``PRAGMA user_version`` in the journal
(``migrate_journal``). One that is newer than what is known here is refused and left as it is.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ondam.errors import ConfigError, MigrationError

T = TypeVar("T")

Values = MutableMapping[str, Any]


@dataclass(frozen=True, slots=True)
class Steps(Generic[T]):
    """How to get from each schema to the one after it; ``steps[n]`` leads from n to n + 1."""

    newest: int
    steps: Mapping[int, Callable[[T], None]]

    def apply(self, found: int, to: T) -> None:
        """Every step from ``found`` on, one after the other. Each may be repeated without harm."""
        for number in range(found, self.newest):
            if (step := self.steps.get(number)) is not None:
                step(to)


def renamed(old: str, new: str) -> Callable[[Values], None]:
    """A step that moves a key (``listen.hotkey`` to ``desktop.hotkey``). Where both are written, nobody knows
    which is meant: MigrationError."""

    def step(values: Values) -> None:
        table, name = _table(values, old, make=False)
        if table is None or name not in table:
            return
        into, key = _table(values, new, make=True)
        assert into is not None
        if key in into:
            raise MigrationError("config_two_names", old=old, new=new)
        into[key] = table.pop(name)

    return step


def removed(key: str) -> Callable[[Values], None]:
    """A step that drops a key which means nothing any more."""

    def step(values: Values) -> None:
        table, name = _table(values, key, make=False)
        if table is not None:
            table.pop(name, None)

    return step


def changed(key: str, new: Callable[[Any], Any]) -> Callable[[Values], None]:
    """A step that says the same value in another way (seconds to milliseconds). Any: what TOML can say."""

    def step(values: Values) -> None:
        table, name = _table(values, key, make=False)
        if table is not None and name in table:
            table[name] = new(table[name])

    return step


def _table(values: Values, key: str, *, make: bool) -> tuple[Values | None, str]:
    *path, name = key.split(".")
    for part in path:
        if make and part not in values:
            values[part] = {}
        inside = values.get(part)
        if not isinstance(inside, MutableMapping):
            return None, name
        values = inside
    return values, name


CONFIG: Steps[Values] = Steps(newest=1, steps={})
"""Of config.toml. A file without a stamp is of schema 1, which was the first."""


def migrated_config(
    values: Mapping[str, Any], file: Path, steps: Steps[Values] | None = None
) -> tuple[dict[str, Any], int]:
    """``values`` of ``file`` as they are written today, and the schema that they were written for. Writes
    nothing. Raises MigrationError for a file of a later Ondam, ConfigError for a stamp that is none."""
    steps = steps or CONFIG
    schema = _stamp(values, file)
    if schema > steps.newest:
        raise MigrationError("config_newer", path=file, found=schema, known=steps.newest)
    made = copy.deepcopy(dict(values))
    try:
        steps.apply(schema, made)
    except MigrationError as error:
        raise MigrationError(error.code, path=file, **error.facts) from error
    if "ondam" in made:
        made["ondam"] = {**made["ondam"], "schema": steps.newest}
    return made, schema


def migrate_config(file: Path, steps: Steps[Values] | None = None) -> Path | None:
    """Write ``file`` as it is written today, comments kept; the copy of how it was (beside it, named after
    its schema), or None where there was nothing to do. At once or not at all. Raises as ``migrated_config``
    does, and ConfigError where it cannot be written."""
    # Late: whoever only reads a configuration needs nothing that writes one.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    steps = steps or CONFIG
    beside: Path | None = None
    try:
        there = file.resolve()
        before = there.read_bytes().decode("utf-8-sig")
        document = tomlkit.parse(before)
        _, schema = migrated_config(document.unwrap(), file, steps)
        if schema == steps.newest:
            return None
        steps.apply(schema, document)
        stamp = document.setdefault("ondam", tomlkit.table())
        stamp["schema"] = steps.newest
        kept = there.with_name(f"{there.name}.schema-{schema}")
        shutil.copy2(there, kept)
        handle, name = tempfile.mkstemp(dir=there.parent, prefix=".config-", suffix=".toml")
        beside = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as new:
            new.write(tomlkit.dumps(document))
            new.flush()
            os.fsync(new.fileno())
        shutil.copymode(there, beside)
        beside.replace(there)
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise ConfigError("config_not_migrated", path=file, reason=reason) from error
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)
    return kept


def _stamp(values: Mapping[str, Any], file: Path) -> int:
    table = values.get("ondam")
    schema = table.get("schema", 1) if isinstance(table, Mapping) else 1
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 0:
        raise ConfigError("config_stamp_broken", path=file, found=repr(schema)[:80])
    return schema
