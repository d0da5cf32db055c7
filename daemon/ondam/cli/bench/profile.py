"""The two sides of ``ondam bench --ab``: which keys differ, and whether one daemon can be both."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ondam.config import Config, load
from ondam.config.conversation import Settings, for_conversation
from ondam.errors import ConfigError

SHIPPED = ("", "shipped")
"""A profile that changes nothing."""

LONGEST_SHOWN = 80
"""Characters of a value in the conditions."""

BETWEEN_KEYS = re.compile(r",(?=\s*[A-Za-z_][\w.-]*\s*=)")
"""A comma before the next key: those of a list are its own."""

OF_A_CONVERSATION = tuple(Settings.model_fields)


def read_profile(given: str) -> dict[str, Any]:
    """A TOML file's tables, or ``KEY=VALUE,KEY=VALUE``; nothing for ``shipped``. Raises ConfigError."""
    from ondam.cli.up import laid_over
    from ondam.config.schema import read_toml

    if given.strip() in SHIPPED:
        return {}
    if given.endswith(".toml") or Path(given).is_file():
        return read_toml(Path(given))
    parts = BETWEEN_KEYS.split(given)
    if not all("=" in part for part in parts):
        raise ConfigError("bench_profile_unknown", given=given)
    return laid_over(parts)


@dataclass(frozen=True, slots=True)
class Profile:
    """One side. ``settings``: what its daemon is started with beyond the other options, key to TOML;
    ``conversation``: what each of its turns is given instead, None for nothing."""

    name: str
    config: Config
    settings: Mapping[str, str]
    conversation: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Sides:
    """``b`` is None where there is one way alone. ``differ``: the keys in which the two do."""

    a: Profile
    b: Profile | None = None
    differ: tuple[str, ...] = ()

    @property
    def apart(self) -> bool:
        """Whether each side needs a daemon of its own, with engines of its own."""
        return any(key.split(".")[0] not in OF_A_CONVERSATION for key in self.differ)

    def differences(self, of: Profile) -> dict[str, str]:
        """What ``of`` has at the keys in which the two differ, as TOML; of what is long a hash."""
        flat = dict(flattened(of.config.model_dump(by_alias=True)))
        told = {key: toml(flat.get(key)) for key in self.differ}
        return {key: value if len(value) <= LONGEST_SHOWN else _hash(value) for key, value in told.items()}


def _hash(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def one_way(file: Path, base: Mapping[str, Any]) -> Sides:
    """As configured."""
    return Sides(Profile("", load(file, base), {}, None))


def two_ways(
    file: Path, base: Mapping[str, Any], a: tuple[str, Mapping[str, Any]], b: tuple[str, Mapping[str, Any]]
) -> Sides:
    """Profiles ``a`` and ``b`` (name, tables) over ``file`` and ``base``. ConfigError with every problem."""
    whole = [load(file, laid_upon(base, tables)) for _, tables in (a, b)]
    flat = [dict(flattened(config.model_dump(by_alias=True))) for config in whole]
    differ = tuple(sorted(k for k in {*flat[0], *flat[1]} if flat[0].get(k) != flat[1].get(k)))
    found = Sides(Profile(a[0], whole[0], {}, None), Profile(b[0], whole[1], {}, None), differ)
    if found.apart:
        sides = [
            Profile(name, config, {k: toml(v) for k, v in flattened(tables)}, None)
            for (name, tables), config in zip((a, b), whole, strict=True)
        ]
        return Sides(sides[0], sides[1], differ)
    # What both want of the daemon is the same; what they want of a conversation each turn is told.
    shared = {k: v for k, v in a[1].items() if k not in OF_A_CONVERSATION}
    daemon = load(file, laid_upon(base, shared))
    sides = []
    for name, tables in (a, b):
        own = {k: v for k, v in tables.items() if k in OF_A_CONVERSATION}
        config = for_conversation(daemon, own)
        sides.append(Profile(name, config, {k: toml(v) for k, v in flattened(shared)}, own or None))
    return Sides(sides[0], sides[1], differ)


def laid_upon(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Table by table."""
    made = dict(below)
    for key, value in above.items():
        under = made.get(key)
        made[key] = laid_upon(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return made


def flattened(tables: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys; an empty table is a value."""
    for key, value in tables.items():
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def toml(value: object) -> str:
    """``value`` as TOML writes it in one line."""
    if isinstance(value, str):
        # JSON's strings are TOML's, but that TOML wants DEL written out.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value)
