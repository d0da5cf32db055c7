"""What the desktop session must have, asked one after another; the first that is missing is told by name.

Only the standard library is imported at the top: this is also run by a Python that has nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

WATCHER = "org.kde.StatusNotifierWatcher"
"""The name on the session bus under which a panel takes in icons
(https://www.freedesktop.org/wiki/Specifications/StatusNotifierItem/)."""

PIECES = {
    "gi": "python3-gi",
    "Gtk": "gir1.2-gtk-3.0",
    "AyatanaAppIndicator3": "gir1.2-ayatanaappindicator3-0.1",
}
"""What Python must find, and the Debian package that holds it."""

HOSTS = {
    "gnome": "gnome-shell-extension-appindicator",
    "xfce": "xfce4-panel",
    "lxqt": "lxqt-panel",
    "mate": "mate-indicator-applet",
    "kde": "plasma-workspace",
}
"""The Debian package that takes icons in, by the beginning of XDG_CURRENT_DESKTOP."""

BUS_MS = 5000
"""In which the session bus and a panel answer a question; more and they hang."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A message code with its facts: what the tray cannot do without."""

    code: str
    facts: Mapping[str, object] = field(default_factory=dict)


def packages(found: Mapping[str, bool]) -> list[str]:
    """Debian packages of the pieces that were not found."""
    return [package for piece, package in PIECES.items() if not found.get(piece, False)]


def pieces() -> dict[str, bool]:
    """Which of ``PIECES`` this Python finds."""
    try:
        import gi
    except ImportError:
        return dict.fromkeys(PIECES, False)
    return {
        "gi": True,
        "Gtk": _typelib(gi, (("Gtk", "3.0"),)),
        # pystray takes either; the first is the name before the Ayatana project took it over.
        "AyatanaAppIndicator3": _typelib(gi, (("AppIndicator3", "0.1"), ("AyatanaAppIndicator3", "0.1"))),
    }


def host_package(desktop: str) -> str:
    """What to install for a panel that takes icons in, on the desktop of XDG_CURRENT_DESKTOP."""
    named = [part.lower() for part in desktop.split(":")]
    for begin, package in HOSTS.items():
        if any(part.startswith(begin) for part in named):
            return package
    return " / ".join(HOSTS.values())


def missing(environ: Mapping[str, str] = os.environ) -> Missing | None:
    """The first thing that keeps an icon with a menu from being seen."""
    if lacking := packages(pieces()):
        return Missing("tray_packages_missing", {"packages": " ".join(lacking)})
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return Missing("tray_no_display")
    if not _has_bus(environ):
        return Missing("tray_no_bus")
    return _gtk_missing(environ) or _host_missing(environ) or _menu_missing(environ)


def of_login_session(
    asked: Iterable[str] = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"),
) -> dict[str, str]:
    """What the user's service manager knows of the session that this process was started before."""
    try:
        shown = subprocess.run(
            ["systemctl", "--user", "show-environment"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    wanted = frozenset(asked)
    pairs = (line.partition("=") for line in shown.splitlines())
    return {name: value for name, _, value in pairs if name in wanted and value}


def _typelib(gi: object, versions: tuple[tuple[str, str], ...]) -> bool:
    for name, version in versions:
        try:
            gi.require_version(name, version)  # type: ignore[attr-defined]  # PyGObject ships no types
        except ValueError:
            continue
        return True
    return False


def _has_bus(environ: Mapping[str, str]) -> bool:
    """Asked before the library is: it would start a bus of its own, on which nobody is."""
    if environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return True
    runtime = environ.get("XDG_RUNTIME_DIR")
    return bool(runtime) and Path(runtime or "/", "bus").exists()


def _gtk_missing(environ: Mapping[str, str]) -> Missing | None:
    import gi

    gi.require_version("Gtk", "3.0")
    from gi.repository import Gio, GLib, Gtk

    if not Gtk.init_check()[0]:
        return Missing(
            "tray_display_refuses", {"display": environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")}
        )
    try:
        Gio.bus_get_sync(Gio.BusType.SESSION, None)
    except GLib.Error as error:
        return Missing("tray_bus_refuses", {"reason": error.message})
    return None


def _host_missing(environ: Mapping[str, str]) -> Missing | None:
    """Nobody who takes icons in; on X also none of the old kind, to which the indicator falls back."""
    from gi.repository import Gio, GLib

    bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
    try:
        (there,) = bus.call_sync(
            WATCHER,
            "/StatusNotifierWatcher",
            "org.freedesktop.DBus.Properties",
            "Get",
            GLib.Variant("(ss)", (WATCHER, "IsStatusNotifierHostRegistered")),
            None,
            Gio.DBusCallFlags.NONE,
            BUS_MS,
            None,
        ).unpack()
    except GLib.Error:
        there = False  # nobody has that name
    if there or _old_tray():
        return None
    return Missing("tray_no_host", {"package": host_package(environ.get("XDG_CURRENT_DESKTOP", ""))})


def _old_tray() -> bool:
    """The XEmbed tray (specifications.freedesktop.org/systemtray-spec) that many small panels have."""
    from gi.repository import Gdk

    display = Gdk.Display.get_default()
    if display is None or not display.get_name().startswith(":"):
        return False
    import Xlib.display
    import Xlib.error

    try:
        server = Xlib.display.Display(display.get_name())
    except (Xlib.error.DisplayError, OSError):
        return False
    try:
        name = server.get_atom(f"_NET_SYSTEM_TRAY_S{server.get_default_screen()}")
        return bool(server.get_selection_owner(name) != 0)
    finally:
        server.close()


def _menu_missing(environ: Mapping[str, str]) -> Missing | None:
    """All pieces are there by now: somebody chose another back end, or it was taken before they were."""
    import pystray

    if pystray.Icon.HAS_MENU:
        return None
    backend = pystray.Icon.__module__.rpartition("._")[2]
    code = "tray_no_menu_chosen" if environ.get("PYSTRAY_BACKEND") else "tray_no_menu"
    return Missing(code, {"backend": backend})


if __name__ == "__main__":
    json.dump(pieces(), sys.stdout)
