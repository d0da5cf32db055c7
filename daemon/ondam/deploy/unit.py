"""Units of systemd as texts: the shipped ones with their places filled in, and what one says of itself.

Pure, but for reading the shipped files.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ondam import __version__
from ondam.errors import ServiceError

Scope: TypeAlias = Literal["user", "system"]

NAME = "ondam.service"

SHIPPED: Mapping[Scope, str] = {"user": "ondam-user.service", "system": "ondam.service"}
SYSUSERS = "sysusers.conf"

_MARK = "# Written by `ondam service install`; `ondam service uninstall` removes it."
_WORD = r'"(?:[^"\\]|\\.)*"'
_STAMP = re.compile(r"^# ondam (?P<version>\S+), sha256 (?P<sha256>[0-9a-f]{64})$", re.MULTILINE)


def shipped(name: str) -> str:
    """A file of ``packaging/systemd``: of the source tree, else where the wheel put it. ServiceError."""
    for folder in (
        Path(__file__).parents[3] / "packaging" / "systemd",
        Path(sys.prefix) / "share" / "ondam" / "systemd",
    ):
        if (folder / name).is_file():
            return (folder / name).read_text("utf-8")
    raise ServiceError("service_not_shipped", path=folder / name)


def unit(scope: Scope, program: Path, environment: Mapping[str, str]) -> str:
    """The unit that runs ``program`` with ``environment`` added. Raises ServiceError for a path or a value
    that no unit can hold."""
    if set(str(program)) & set("'\"\\"):  # systemd takes no program with these, however they are escaped
        raise ServiceError("service_path_no_text", path=program)
    said = {
        "user": "".join(f"{line}\n" for line in _environment(environment)).removesuffix("\n"),
        "system": "".join(f"\n{line}" for line in _environment(environment)),
    }[scope]
    body = shipped(SHIPPED[scope]).replace("@ondam@", _quoted(str(program))).replace("@environment@", said)
    return f"{_MARK}\n# ondam {__version__}, sha256 {_hash(body)}\n{body}"


def _environment(environment: Mapping[str, str]) -> list[str]:
    return [f"Environment={_quoted(f'{name}={value}')}" for name, value in environment.items()]


def _quoted(word: str) -> str:
    """One word of a unit's line: quotes and backslashes escaped, ``%`` begins no specifier (systemd.unit(5)).

    A ``$`` stays: neither the program's path nor an environment's value is expanded (systemd.service(5)).
    """
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise ServiceError("service_path_no_text", path=word.encode("utf-8", "replace").decode()) from error
    if any(ord(sign) < 32 for sign in word):
        raise ServiceError("service_path_no_text", path=repr(word))
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


@dataclass(frozen=True, slots=True)
class Installed:
    """What a unit that is there says of itself."""

    ours: bool
    """Written by ``ondam service install``."""
    version: str | None
    changed: bool
    """Since then, by somebody else."""
    program: Path | None
    as_shipped: bool
    """But for its version it says what this version's units say."""

    @classmethod
    def read(cls, text: str) -> Installed:
        """Of the unit's text."""
        stamp = _STAMP.search(text)
        ours = text.startswith(_MARK) and stamp is not None
        body = text[stamp.end() + 1 :] if stamp else text
        found = re.search(rf"^ExecStart=({_WORD})", body, re.MULTILINE)
        program = None
        if found:
            program = Path(re.sub(r"\\(.)", r"\1", found[1][1:-1]).replace("%%", "%"))
        return cls(
            ours,
            stamp["version"] if stamp else None,
            stamp is not None and stamp["sha256"] != _hash(body),
            program,
            ours and _as_shipped(body),
        )

    @property
    def current(self) -> bool:
        """As this version would write it."""
        return self.ours and (self.version == __version__ or self.as_shipped)


def _as_shipped(body: str) -> bool:
    """Whether it is a shipped unit with its places filled in, whatever program and variables they name."""
    filled = rf"(?:Environment={_WORD})?(?:\nEnvironment={_WORD})*"
    try:
        patterns = [re.escape(shipped(name)) for name in SHIPPED.values()]
    except ServiceError:
        return False  # whoever writes a unit is told what this installation lacks
    return any(
        re.fullmatch(pattern.replace("@ondam@", _WORD).replace("@environment@", filled), body)
        for pattern in patterns
    )


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
