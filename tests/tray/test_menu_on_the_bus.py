"""The tray in a real panel, beside a real daemon: what the panel reads over D-Bus, and what a click does."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import psutil
import pytest
from jeepney import HeaderFields
from tests.faults.matrix import question
from tests.scenarios.house import House
from tests.tray.conftest import Tray
from tests.tray.desktop import Desktop, until
from tests.tray.menubus import Bus, Icon

from ondam.control import wire
from ondam.messages import text

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]


def spoken(house: House) -> wire.Turn:
    async def whole() -> wire.Turn:
        async with house.client() as client:
            return (await client.wav_turn(question(), "en"))[0]

    return asyncio.run(whole())


def status(house: House) -> wire.Status:
    async def whole() -> wire.Status:
        async with house.client() as client:
            return await client.status()

    return asyncio.run(whole())


def took(ms: float) -> str:
    return f"{ms:.0f}" if ms >= 0.5 else "<1"


def stages(turn: wire.Turn, icon: Icon) -> bool:
    """Whether the menu has each of its seven, with its milliseconds."""
    labels = [" ".join(label.replace("\N{FIGURE SPACE}", " ").split()) for label in icon.labels()]
    return all(
        any(label.startswith(f"{took(ms)} ms {text(f'tray_stage_{name}', 'en')}") for label in labels)
        for name, ms in turn["stages_ms"].items()
        if isinstance(ms, float)
    )


def test_the_menu_holds_the_last_turns_stages_and_marks_what_is_over_its_budget(
    tray: Tray, house: House, bus: Bus
) -> None:
    turn = spoken(house)
    assert len([ms for ms in turn["stages_ms"].values() if ms is not None]) == 7
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.picture == "muted", "the icon of a daemon without a microphone")
    until(lambda: stages(turn, icon), f"the stages of {turn['stages_ms']} in {icon.labels()}")
    until(lambda: any("◀" in label for label in icon.labels()), "a mark")
    until(lambda: icon.row("Today").label != "Today: no answers yet", "today's figures")
    assert turn["first_audio_ms"] is not None
    assert icon.row("Last answer: ").label.startswith(
        f"Last answer: {turn['first_audio_ms'] / 1000:.1f} s after your last word, most delayed: "
    )
    models = icon.row("On the CPU: ").label
    assert models == "On the CPU: hearing /dev/null · answers /dev/null · voice fake_tts"
    assert [row.label for row in icon.row("Listening mode: ").rows] == [
        "always",
        "when called by its name",
        "while the talk button is held",
        "never (muted)",
    ]


def test_labels_change_in_place_while_the_menu_is_open(tray: Tray, house: House, bus: Bus) -> None:
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.row("Mute (Ondam stops").enabled, "the daemon to be reached")
    spoken(house)
    until(lambda: any("◀" in label for label in icon.labels()), "a first turn")
    icon.open()
    before = icon.rows()
    with bus.listening(icon.owner) as heard:
        turn = spoken(house)
        until(lambda: stages(turn, icon), "the new turn's stages")
        icon.click(icon.row("never (muted)"))
        until(lambda: icon.row("Mute (Ondam stops").marked, "the mark of what was chosen")
    icon.click(icon.row("always"))
    after = icon.rows()
    assert [row.number for row in after.walk()] == [row.number for row in before.walk()]
    assert [row.label for row in after.walk()] != [row.label for row in before.walk()]
    members = {message.header.fields[HeaderFields.member] for message in heard}
    assert "ItemsPropertiesUpdated" in members
    assert "LayoutUpdated" not in members
    assert tray.process is not None
    assert psutil.Process(tray.process.pid).memory_info().rss <= 80 * 2**20


def test_a_menu_that_a_hand_has_opened_stays_open(
    tray: Tray, house: House, bus: Bus, desktop: Desktop
) -> None:
    spoken(house)
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.row("Mute (Ondam stops").enabled, "the daemon to be reached")
    before = desktop.windows()
    desktop.click_icon()
    until(lambda: desktop.windows() - before, "the menu to open")
    desktop.move_into_menu()
    menu = desktop.windows() - before
    turn = spoken(house)
    until(lambda: stages(turn, icon), "the new turn's stages")
    assert menu <= desktop.windows()
    desktop.press("Escape")
    until(lambda: not menu & desktop.windows(), "the menu to close, so that it was open")


def test_the_daemon_killed_under_an_open_menu_is_told_in_it(
    tray: Tray, house: House, bus: Bus, desktop: Desktop
) -> None:
    assert house.process is not None
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.row("Mute (Ondam stops").enabled, "the daemon to be reached")
    before = desktop.windows()
    desktop.click_icon()
    until(lambda: desktop.windows() - before, "the menu to open")
    desktop.move_into_menu()
    menu = desktop.windows() - before
    house.process.kill()
    house.process.wait()
    until(lambda: icon.row("Not running: it cannot hear you"), "what is wrong, in the open menu")
    assert menu <= desktop.windows()
    desktop.press("Escape")
    assert tray.process is not None and tray.process.poll() is None
    house.open()
    asyncio.run(house.ready())
    until(lambda: icon.labels()[0] == "Ondam: no faults", "the daemon to be seen again")


def test_the_hosts_restart_is_survived(tray: Tray, bus: Bus, desktop: Desktop) -> None:
    tray.start()
    tray.icon(bus)
    assert tray.process is not None
    pid = tray.process.pid
    for number in (signal.SIGTERM, signal.SIGKILL):
        desktop.end("xfce4-panel", number)
        until(lambda: not bus.icons(), "the icon to be gone with its panel")
        desktop.panel()
        icon = tray.icon(bus)
        assert icon.row("Hide this icon")
    assert tray.process.pid == pid
    assert tray.process.poll() is None


def test_the_daemon_may_be_killed_and_come_back(tray: Tray, house: House, bus: Bus) -> None:
    assert house.process is not None
    house.process.kill()
    house.process.wait()
    tray.start()
    icon = tray.icon(bus)
    assert icon.picture == "offline"
    until(lambda: icon.row("Not running: it cannot hear you"), "what is wrong")
    assert icon.labels()[0].startswith("⚠ Ondam is not running")
    assert icon.row("    → ondam up")
    house.open()
    asyncio.run(house.ready())
    until(lambda: icon.picture == "muted", "the daemon to be seen")
    assert icon.labels()[0] == "Ondam: no faults"
    house.process.kill()
    house.process.wait()
    until(lambda: icon.picture == "offline", "its end to be seen")
    house.open()
    asyncio.run(house.ready())
    until(lambda: icon.picture == "muted", "it to be seen again")


def test_the_trays_death_changes_nothing(tray: Tray, house: House, bus: Bus) -> None:
    before = status(house)
    tray.start()
    tray.icon(bus)
    assert tray.process is not None
    tray.process.kill()
    assert tray.wait() == -signal.SIGKILL
    until(lambda: not bus.icons(), "the icon to be gone")
    tray.start()
    icon = tray.icon(bus)
    icon.click(icon.row("Hide this icon"))
    assert tray.wait() == 0
    now = status(house)
    assert (now["pid"], now["mode"], now["faults"]) == (before["pid"], before["mode"], before["faults"])


def test_there_is_one_icon_for_a_daemon(tray: Tray, house: House, bus: Bus, desktop: Desktop) -> None:
    tray.start()
    tray.icon(bus)
    second = Tray(desktop, house.home, "ko")
    second.start()
    try:
        assert second.wait() == 0
    finally:
        second.end()
    assert second.said == "아이콘이 이미 떠 있습니다.\n"
    assert len(bus.icons()) == 1


def test_start_at_login_writes_one_file_and_takes_it_back(tray: Tray, bus: Bus, desktop: Desktop) -> None:
    entry = Path(desktop.environ()["XDG_CONFIG_HOME"], "autostart", "ondam-tray.desktop")
    entry.unlink(missing_ok=True)
    tray.start()
    icon = tray.icon(bus)
    assert not icon.row("Show this icon at login").marked
    icon.click(icon.row("Show this icon at login"))
    until(lambda: icon.row("Show this icon at login").marked, "the mark")
    (command,) = [line for line in entry.read_text("utf-8").splitlines() if line.startswith("Exec=")]
    assert command.endswith(" tray --wait")
    assert f"ONDAM_HOME={tray.home}" in command
    icon.click(icon.row("Show this icon at login"))
    until(lambda: not icon.row("Show this icon at login").marked, "no mark")
    assert not entry.exists()


def test_it_speaks_the_readers_language(tray: Tray, house: House, bus: Bus) -> None:
    spoken(house)
    tray.language = "ko"
    tray.start()
    icon = tray.icon(bus)
    until(lambda: "마이크가 없어 들을 수 없습니다" in icon.labels(), "the state")
    until(lambda: any("말씀 알아듣기" in label for label in icon.labels()), "the stages")
    assert {
        "대답 멈추기",
        "마이크 음소거(온담이 듣지 않음)",
        "이 아이콘 숨기기(온담은 계속 실행됩니다)",
        "온담 끝내기(더는 듣지 않습니다)",
    } <= set(icon.labels())


def test_stop_ondam_ends_the_daemon_and_not_the_icon(tray: Tray, house: House, bus: Bus) -> None:
    tray.start()
    icon = tray.icon(bus)
    until(lambda: icon.row("Quit Ondam").enabled, "the daemon to be reached")
    icon.click(icon.row("Quit Ondam"))
    assert house.process is not None
    assert house.process.wait(10) == 0
    until(lambda: icon.picture == "offline", "its end to be seen")
    house.open()
    asyncio.run(house.ready())
