"""No display, no bus, no panel, no menus, no packages: said with an exit code, or waited for."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.tray.conftest import Tray, session
from tests.tray.desktop import Desktop, without

from ondam.messages import typed

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

MISSING = 11

# The tray is started as whoever runs the tests.
INSTALLS = typed("sudo apt-get install python3-gi gir1.2-gtk-3.0 gir1.2-ayatanaappindicator3-0.1")


@pytest.fixture
def home(tmp_path: Path, prepared_tray: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tray").symlink_to(prepared_tray)
    return tmp_path


def test_each_thing_that_is_missing_is_named_in_the_readers_language(
    bare_desktop: Desktop, home: Path
) -> None:
    whole = {**bare_desktop.environ(), "ONDAM_LANGUAGE": "en"}
    cases = {
        "There is no display": without(whole, "DISPLAY"),
        "디스플레이가 없습니다": {**without(whole, "DISPLAY"), "ONDAM_LANGUAGE": "ko"},
        "The display :9999 does not answer": {**whole, "DISPLAY": ":9999"},
        "There is no D-Bus session bus": without(whole, "DBUS_SESSION_BUS_ADDRESS"),
        "The D-Bus session bus does not answer": {**whole, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"},
        "What would: xfce4-panel": whole,
        "What would: gnome-shell-extension-appindicator": {**whole, "XDG_CURRENT_DESKTOP": "GNOME"},
    }
    trays = {said: Tray(bare_desktop, home) for said in cases}
    for said, tray in trays.items():
        tray.start(environ=cases[said])
    for said, tray in trays.items():
        assert tray.wait() == MISSING, (said, tray.said)
        assert said in tray.said
        _, after = tray.said.splitlines()
        assert after.startswith("→ ")


def test_a_back_end_without_menus_is_refused(bare_desktop: Desktop, home: Path) -> None:
    bare_desktop.panel()
    tray = Tray(bare_desktop, home)
    try:
        tray.start(environ={**bare_desktop.environ(), "PYSTRAY_BACKEND": "xorg"})
        assert tray.wait() == MISSING
    finally:
        bare_desktop.end("xfce4-panel")
    assert tray.said.splitlines() == [
        'pystray\'s back end "xorg", which PYSTRAY_BACKEND asks for, shows an icon without a menu.',
        "→ unset PYSTRAY_BACKEND",
    ]


def test_with_wait_it_comes_up_with_the_panel_and_says_nothing_before(
    bare_desktop: Desktop, home: Path
) -> None:
    tray = Tray(bare_desktop, home)
    tray.start("--wait")
    try:
        with bare_desktop.bus() as bus:
            time.sleep(1)  # a desktop that comes up slowly
            assert not tray.ended()
            bare_desktop.panel()
            assert tray.icon(bus).row("Hide this icon")
        assert tray.said == ""
    finally:
        tray.end()
        bare_desktop.end("xfce4-panel")


@pytest.mark.parametrize("lost", ["Xvfb", "dbus-daemon"])
def test_a_display_or_a_bus_that_goes_ends_it_with_code_1_and_without_a_traceback(
    home: Path, lost: str
) -> None:
    with session() as desktop:
        desktop.panel()
        tray = Tray(desktop, home)
        tray.start()
        try:
            with desktop.bus() as bus:
                assert tray.icon(bus).picture == "offline"
            desktop.end(lost)
            assert tray.wait() == 1
        finally:
            tray.end()


def test_install_names_the_packages_that_a_python_lacks(home: Path) -> None:
    # Ondam's own Python sees nothing of the system's.
    done = subprocess.run(
        [sys.executable, "-m", "ondam", "tray", "--install", "--python", sys.executable],
        env={"ONDAM_HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == MISSING
    assert done.stderr.splitlines()[-1] == (f"→ {INSTALLS}")


def test_without_its_environment_it_says_what_to_type(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ondam", "tray"],
        env={"ONDAM_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == MISSING
    assert done.stderr == (
        "The tray's environment has not been made yet, or was made for another Python of the system's.\n"
        "→ ondam tray --install\n"
    )
