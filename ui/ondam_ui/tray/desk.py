"""What only the user's session can do: the icon, the clipboard, notifications, start at login."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, Gio, GLib, Gtk  # noqa: E402 - the version must be named first

from ondam.messages import Message, message, text  # noqa: E402
from ondam_ui.tray import autostart, ink  # noqa: E402
from ondam_ui.tray.icon import ICONS, InPlace  # noqa: E402
from ondam_ui.tray.link import Link  # noqa: E402
from ondam_ui.tray.menu import Shown, shown  # noqa: E402
from ondam_ui.tray.notes import Told, tell, waits  # noqa: E402
from ondam_ui.tray.notices import Notices  # noqa: E402
from ondam_ui.tray.page import NotOpened, Page  # noqa: E402
from ondam_ui.tray.seen import Seen, in_a_line  # noqa: E402

if TYPE_CHECKING:
    from ondam_ui.tray.__main__ import Wanted

DO_NOT_QUEUE, ALREADY_ANOTHERS = 4, 3
"""Of D-Bus's RequestName (https://dbus.freedesktop.org/doc/dbus-specification.html)."""


class Desk:
    """The icon in the main thread, the link to the daemon in one of its own."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._link = Link(wanted.socket, wanted.language, self)
        self._page = Page(wanted.ondam)
        self._command = autostart.login_command(wanted.ondam, wanted.icons)
        self._newest: Seen | None = None
        self._lock = threading.Lock()
        self._told = Told()
        self._ink: ink.Ink = "light"
        self._timer = 0

    def run(self) -> int:
        """Until ``quit``; the exit code."""
        if not self._alone():
            print(message("tray_already_there", self._wanted.language).text, file=sys.stderr)
            return 0
        first = shown(self._link.seen, self._wanted.language)
        self._see_ink()
        self._icon = InPlace(first, self._ink, self._link.do)
        self._notices = Notices(text("tray_notice", self._wanted.language))
        if settings := Gtk.Settings.get_default():
            settings.connect("notify::gtk-theme-name", self._recolour)
        for number in (signal.SIGTERM, signal.SIGINT):
            GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, self.quit)
        threading.Thread(target=lambda: asyncio.run(self._link.run()), daemon=True, name="link").start()
        self._bus.connect("closed", lambda *_: self.quit())
        self._icon.run()
        self._page.close()
        self._notices.close()
        return 1 if self._bus.is_closed() else 0  # the session has ended

    def show(self, seen: Seen) -> None:
        """From the link's thread. Several changes in a row become one."""
        with self._lock:
            scheduled, self._newest = self._newest is not None, seen
        if not scheduled:
            GLib.idle_add(self._take)

    def copy(self, told: str) -> None:
        """From the link's thread."""
        GLib.idle_add(self._copied, told)

    async def open_panel(self) -> NotOpened | None:
        """From the link's loop."""
        return await self._page.open()

    def at_login(self) -> bool:
        """Whether the tray starts with the session."""
        return autostart.is_on(autostart.place())

    def set_at_login(self, wanted: bool) -> None:
        """Raises OSError."""
        if wanted:
            autostart.switch_on(autostart.place(), self._wanted.entry, self._command)
        else:
            autostart.switch_off(autostart.place())

    def quit(self) -> bool:
        """From any thread; the daemon goes on."""
        GLib.idle_add(self._icon._stop)
        return True

    def _take(self) -> bool:
        self._apply()
        return False  # once

    def _apply(self) -> None:
        with self._lock:
            seen, self._newest = self._newest, None
        seen = seen or self._link.seen
        now: Shown = shown(seen, self._wanted.language)
        self._icon.change(now, self._ink)
        self._notify(seen)

    def _notify(self, seen: Seen) -> None:
        told = seen.status["faults"] if seen.status else ()
        faults = tuple(in_a_line(Message(fault["code"], fault["text"], fault["next"])) for fault in told)
        self._told, lines = tell(self._told, faults, time.monotonic())
        if lines is not None:
            picture = ICONS / "hicolor" / "48x48" / "status" / f"ondam-fault-{self._ink}.png"
            self._notices.tell(lines, str(picture))
        if self._timer:
            GLib.source_remove(self._timer)
            self._timer = 0
        if (later_s := waits(self._told, faults, time.monotonic())) is not None:
            self._timer = GLib.timeout_add(int(later_s * 1000) + 1, self._notify_later)

    def _notify_later(self) -> bool:
        self._timer = 0
        self._notify(self._link.seen)
        return False

    def _copied(self, told: str) -> bool:
        clipboard = Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD)
        clipboard.set_text(told, -1)
        clipboard.store()  # where the desktop keeps a clipboard, it outlives the tray
        return False

    def _recolour(self, *_: object) -> None:
        self._see_ink()
        self._apply()

    def _see_ink(self) -> None:
        chosen: Any = self._wanted.icons
        self._ink = ink.found(os.environ) if chosen == "auto" else chosen

    def _alone(self) -> bool:
        """One icon for each daemon."""
        # Kept: GLib closes a bus that nobody holds, and the name would be free again.
        self._bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
        # By itself GLib would end us with SIGTERM in the middle of whatever is done.
        self._bus.set_exit_on_close(False)
        name = f"org.ondam.Tray.x{self._wanted.socket.parent.name.rpartition('-')[2]}"
        asked = GLib.Variant("(su)", (name, DO_NOT_QUEUE))
        there = "org.freedesktop.DBus"
        (answer,) = self._bus.call_sync(
            there,
            "/org/freedesktop/DBus",
            there,
            "RequestName",
            asked,
            None,
            Gio.DBusCallFlags.NONE,
            -1,
            None,
        ).unpack()
        return bool(answer != ALREADY_ANOTHERS)
