"""Clicks that reach outside: the microphone's stream, devices, the clipboard, the desktop's notifications."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.fakes.engine.staffed import staffed
from tests.scenarios.house import House
from tests.sound.rig import SoundRig
from tests.tray.conftest import Tray, murmur
from tests.tray.desktop import Desktop, until
from tests.tray.menubus import Bus, Notifications

from ondam.control import wire

pytestmark = [pytest.mark.engines, pytest.mark.sound, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoundRig]:
    rig = SoundRig(tmp_path_factory.mktemp("snd"))
    try:
        rig.start()
        murmur(rig)
        yield rig
    finally:
        rig.stop()


@pytest.fixture(scope="module")
def house(
    rig: SoundRig, desktop: Desktop, prepared_tray: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """With a microphone and a speaker."""
    home = tmp_path_factory.mktemp("house")
    environ = {name: rig.environment[name] for name in ("PULSE_SERVER", "PULSE_COOKIE")}
    environ["XDG_RUNTIME_DIR"] = desktop.environ()["XDG_RUNTIME_DIR"]
    house = staffed(home, microphone="microphone", speaker="speaker", environ=environ)
    (home / "data" / "tray").symlink_to(prepared_tray)
    house.open()
    try:
        asyncio.run(house.ready())
        yield house
    finally:
        house.close()


def status(house: House) -> wire.Status:
    async def whole() -> wire.Status:
        async with house.client() as client:
            return await client.status()

    return asyncio.run(whole())


def recording(rig: SoundRig, house: House) -> bool:
    """Whether the sound server has a stream of the daemon's that records."""
    assert house.process is not None
    return f'application.process.id = "{house.process.pid}"' in rig.control("list", "source-outputs")


def test_mute_closes_the_daemons_microphone_stream_and_opens_it_again(
    tray: Tray, house: House, bus: Bus, rig: SoundRig
) -> None:
    until(lambda: recording(rig, house), "the daemon to record")
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.picture == "listening", "the daemon to be reached")
    icon.click(icon.row("Mute (Ondam stops"))
    until(lambda: icon.picture == "muted", "the icon")
    assert not recording(rig, house)
    now = status(house)
    assert (now["mode"], now["microphone"]["state"]) == ("muted", "muted")
    assert icon.row("Mute (Ondam stops").marked
    assert not icon.row("Listen to one").enabled
    icon.click(icon.row("Mute (Ondam stops"))
    until(lambda: icon.picture == "listening", "the icon")
    until(lambda: recording(rig, house), "the daemon to record again")
    assert status(house)["mode"] == "open"


def test_a_microphone_can_be_chosen(tray: Tray, house: House, bus: Bus, rig: SoundRig) -> None:
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.row("Microphone: ").enabled, "devices")
    rows = [row for row in icon.row("Microphone: ").rows if row.visible]
    assert len(rows) >= 2
    assert rows[0].label.startswith("The system's")
    icon.click(rows[0])
    until(lambda: icon.row("Microphone: ").label.startswith("Microphone: The system's"), "the choice")


def test_listen_now_hears_one_question_and_can_be_taken_back(tray: Tray, house: House, bus: Bus) -> None:
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.picture == "listening", "the daemon to be reached")
    icon.click(icon.row("while the talk button"))
    until(lambda: icon.row("Listen to one").enabled, "a mode in which it is not heard anyway")
    icon.click(icon.row("Listen to one"))
    until(lambda: any(label.startswith("Listening now") for label in icon.labels()), "it to listen")
    icon.click(icon.row("Listening now"))
    until(lambda: any(label.startswith("Listen to one") for label in icon.labels()), "it to be over")
    icon.click(icon.row("always"))
    until(lambda: status(house)["mode"] == "open", "it to be as before")


def test_diagnostics_reach_the_clipboard_without_a_word_that_was_said(
    tray: Tray, house: House, bus: Bus, desktop: Desktop
) -> None:
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.row("Copy diagnostics").enabled, "the daemon to be reached")
    icon.click(icon.row("Copy diagnostics"))
    until(lambda: "Diagnostics copied" in icon.labels(), "the remark")
    pasted = subprocess.run(
        ["xclip", "-selection", "clipboard", "-out"],
        env=desktop.environ(),
        capture_output=True,
        check=True,
        timeout=10,
    ).stdout
    told = json.loads(pasted)
    assert told["status"]["pid"] == status(house)["pid"]


def test_a_fault_is_notified_once_and_the_notification_goes_with_it(
    tray: Tray, house: House, bus: Bus, rig: SoundRig, desktop: Desktop
) -> None:
    with Notifications(desktop.address) as shown:
        tray.start()
        icon = tray.icon(bus)
        until(lambda: icon.picture == "listening", "the daemon to be reached")
        assert shown.told == []
        rig.remove("microphone")
        until(lambda: icon.picture == "fault", "the icon")
        until(lambda: shown.told, "the notification")
        assert icon.labels()[0].startswith("⚠ ")
        assert " → " in shown.told[0], "also what to do"
        rig.add("microphone")
        rig.control("set-default-source", "microphone")
        until(lambda: icon.picture == "listening", "the microphone to be back", 20)
        until(lambda: shown.closed, "the notification to go")
        assert len(shown.told) == 1


@pytest.mark.parametrize("killed", [False, True])
def test_open_panel_shows_one_page_however_often_it_is_asked_for_and_ends_it_with_the_icon(
    tray: Tray, house: House, bus: Bus, desktop: Desktop, tmp_path: Path, killed: bool
) -> None:
    browser, shown = tmp_path / "browser", tmp_path / "shown"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {shown}\n')
    browser.chmod(0o755)
    tray.start(environ={**desktop.environ(), "ONDAM_LANGUAGE": "en", "BROWSER": f"{browser} %s"})
    icon = tray.icon(bus)
    for times in (1, 2):
        icon.click(icon.row("The Ondam window is" if times > 1 else "Open the Ondam window"))
        until(lambda: shown.exists() and len(shown.read_text().splitlines()) == times, "the browser", 30)  # noqa: B023
    first, second = shown.read_text().splitlines()
    assert first == second
    assert first.startswith("http://127.0.0.1:")
    assert tray.process is not None
    (panel,) = psutil.Process(tray.process.pid).children()
    if killed:
        tray.process.kill()
    else:
        tray.end()
    panel.wait(5)
