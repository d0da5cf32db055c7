"""The way to the daemon: follows it, comes back to it, and does what a click asks for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ondam.control import wire
from ondam.control.client import Client, ControlError
from ondam.messages import Message, message, text
from ondam_ui.tray.menu import ANSWERING, Do, Language
from ondam_ui.tray.page import NotOpened
from ondam_ui.tray.seen import Remark, Seen, Verb, fold, in_a_line, known, lost, today
from ondam_ui.tray.seldom import Seldom

FIRST_S, LAST_S = 0.5, 5.0
"""Between tries to reach the daemon; doubled each time. A try is one ``connect`` to a socket."""

REMARK_S = 8.0
"""How long the menu says what the last choice came to."""

LISTEN_S = 30.0
"""How long "Listen to one question now" waits for a voice."""

DAY_LOOK_S = 600.0
"""Between looks whether it is another day: a machine that slept knows nothing of the time that it missed."""

ASKS_AGAIN = frozenset({"fault", "fault_cleared", "engine", "switch"})
"""Events after which the whole status is asked for: its texts are in the reader's language."""

OTHER_DEVICES = frozenset({"snapshot", "mode", "fault", "fault_cleared", "settings"})
"""Events after which there may be others, or another one may be chosen."""


@runtime_checkable
class Explained(Protocol):
    """An ``OndamError``, which the tray does not import."""

    def message(self, language: Language) -> Message:
        """What happened, and what to do."""


class Desk(Protocol):
    """What only the user's session can do."""

    def show(self, seen: Seen) -> None:
        """From now on this is so. Called from the link's thread."""

    def copy(self, told: str) -> None:
        """Into the clipboard."""

    async def open_panel(self) -> NotOpened | None:
        """In the browser, unless something is in the way. Raises OSError."""

    def set_at_login(self, wanted: bool) -> None:
        """Whether the tray starts with the session. Raises OSError."""

    def at_login(self) -> bool:
        """Whether it does."""

    def quit(self) -> object:
        """End the tray; the daemon goes on."""


@dataclass
class Link:
    """Runs in an event loop of its own; ``do`` and ``end`` may be called from any thread."""

    socket: Path
    language: Language
    desk: Desk
    now: Callable[[], datetime] = lambda: datetime.now().astimezone()
    seen: Seen = field(default_factory=Seen)
    _loop: asyncio.AbstractEventLoop | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _asked: asyncio.Task[None] | None = None
    _forgets: asyncio.TimerHandle | None = None
    _figures: Seldom = field(init=False)
    _day: date | None = None

    def __post_init__(self) -> None:
        self._figures = Seldom(lambda: _quietly(self._read_today()))

    async def run(self) -> None:
        """Until cancelled. The daemon may come, go and come back as often as it likes."""
        self._loop = asyncio.get_running_loop()
        self._started(asyncio.ensure_future(self._figures.run()))
        self._started(asyncio.ensure_future(self._see_days_pass()))
        waits_s = FIRST_S
        while True:
            try:
                self._see(replace(self.seen, at_login=self.desk.at_login()))
                async with Client(self.socket, self.language) as client:
                    async for event in client.events():
                        waits_s = FIRST_S
                        await self._heard(client, event)
            except Exception as error:  # noqa: BLE001 - a daemon of another version may answer anything; the icon stays
                self._see(lost(self.seen, _explained(error, self.language)))
            await asyncio.sleep(waits_s)
            waits_s = min(2 * waits_s, LAST_S)

    def do(self, what: Do) -> None:
        """A click."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin, what)

    async def _heard(self, client: Client, event: wire.Event) -> None:
        self._see(fold(self.seen, event))
        if event["type"] == "snapshot" or event["type"] in ASKS_AGAIN:
            self._see(known(self.seen, await client.status()))
        if event["type"] == "snapshot":
            self._later(self._read_targets())
        if event["type"] in {"snapshot", "turn"}:
            self._figures.want()
        if event["type"] in OTHER_DEVICES:
            self._later(self._read_devices())

    async def _read_targets(self) -> None:
        async with Client(self.socket, self.language) as client:
            budget = await client.budget()
        self._see(replace(self.seen, targets_ms={s["stage"]: s["target_ms"] for s in budget["stages"]}))

    async def _see_days_pass(self) -> None:
        """What is called today's was yesterday's after midnight."""
        while True:
            now = self.now()
            if self._day not in {None, now.date()}:
                self._see(replace(self.seen, today=None))
                self._figures.want()
            self._day = now.date()
            left_s = (_midnight(now) + timedelta(days=1) - now).total_seconds()
            await asyncio.sleep(min(max(left_s, 1.0), DAY_LOOK_S))

    async def _read_today(self) -> None:
        async with Client(self.socket, self.language) as client:
            report = await client.report(since=_midnight(self.now()).isoformat())
        self._see(replace(self.seen, today=today(report)))

    async def _read_devices(self) -> None:
        async with Client(self.socket, self.language) as client:
            devices = await client.devices()
        if self.seen.status is not None:
            self._see(replace(self.seen, devices=devices))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside the events: a report of a long journal must not hold up the icon."""
        self._started(asyncio.ensure_future(_quietly(work)))

    def _started(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin(self, what: Do) -> None:
        if what.verb == "quit":
            self.desk.quit()
        elif what.verb == "listen" and self._asked is not None and not self._asked.done():
            self._asked.cancel()  # the daemon gives it up when its caller leaves
        else:
            task = asyncio.ensure_future(self._done(what))
            if what.verb == "listen":
                self._asked = task
            self._started(task)

    async def _done(self, what: Do) -> None:
        try:
            async with Client(self.socket, self.language) as client:
                await self._act(client, what)
        except Exception as error:  # noqa: BLE001 - whatever it was, the person who clicked is told, and the icon stays
            self._remark(in_a_line(_explained(error, self.language)))
        finally:
            if what.verb == "listen":
                self._see(replace(self.seen, asking=False))

    async def _act(self, client: Client, what: Do) -> None:
        match what.verb:
            case "listen":
                self._see(replace(self.seen, asking=True))
                await client.listen(LISTEN_S)
            case "stop":
                await client.stop_speaking()
            case "mute":
                await self._mute(client)
            case "mode":
                await client.set_mode(_mode(what.value))
            case "microphone" | "speaker":
                await self._choose(client, what.verb, what.value)
            case "panel":
                self._remark(text("tray_panel_opens", self.language), "panel")
                if failed := await self.desk.open_panel():
                    self._remark(in_a_line(message(failed.code, self.language, **failed.facts)))
            case "diagnostics":
                told = await client.diagnostics()
                self.desk.copy(json.dumps(told, ensure_ascii=False, indent=1))
                self._remark(text("tray_diagnostics_copied", self.language), "diagnostics")
            case "login":
                self._log_in(not self.seen.at_login)
            case "shutdown":
                await client.shutdown()
            case "quit":
                pass

    async def _choose(self, client: Client, kind: wire.DeviceKind, name: str | None) -> None:
        """For good, or as long as the daemon runs where only that is allowed (a system's daemon)."""
        try:
            devices = await client.choose_devices({kind: name}, keep=True)
        except ControlError as refused:
            if refused.code != "control_not_permitted":
                raise
            devices = await client.choose_devices({kind: name}, keep=False)
            self._remark(text("tray_device_for_now", self.language), kind)
        self._see(replace(self.seen, devices=devices))

    def _log_in(self, wanted: bool) -> None:
        try:
            self.desk.set_at_login(wanted)
        except OSError as error:
            reason = error.strerror or str(error)
            self._remark(text("tray_login_failed", self.language, path=error.filename, reason=reason))
        self._see(replace(self.seen, at_login=self.desk.at_login()))

    async def _mute(self, client: Client) -> None:
        """And back to what was before, which the daemon knows."""
        muted = self.seen.status is not None and self.seen.status["mode"] == "muted"
        await client.set_mode("unmuted" if muted else "muted")

    def _remark(self, told: str, verb: Verb | None = None) -> None:
        assert self._loop is not None
        if self._forgets is not None:
            self._forgets.cancel()
        self._see(replace(self.seen, remark=Remark(told, verb)))
        self._forgets = self._loop.call_later(REMARK_S, lambda: self._see(replace(self.seen, remark=None)))

    def _see(self, seen: Seen) -> None:
        if seen != self.seen:
            self.seen = seen
            self._figures.quiet(seen.status is not None and seen.status["state"] not in ANSWERING)
            self.desk.show(seen)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _explained(error: Exception, language: Language) -> Message:
    if isinstance(error, Explained):
        return error.message(language)
    return message("cli_unexpected", language, kind=type(error).__name__, reason=error)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """A line of the menu that cannot be filled stays as it was: what keeps it from that is told by the
    daemon's own faults, or by the connection that follows it."""
    with suppress(Exception):
        await work


def _mode(value: str | None) -> wire.Mode:
    return next(mode for mode in wire.MODES if mode == value)
