"""Every text a person hears or reads, as data: one TOML file per layer, Korean and English side by side.

An entry is ``[code]`` with ``en`` and ``ko`` (what happened and why) and, where a person can do something,
``next`` (the command to type, the same in both languages) or ``next.en`` / ``next.ko`` (a sentence);
``next_root`` likewise, where root is to do something else. A ``sudo`` is left out for a shell that is root's.
Placeholders are ``{name}`` as in ``str.format``. Imports nothing of ours but leaf types.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for real it would load numpy, and `ondam --version` is to be quick
    from ondam.types import Language


@dataclass(frozen=True, slots=True)
class Message:
    """A text for a person. ``next`` is what to do about it, or empty."""

    code: str
    text: str
    next: str


@dataclass(frozen=True, slots=True, init=False)
class Phrase:
    """A text inside another one: a fact that is told in the language of the text around it."""

    code: str
    facts: Mapping[str, object]

    def __init__(self, code: str, /, **facts: object) -> None:
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "facts", facts)

    def in_language(self, language: Language) -> str:
        """In ``language``."""
        return text(self.code, language, **self.facts)

    def __str__(self) -> str:
        return self.in_language("en")


@dataclass(frozen=True, slots=True)
class Phrases:
    """Several of them: each on an indented line, or with ``between`` from one to the next."""

    phrases: tuple[Phrase, ...]
    between: str = "\n"

    def in_language(self, language: Language) -> str:
        """In ``language``."""
        before = "  " if self.between == "\n" else ""
        return self.between.join(before + phrase.in_language(language) for phrase in self.phrases)

    def __str__(self) -> str:
        return self.in_language("en")


_SUDO = re.compile(r"\bsudo (?=[a-z])")
"""In front of a command; not ``sudo -u``, which root needs as well."""

_LOGIN = re.compile(r"(\w://)[^/@\s]+@")
"""User and password in front of a host (RFC 3986, section 3.2.1)."""


class _Facts(dict[str, object]):
    """A fact that is lacking stays visible as ``{name}``: an error must not hide behind another."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


@lru_cache(maxsize=1)
def catalog() -> dict[str, dict[str, Any]]:
    """All entries of all files, by code. A code that two files define is an error."""
    entries: dict[str, dict[str, Any]] = {}
    for file in sorted(resources.files(__name__).iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".toml"):
            continue
        for code, entry in tomllib.loads(file.read_text("utf-8")).items():
            if code in entries:
                raise ValueError(f"message {code!r} is defined twice, the second time in {file.name}")
            entries[code] = entry
    return entries


def message(code: str, language: Language, /, **facts: object) -> Message:
    """The entry ``code`` in ``language`` with its placeholders filled. Raises KeyError on an unknown code."""
    entry = catalog()[code]
    after = entry.get("next_root" if _is_root() and "next_root" in entry else "next", "")
    if isinstance(after, dict):
        after = after[language]
    known = _Facts((name, told(fact, language)) for name, fact in facts.items())
    # Before the facts are in: what somebody said is not to lose a word.
    whole, following = typed(entry[language]).format_map(known), typed(after).format_map(known)
    return Message(code, without_password(whole), without_password(following))


def typed(command: str) -> str:
    """``command`` as whoever reads it types it: a shell of root's needs no sudo, and may have none."""
    # Whoever typed sudo has a shell that is not root's.
    return _SUDO.sub("", command) if _is_root() and "SUDO_UID" not in os.environ else command


def _is_root() -> bool:
    """Whether this process may do everything; never where there is no such user (Windows)."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def without_password(text: str) -> str:
    """``text`` with nothing of who logs in left in its addresses (``http://…@host/v1``)."""
    return _LOGIN.sub(r"\1…@", text)


def told(fact: object, language: Language) -> object:
    """``fact`` as it stands in a text: phrases become text, all else stays what it is."""
    return fact.in_language(language) if isinstance(fact, Phrase | Phrases) else fact


def text(code: str, language: Language, /, **facts: object) -> str:
    """Only the text of ``message``."""
    return message(code, language, **facts).text


def reader_language(environ: Mapping[str, str] = os.environ) -> Language:
    """The language of the person at this terminal: ``ONDAM_LANGUAGE``, else the locale, else English."""
    for name in ("ONDAM_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name, ""):
            return "ko" if value.lower().startswith("ko") else "en"
    return "en"
