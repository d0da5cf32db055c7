"""The tray's process: looks whether the desktop can show it, then shows it.

Ends with 0 when it was asked to, or runs already; with 11 where the desktop lacks something (``session``).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ondam.messages import message
from ondam_ui.tray import session
from ondam_ui.tray.menu import Language

NO_DESKTOP = 11
"""The exit code of ``ondam.errors.DesktopError``."""

FIRST_S, LAST_S = 1.0, 30.0
"""Between looks at a desktop that lacks something, with ``--wait``; doubled each time."""

WAITED = "ONDAM_TRAY_WAITED_S"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What ``ondam tray`` hands over. ``ondam``: the command to call it with; ``entry``: the autostart entry
    to be filled in."""

    socket: Path
    ondam: tuple[str, ...]
    entry: str
    language: Language
    icons: str
    wait: bool


def main(arguments: Sequence[str]) -> int:
    """Run until asked to quit; the exit code."""
    wanted = _wanted(arguments)
    _lean()
    if missing := session.missing():
        if wanted.wait:
            _look_again()
        told = message(missing.code, wanted.language, **missing.facts)
        print(told.text, file=sys.stderr)
        if told.next:
            print(f"→ {told.next}", file=sys.stderr)
        return NO_DESKTOP
    from ondam_ui.tray.desk import Desk  # late: loads Gtk, which ends the process where there is no display

    return Desk(wanted).run()


def _wanted(arguments: Sequence[str]) -> Wanted:
    parser = argparse.ArgumentParser(prog="ondam tray")
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--ondam", type=json.loads, required=True)
    parser.add_argument("--entry", type=Path, required=True)
    parser.add_argument("--language", choices=["ko", "en"], default="en")
    parser.add_argument("--icons", choices=["auto", "light", "dark"], default="auto")
    parser.add_argument("--wait", action="store_true")
    given = parser.parse_args(arguments)
    entry = given.entry.read_text("utf-8")
    return Wanted(given.socket, tuple(given.ondam), entry, given.language, given.icons, given.wait)


def _lean() -> None:
    """Before Gtk is loaded: an icon draws nothing, and Mesa would cost it 50 MiB."""
    os.environ.setdefault("GDK_GL", "disable")
    os.environ.setdefault("NO_AT_BRIDGE", "1")
    if os.environ.get("DISPLAY"):
        # On Wayland too: only there may a program without a window fill the clipboard.
        os.environ.setdefault("GDK_BACKEND", "x11,*")


def _look_again() -> None:
    """Wait and begin anew, as a new program: libraries do not forget a display that they did not find."""
    waits_s = min(float(os.environ.get(WAITED, FIRST_S)), LAST_S)
    time.sleep(waits_s)
    environ = {**session.of_login_session(), **os.environ, WAITED: str(2 * waits_s)}
    os.execve(sys.executable, sys.orig_argv, environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
