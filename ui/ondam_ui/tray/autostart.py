"""Start at login: one XDG autostart entry in the user's folder, made of the one that Ondam ships.

https://specifications.freedesktop.org/autostart-spec/
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

NAME = "ondam-tray.desktop"

RESERVED = " \t\n\"'\\><~|&;$*?#()`"
"""Characters for which an argument of Exec must be quoted (desktop-entry-spec, "The Exec key")."""


def place(environ: Mapping[str, str] = os.environ) -> Path:
    """The entry's file."""
    config = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".config")
    return Path(config) / "autostart" / NAME


def login_command(
    ondam: Sequence[str], icons: str, environ: Mapping[str, str] = os.environ
) -> tuple[str, ...]:
    """Of the tray as it was started now, with what a session that logs in does not have by itself."""
    kept = [f"{name}={environ[name]}" for name in ("ONDAM_HOME",) if environ.get(name)]
    chosen = () if icons == "auto" else ("--icons", icons)
    return (*(("env", *kept) if kept else ()), *ondam, "tray", "--wait", *chosen)


def is_on(path: Path) -> bool:
    """Whether the tray starts with the session: an entry may be there and say that it does not."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError):  # none, or one that is not UTF-8: no desktop takes it either
        return False
    return "Hidden=true" not in lines and "X-GNOME-Autostart-enabled=false" not in lines


def switch_on(path: Path, template: str, command: Sequence[str]) -> None:
    """Write the entry. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(template.replace("@COMMAND@", quoted(command)), "utf-8")
    beside.replace(path)


def switch_off(path: Path) -> None:
    """Remove it. Raises OSError."""
    path.unlink(missing_ok=True)


def quoted(command: Sequence[str]) -> str:
    """As the key Exec has it: ``%`` doubled, and quotes around what a desktop would take apart."""
    return " ".join(_argument(argument) for argument in command)


def _argument(argument: str) -> str:
    doubled = argument.replace("%", "%%")
    if doubled and not set(doubled) & set(RESERVED):
        return doubled
    # Twice: once for the quotes, and once because the value is a string, in which \ is an escape too.
    inner = "".join(f"\\{letter}" if letter in '"`$\\' else letter for letter in doubled)
    return '"' + inner.replace("\\", "\\\\") + '"'
