"""Following a daemon that comes and goes, and what clicks ask of it, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, cast

import pytest
from tests.fakes.virtual_time import virtual_time
from tests.unit.ui.tray_status import microphones, status, turn

from ondam.control import wire
from ondam.errors import ControlError
from ondam_ui.tray import link as module
from ondam_ui.tray.link import LAST_S, REMARK_S, Link
from ondam_ui.tray.menu import Do, shown
from ondam_ui.tray.page import NotOpened
from ondam_ui.tray.seen import Seen, Today


@dataclass
class Daemon:
    """What all clients reach. ``there``: whether it answers."""

    there: bool = True
    mode: str = "open"
    asked: list[object] = field(default_factory=list)
    tries: list[float] = field(default_factory=list)
    refuses: bool = False
    keeps: bool = True
    report_s: float = 0.0
    reading: int = 0
    """Reports that are being made."""
    state: str = "listening"
    events: asyncio.Queue[wire.Event | None] = field(default_factory=asyncio.Queue)


class ScriptedClient:
    daemon: Daemon

    def __init__(self, path: Path, language: str) -> None:
        assert (path, language) == (Path("/sock"), "en")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def events(self) -> AsyncIterator[wire.Event]:
        self.daemon.tries.append(asyncio.get_running_loop().time())
        if not self.daemon.there:
            raise ControlError("daemon_not_running", path="/sock", command="ondam up")
        yield {"type": "snapshot", "status": status(mode=self.daemon.mode, state=self.daemon.state)}
        while event := await self.daemon.events.get():
            yield event
        raise ControlError("daemon_gone", reason="it ended")

    async def status(self) -> wire.Status:
        return status(mode=self.daemon.mode, state=self.daemon.state)

    async def budget(self) -> wire.Budget:
        return cast("wire.Budget", {"stages": [{"stage": "stt", "target_ms": 144.0}]})

    async def report(self, since: str) -> wire.Report:
        self.daemon.asked.append(("report", since))
        self.daemon.reading += 1
        assert self.daemon.reading == 1, "each keeps a process of the daemon's busy"
        await asyncio.sleep(self.daemon.report_s)
        self.daemon.reading -= 1
        return cast("wire.Report", {"groups": []})

    async def devices(self) -> wire.Devices:
        self.daemon.asked.append(("devices",))
        return microphones("built-in")

    async def choose_devices(self, wanted: Any, *, keep: bool) -> wire.Devices:
        self.daemon.asked.append((wanted, keep))
        if keep and not self.daemon.keeps:
            raise ControlError("control_not_permitted", uid=1, permission="admin")
        return microphones("built-in", "usb", chosen=wanted["microphone"])

    async def set_mode(self, mode: str) -> None:
        if self.daemon.refuses:
            raise ControlError("control_not_permitted", uid=1, permission="command")
        self.daemon.asked.append(mode)
        mode = self.daemon.mode = "name" if mode == "unmuted" else mode
        self.daemon.events.put_nowait({"type": "mode", "session": "a", "mode": cast("wire.Mode", mode)})

    async def listen(self, timeout_s: float) -> None:
        self.daemon.asked.append("listen")
        try:
            await asyncio.sleep(timeout_s)
        except asyncio.CancelledError:
            self.daemon.asked.append("given up")
            raise

    async def diagnostics(self) -> object:
        return {"versions": {"ondam": "0.1.0"}}

    async def shutdown(self) -> None:
        self.daemon.asked.append("shutdown")


@dataclass
class Desk:
    seen: Seen = field(default_factory=Seen)
    copied: str = ""
    login: bool = False
    failed: NotOpened | None = None
    writable: bool = True
    ended: bool = False

    def show(self, seen: Seen) -> None:
        self.seen = seen

    def copy(self, told: str) -> None:
        self.copied = told

    async def open_panel(self) -> NotOpened | None:
        return self.failed

    def set_at_login(self, wanted: bool) -> None:
        if not self.writable:
            raise PermissionError(13, "Permission denied", "/etc/x")
        self.login = wanted

    def at_login(self) -> bool:
        return self.login

    def quit(self) -> None:
        self.ended = True


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> type[ScriptedClient]:
    monkeypatch.setattr(module, "Client", ScriptedClient)
    return ScriptedClient


def remark(desk: Desk) -> str | None:
    return desk.seen.remark.text if desk.seen.remark else None


class Following:
    """A link that runs as long as the block."""

    def __init__(self, **how: Any) -> None:
        self.daemon = ScriptedClient.daemon = Daemon(**how)
        self.desk = Desk()
        self.link = Link(Path("/sock"), "en", self.desk, self.now)
        self._began = asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """It begins at five to midnight."""
        passed = timedelta(seconds=asyncio.get_running_loop().time() - self._began)
        return datetime(2026, 3, 4, 23, 55, tzinfo=UTC) + passed

    @property
    def reports(self) -> list[str]:
        return [asked[1] for asked in self.daemon.asked if isinstance(asked, tuple) and asked[0] == "report"]

    def tell(self, *events: Any) -> None:
        for event in events:
            self.daemon.events.put_nowait(event)

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self.link.run())
        await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def click(self, what: Do) -> None:
        self.link.do(what)
        await asyncio.sleep(0.01)


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_an_absent_daemon_is_looked_for_less_and_less_often_and_found() -> None:
    async with Following(there=False) as it:
        assert it.desk.seen.trouble is not None
        assert it.desk.seen.trouble.next == "ondam up"
        await asyncio.sleep(20)
        apart = [b - a for a, b in zip(it.daemon.tries, it.daemon.tries[1:], strict=False)]
        assert apart[:4] == pytest.approx([0.5, 1, 2, 4], abs=0.01)
        assert max(apart) == pytest.approx(LAST_S, abs=0.01)
        it.daemon.there = True
        await asyncio.sleep(LAST_S)
        assert it.desk.seen.status is not None
        assert it.desk.seen.targets_ms == {"stt": 144.0}
        it.daemon.events.put_nowait(None)
        await asyncio.sleep(0.1)
        assert it.desk.seen.status is None
        await asyncio.sleep(0.5)
        assert it.desk.seen.status is not None, "at once again: it was there"


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_mute_and_back_to_the_mode_that_was_whoever_muted_it() -> None:
    async with Following(mode="name") as it:
        await it.click(Do("mute"))
        await it.click(Do("mute"))
        await it.click(Do("mode", "push"))
        assert [a for a in it.daemon.asked if isinstance(a, str)] == ["muted", "unmuted", "push"]
    async with Following(mode="muted") as it:
        await it.click(Do("mute"))
        assert "unmuted" in it.daemon.asked


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_listening_is_given_up_by_a_second_click() -> None:
    async with Following() as it:
        await it.click(Do("listen"))
        assert it.desk.seen.asking
        await it.click(Do("listen"))
        assert not it.desk.seen.asking
        assert it.daemon.asked[-2:] == ["listen", "given up"]


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_two_clicks_at_once_do_not_make_it_deaf_for_ever() -> None:
    async with Following() as it:
        it.link.do(Do("listen"))
        await it.click(Do("listen"))
        assert "listen" not in it.daemon.asked, "taken back before it began"
        await it.click(Do("listen"))
        assert it.daemon.asked[-1] == "listen"


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_a_device_is_chosen_for_as_long_as_the_daemon_runs_where_no_more_is_allowed() -> None:
    async with Following(keeps=False) as it:
        await it.click(Do("microphone", "usb"))
        assert it.daemon.asked[-2:] == [({"microphone": "usb"}, True), ({"microphone": "usb"}, False)]
        assert it.desk.seen.devices == microphones("built-in", "usb", chosen="usb")
        line = next(e for e in shown(it.desk.seen, "en").entries if e.key == "microphone")
        assert line.text == "Until Ondam ends: only an administrator can keep a choice"
        await asyncio.sleep(REMARK_S)
        line = next(e for e in shown(it.desk.seen, "en").entries if e.key == "microphone")
        assert line.text == "Microphone: Usb"


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_devices_that_were_chosen_elsewhere_are_read_again() -> None:
    async with Following() as it:
        before = it.daemon.asked.count(("devices",))
        it.tell({"type": "settings", "keys": ["audio.microphone"]})
        await asyncio.sleep(0.1)
        assert it.daemon.asked.count(("devices",)) == before + 1


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_an_entry_that_cannot_be_read_leaves_the_icon_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(self: Desk) -> bool:
        raise ValueError("not UTF-8")

    monkeypatch.setattr(Desk, "at_login", breaks)
    async with Following() as it:
        assert it.desk.seen.trouble is not None
        monkeypatch.setattr(Desk, "at_login", lambda self: True)
        await asyncio.sleep(1)
        assert it.desk.seen.status is not None and it.desk.seen.at_login


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_what_a_click_could_not_do_is_said_for_a_while() -> None:
    async with Following(refuses=True) as it:
        await it.click(Do("mute"))
        assert it.desk.seen.remark is not None
        assert it.desk.seen.remark.text.startswith("User 1 may not do this")
        await asyncio.sleep(REMARK_S)
        assert remark(it.desk) is None
        it.desk.failed = NotOpened("tray_panel_failed", {"reason": "Port 80 is taken."})
        await it.click(Do("panel"))
        assert remark(it.desk) == "The Ondam window did not open: Port 80 is taken. → ondam panel"
        it.desk.failed = NotOpened("tray_no_browser", {})
        await it.click(Do("panel"))
        assert remark(it.desk) == "No browser opened the Ondam window. → ondam panel --no-open"
        it.desk.writable = False
        await it.click(Do("login"))
        assert remark(it.desk) == "/etc/x cannot be written: Permission denied."


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_the_other_clicks() -> None:
    async with Following() as it:
        await it.click(Do("microphone", "usb"))
        assert it.daemon.asked[-1] == ({"microphone": "usb"}, True)
        assert it.desk.seen.devices == microphones("built-in", "usb", chosen="usb")
        await it.click(Do("diagnostics"))
        assert json.loads(it.desk.copied) == {"versions": {"ondam": "0.1.0"}}
        await it.click(Do("login"))
        assert (it.desk.login, it.desk.seen.at_login) == (True, True)
        await it.click(Do("shutdown"))
        assert "shutdown" in it.daemon.asked
        await it.click(Do("quit"))
        assert it.desk.ended


TURN = {"type": "turn", "session": "a", "turn": turn()}


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_todays_figures_are_asked_for_after_each_turn_from_midnight_on() -> None:
    async with Following() as it:
        it.tell(TURN)
        await asyncio.sleep(0.1)
        assert it.reports == ["2026-03-04T00:00:00+00:00"] * 2
        assert it.desk.seen.last == turn()


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_figures_are_read_one_at_a_time_and_for_a_twentieth_of_the_time() -> None:
    async with Following(report_s=2.0) as it:
        for _ in range(100):
            it.tell(TURN)
            await asyncio.sleep(1)
        # Each takes two seconds and is followed by 38 without.
        assert len(it.reports) == 3
        await asyncio.sleep(100)
        assert len(it.reports) == 4, "the last turn is among them"


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_figures_wait_for_the_end_of_a_turn_that_is_under_way() -> None:
    async with Following(state="thinking") as it:
        await asyncio.sleep(60)
        assert it.reports == []
        it.tell({"type": "state", "session": "a", "state": "listening"})
        await asyncio.sleep(0.1)
        assert len(it.reports) == 1


@pytest.mark.usefixtures("daemon")
@virtual_time
async def test_after_midnight_today_is_another_day() -> None:
    async with Following() as it:
        await asyncio.sleep(290)
        it.link._see(replace(it.link.seen, today=Today("settled", 1, 1.0, 1.0, 1.0)))
        await asyncio.sleep(20)
        assert it.reports == ["2026-03-04T00:00:00+00:00", "2026-03-05T00:00:00+00:00"]
        assert it.desk.seen.today is None
