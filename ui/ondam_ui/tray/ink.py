"""Light or dark icons: what can be known of the panel's colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Ink = Literal["light", "dark"]

WAIT_MS = 500

DARK_BARS = ("gnome", "ubuntu", "unity", "cinnamon", "pantheon")
"""Desktops whose panel is dark whatever the windows are, by the beginning of XDG_CURRENT_DESKTOP."""


def ink_for(environ: Mapping[str, str], *, theme: str, prefers_dark: bool, xfce_dark: bool | None) -> Ink:
    """Pure. ``theme``: Gtk's; ``xfce_dark``: the setting of Xfce's panel, None where there is none."""
    desktops = [part.lower() for part in environ.get("XDG_CURRENT_DESKTOP", "").split(":")]
    if xfce_dark is not None:
        return "light" if xfce_dark or "dark" in theme.lower() else "dark"
    on_dark_bar = any(desktop.startswith(DARK_BARS) for desktop in desktops)
    return "light" if on_dark_bar or prefers_dark or "dark" in theme.lower() else "dark"


def found(environ: Mapping[str, str]) -> Ink:
    """For this session. Asks Gtk, and Xfce's settings where its panel runs."""
    from gi.repository import Gtk

    settings = Gtk.Settings.get_default()
    if settings is None:
        return "light"
    return ink_for(
        environ,
        theme=settings.get_property("gtk-theme-name") or "",
        prefers_dark=bool(settings.get_property("gtk-application-prefer-dark-theme")) or _portal_dark(),
        xfce_dark=_xfce_dark() if _owned("org.xfce.Panel") else None,
    )


def _xfce_dark() -> bool:
    """Dark unless somebody chose otherwise (xfce4-panel 4.16 and newer)."""
    value = _asked(
        "org.xfce.Xfconf",
        "/org/xfce/Xfconf",
        "org.xfce.Xfconf",
        "GetProperty",
        "(ss)",
        "xfce4-panel",
        "/panels/dark-mode",
    )
    return value if isinstance(value, bool) else True


def _portal_dark() -> bool:
    """https://flatpak.github.io/xdg-desktop-portal/: 1 is "prefer dark"."""
    name, key = "org.freedesktop.portal.Desktop", "org.freedesktop.appearance"
    if not _owned(name):
        return False
    place = "/org/freedesktop/portal/desktop"
    return bool(
        _asked(name, place, "org.freedesktop.portal.Settings", "Read", "(ss)", key, "color-scheme") == 1
    )


def _owned(name: str) -> bool:
    """Whether somebody has ``name``: asking a service that is not there could start it."""
    bus = "org.freedesktop.DBus"
    return bool(_asked(bus, "/org/freedesktop/DBus", bus, "NameHasOwner", "(s)", name))


def _asked(name: str, place: str, interface: str, method: str, kind: str, *said: str) -> Any:
    from gi.repository import Gio, GLib

    try:
        bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
        flags = Gio.DBusCallFlags.NO_AUTO_START
        answer = bus.call_sync(
            name, place, interface, method, GLib.Variant(kind, said), None, flags, WAIT_MS, None
        )
    except GLib.Error:
        return None  # not set, or nobody to ask
    return answer.unpack()[0]
