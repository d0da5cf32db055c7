"""The session bus as a panel sees it: who registered an icon, its menu, and what is said about it."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jeepney import (
    DBusAddress,
    HeaderFields,
    MatchRule,
    Message,
    MessageType,
    message_bus,
    new_method_call,
    new_method_return,
)
from jeepney.io.blocking import open_dbus_connection

WATCHER = DBusAddress(
    "/StatusNotifierWatcher",
    bus_name="org.kde.StatusNotifierWatcher",
    interface="org.kde.StatusNotifierWatcher",
)
MENU = "com.canonical.dbusmenu"
ITEM = "org.kde.StatusNotifierItem"
PROPERTIES = "org.freedesktop.DBus.Properties"


class Refused(AssertionError):
    """An error came back."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the menu, as the host has it."""

    number: int
    properties: Mapping[str, Any]
    rows: tuple[Row, ...]

    @property
    def label(self) -> str:
        """As a host shows it: one underline is the mark of a key, two are one."""
        return re.sub("_(_?)", r"\1", str(self.properties.get("label", "")))

    @property
    def visible(self) -> bool:
        return bool(self.properties.get("visible", True))

    @property
    def enabled(self) -> bool:
        return bool(self.properties.get("enabled", True))

    @property
    def marked(self) -> bool:
        return bool(self.properties.get("toggle-state", 0) == 1)

    def walk(self) -> Iterator[Row]:
        yield self
        for row in self.rows:
            yield from row.walk()


class Bus:
    """Calls that wait for their answer."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection = open_dbus_connection(address)

    def close(self) -> None:
        self._connection.close()

    def host_there(self) -> bool:
        with contextlib.suppress(Refused):
            return bool(self._property(WATCHER, "IsStatusNotifierHostRegistered"))
        return False

    def icons(self) -> list[Icon]:
        """Those registered now."""
        with contextlib.suppress(Refused):
            names: list[str] = self._property(WATCHER, "RegisteredStatusNotifierItems")
            return [Icon(self, *_split(name)) for name in names]
        return []

    def icon(self) -> Icon:
        """The only one."""
        (icon,) = self.icons()
        return icon

    def has_name(self, name: str) -> bool:
        return bool(self.ask(message_bus.NameHasOwner(name))[0])

    @contextlib.contextmanager
    def listening(self, sender: str) -> Iterator[list[Message]]:
        """The signals of ``sender``, from now until the block ends."""
        with contextlib.closing(open_dbus_connection(self._address)) as ear:
            rule = MatchRule(type="signal", sender=sender)
            ear.send_and_get_reply(message_bus.AddMatch(rule), timeout=5)
            heard: list[Message] = []
            yield heard
            with contextlib.suppress(TimeoutError):
                while True:
                    message = ear.receive(timeout=0.3)
                    if message.header.message_type is MessageType.signal:
                        heard.append(message)

    def ask(self, message: Message) -> tuple[Any, ...]:
        answer = self._connection.send_and_get_reply(message, timeout=5)
        if answer.header.message_type is MessageType.error:
            raise Refused(answer.header.fields[HeaderFields.error_name], answer.body)
        body: tuple[Any, ...] = answer.body
        return body

    def _property(self, address: DBusAddress, name: str) -> Any:
        asked = address.with_interface(PROPERTIES)
        return self.ask(new_method_call(asked, "Get", "ss", (address.interface, name)))[0][1]


@dataclass(frozen=True, slots=True)
class Icon:
    """One icon in the panel."""

    bus: Bus
    owner: str
    path: str

    def told(self, name: str) -> Any:
        """A property of it, as ``IconName``."""
        return self.bus._property(DBusAddress(self.path, bus_name=self.owner, interface=ITEM), name)

    @property
    def picture(self) -> str:
        """``listening`` of ``ondam-listening-light``."""
        return str(self.told("IconName")).split("-")[1]

    @property
    def menu(self) -> DBusAddress:
        return DBusAddress(self.told("Menu"), bus_name=self.owner, interface=MENU)

    def rows(self) -> Row:
        """The whole menu, hidden rows too."""
        asked = new_method_call(self.menu, "GetLayout", "iias", (0, -1, []))
        return _row(self.bus.ask(asked)[1])

    def labels(self) -> list[str]:
        """What a person reads."""
        return [row.label for row in self.rows().rows if row.visible and row.label]

    def row(self, begins: str) -> Row:
        """The one whose label begins so."""
        found = [row for row in self.rows().walk() if row.visible and row.label.startswith(begins)]
        assert len(found) == 1, (begins, [row.label for row in self.rows().walk()])
        return found[0]

    def open(self) -> bool:
        """As a host does before it shows the menu; whether it is to ask for the layout again."""
        (again,) = self.bus.ask(new_method_call(self.menu, "AboutToShow", "i", (0,)))
        self._event(0, "opened")
        return bool(again)

    def click(self, row: Row) -> None:
        self._event(row.number, "clicked")

    def _event(self, number: int, what: str) -> None:
        said = (number, what, ("s", ""), int(time.time()))
        self.bus.ask(new_method_call(self.menu, "Event", "isvu", said))


class Notifications:
    """The desktop's notifications, as a server that only remembers. Use as ``with``."""

    NAME = "org.freedesktop.Notifications"

    def __init__(self, address: str) -> None:
        self._connection = open_dbus_connection(address)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.told: list[str] = []
        self.closed: list[int] = []

    def __enter__(self) -> Notifications:
        self._connection.send_and_get_reply(message_bus.RequestName(self.NAME), timeout=5)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._connection.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                message = self._connection.receive(timeout=0.1)
                if message.header.message_type is not MessageType.method_call:
                    continue
                match message.header.fields[HeaderFields.member]:
                    case "Notify":
                        self.told.append(message.body[4])
                        self._connection.send(new_method_return(message, "u", (7,)))
                    case "CloseNotification":
                        self.closed.append(message.body[0])
                        self._connection.send(new_method_return(message))


def _row(told: Any) -> Row:
    number, properties, rows = told
    plain = {name: value for name, (_, value) in properties.items()}
    return Row(number, plain, tuple(_row(row) for _, row in rows))


def _split(name: str) -> tuple[str, str]:
    owner, slash, path = name.partition("/")
    return owner, slash + path if slash else "/StatusNotifierItem"
