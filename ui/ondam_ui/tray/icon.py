"""pystray's icon, with a menu that changes in place.

pystray makes the whole menu anew whenever something in it changes, also after each click: over D-Bus that is
``LayoutUpdated``, and the host closes what the hand is in. On the Gtk backends the entries are therefore made
once, and their texts, marks and visibility are set: ``ItemsPropertiesUpdated``, which an open menu shows.
This reaches into pystray 0.19.5, which is pinned (docs/decisions/tray.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pystray

from ondam_ui.tray.menu import Do, Entry, Shown

ICONS = Path(__file__).parent / "icons"

Click = Callable[[Do], None]


@dataclass(frozen=True, slots=True)
class Picture:
    """What pystray takes for an image: on Gtk only its name and file are wanted, and no Pillow is loaded."""

    name: str
    description: str

    @property
    def path(self) -> Path:
        """The largest; hosts that are given a name choose a size themselves."""
        return ICONS / "hicolor" / "48x48" / "status" / f"{self.name}.png"


def picture_of(shown: Shown, ink: str) -> Picture:
    """The one for what is shown."""
    return Picture(f"ondam-{shown.icon}-{ink}", shown.title)


class InPlace(pystray.Icon):  # type: ignore[misc]  # ships no types
    """On Gtk. To be used from the thread of its main loop, but for ``stop``."""

    def __init__(self, shown: Shown, ink: str, click: Click) -> None:
        self._click_ours = click
        self._shown = shown
        self._picture = picture_of(shown, ink)
        self._items: dict[str, Any] = {}
        self._entries = {entry.key: entry for entry in shown.walk()}
        self._changing = False
        super().__init__("ondam", self._picture, shown.title, pystray.Menu(pystray.MenuItem("…", None)))
        if hasattr(self, "_appindicator"):
            self._appindicator.set_icon_theme_path(str(ICONS))

    def change(self, shown: Shown, ink: str) -> None:
        """Show this from now on. What is as it was is not touched: each change is a message to the host."""
        picture = picture_of(shown, ink)
        if picture != self._picture:
            # Not by pystray's properties, which do nothing while its thread has not shown the icon yet.
            self._icon = self._picture = picture
            self._title = shown.title
            self._update_icon()
            self._update_title()
        before, self._entries = self._entries, {entry.key: entry for entry in shown.walk()}
        self._shown = shown
        for key, item in self._items.items():
            if self._entries[key] != before[key]:
                self._dress(item, self._entries[key])

    def _create_menu(self, _descriptors: object) -> Any:
        return self._made(self._shown.entries)

    def _update_menu(self) -> None:
        """pystray asks for it at the start and after each click."""
        if not self._items:
            super()._update_menu()

    def _made(self, entries: Iterable[Entry]) -> Any:
        from gi.repository import Gtk

        menu = Gtk.Menu.new()
        for entry in entries:
            item = self._item(Gtk, entry)
            item.set_no_show_all(True)  # visibility is the entry's
            self._dress(item, entry)
            menu.append(item)
        menu.show_all()
        return menu

    def _item(self, gtk: Any, entry: Entry) -> Any:
        if entry.separator:
            item = gtk.SeparatorMenuItem()
        elif entry.marked is not None:
            item = gtk.CheckMenuItem.new_with_mnemonic("")
            item.set_draw_as_radio(entry.radio)
        else:
            item = gtk.MenuItem.new_with_mnemonic("")
        for child in item.get_children():
            child.show()
        if entry.inside:
            item.set_submenu(self._made(entry.inside))
        elif not entry.separator:
            item.connect("activate", self._activated, entry.key)
        self._items[entry.key] = item
        return item

    def _dress(self, item: Any, entry: Entry) -> None:
        self._changing = True
        try:
            if not entry.separator:
                # An underline is taken for the mark of a key by Gtk and by hosts alike.
                label = entry.text.replace("_", "__")
                if item.get_label() != label:
                    item.set_label(label)
                item.set_sensitive(entry.enabled)
            if entry.marked is not None:
                item.set_active(entry.marked)
            item.set_visible(entry.visible)
        finally:
            self._changing = False

    def _activated(self, item: Any, key: str) -> None:
        """Also when a mark is set by us, which is no click."""
        if self._changing:
            return
        entry = self._entries[key]
        if entry.does is not None:
            self._click_ours(entry.does)
        if entry.marked is not None:
            # Gtk has set the mark already; what is so is told by the daemon.
            self._dress(item, entry)

    def _update_icon(self) -> None:
        """By name: the host takes the size that it draws, and finds no temporary file gone."""
        if hasattr(self, "_appindicator"):
            self._icon_path = self._picture.name
            self._appindicator.set_icon_full(self._picture.name, self._picture.description)
        else:
            self._icon_path = str(self._picture.path)
            self._status_icon.set_from_file(self._icon_path)
        self._icon_valid = True

    def _remove_fs_icon(self) -> None:
        """The files are the package's."""

    def _initialize(self) -> None:
        """Without pystray's notifications: they wait for the desktop's answer in the main loop, and end in a
        traceback where no desktop shows any."""
        self._notifier = _NoNotifier()
        self._mark_ready()


class _NoNotifier:
    def hide(self) -> None:
        """Ours are closed by ``notices``."""
