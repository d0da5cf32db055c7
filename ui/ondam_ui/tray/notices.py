"""The desktop's notifications (specifications.freedesktop.org/notification-spec), never waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gi.repository import Gio, GLib

NAME = "org.freedesktop.Notifications"

WAIT_MS = 5000

SHOWN_UNTIL_CLOSED = 0
"""Of the specification: this notification never expires by itself."""


class Notices:
    """One notification: changed, or closed. Where the desktop shows none, nothing happens: the icon and the
    menu tell the same."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._number = 0
        self._bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)

    def tell(self, lines: Sequence[str], icon: str = "") -> None:
        """Show these lines beside the picture in the file ``icon``, or close it where there are none."""
        if lines:
            # The body is markup for some servers.
            body = GLib.markup_escape_text("\n".join(lines))
            urgency = {"urgency": GLib.Variant("y", 1)}
            said = GLib.Variant(
                "(susssasa{sv}i)",
                ("Ondam", self._number, icon, self._title, body, [], urgency, SHOWN_UNTIL_CLOSED),
            )
            self._call("Notify", said, self._told)
        elif self._number:
            self._call("CloseNotification", GLib.Variant("(u)", (self._number,)), self._ignored)
            self._number = 0

    def close(self) -> None:
        """Before the tray ends; leaves with the next flush."""
        if not self._bus.is_closed():
            self.tell(())
            self._bus.flush_sync(None)

    def _call(self, method: str, said: Any, then: Any) -> None:
        place = "/" + NAME.replace(".", "/")
        flags = Gio.DBusCallFlags.NONE
        self._bus.call(NAME, place, NAME, method, said, None, flags, WAIT_MS, None, then)

    def _told(self, bus: Any, result: Any) -> None:
        try:
            (self._number,) = bus.call_finish(result).unpack()
        except GLib.Error:
            self._number = 0  # nobody shows notifications here

    def _ignored(self, bus: Any, result: Any) -> None:
        try:
            bus.call_finish(result)
        except GLib.Error:
            return  # it was closed by a hand already
