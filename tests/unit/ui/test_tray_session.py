"""What is said where the desktop lacks something; start at login; light or dark."""

from __future__ import annotations

import shlex
from pathlib import Path

from ondam_ui.tray import autostart, session
from ondam_ui.tray.ink import ink_for
from ondam_ui.tray.session import Missing

ROOT = Path(__file__).parents[3]
ENTRY = (ROOT / "packaging/desktop/ondam-tray.desktop").read_text("utf-8")


def test_missing_pieces_are_named_by_their_debian_packages() -> None:
    assert session.packages({}) == ["python3-gi", "gir1.2-gtk-3.0", "gir1.2-ayatanaappindicator3-0.1"]
    assert session.packages({"gi": True, "Gtk": True}) == ["gir1.2-ayatanaappindicator3-0.1"]
    assert session.packages({"gi": True, "Gtk": True, "AyatanaAppIndicator3": True}) == []


def test_a_python_without_gi_is_told_what_to_install() -> None:
    # Ondam's own environment has none.
    assert session.missing({"DISPLAY": ":0"}) == Missing(
        "tray_packages_missing", {"packages": "python3-gi gir1.2-gtk-3.0 gir1.2-ayatanaappindicator3-0.1"}
    )


def test_the_panel_to_install_is_the_desktops_own() -> None:
    assert session.host_package("ubuntu:GNOME") == "gnome-shell-extension-appindicator"
    assert session.host_package("XFCE") == "xfce4-panel"
    assert "lxqt-panel" in session.host_package("sway")


def test_start_at_login_is_one_file_and_can_be_taken_back(tmp_path: Path) -> None:
    path = autostart.place({"XDG_CONFIG_HOME": str(tmp_path)})
    assert path == tmp_path / "autostart" / "ondam-tray.desktop"
    assert not autostart.is_on(path)
    autostart.switch_on(path, ENTRY, ["/home/a b/ondam", "tray", "--wait"])
    assert autostart.is_on(path)
    assert 'Exec="/home/a b/ondam" tray --wait' in path.read_text("utf-8").splitlines()
    path.write_text(path.read_text("utf-8") + "Hidden=true\n")
    assert not autostart.is_on(path), "as a desktop's own settings switch it off"
    path.write_bytes(b"Exec=\xff\n")
    assert not autostart.is_on(path)
    autostart.switch_off(path)
    autostart.switch_off(path)
    assert not path.exists()


def test_at_login_it_is_started_as_it_was() -> None:
    assert autostart.login_command(["ondam"], "auto", {}) == ("ondam", "tray", "--wait")
    chosen = autostart.login_command(["ondam"], "dark", {"ONDAM_HOME": "/h"})
    assert chosen == ("env", "ONDAM_HOME=/h", "ondam", "tray", "--wait", "--icons", "dark")


def test_the_place_is_the_home_folders_where_nothing_else_is_said() -> None:
    assert autostart.place({"HOME": "/home/a"}) == Path("/home/a/.config/autostart/ondam-tray.desktop")


def test_arguments_are_quoted_as_desktop_entries_want_it() -> None:
    assert autostart.quoted(["env", "A=50%", "x"]) == "env A=50%% x"
    assert autostart.quoted(["a b", ""]) == '"a b" ""'
    # \ is an escape of the value, too, so that each one of the quoting is two.
    assert autostart.quoted(['a"$b']) == r'"a\\"\\$b"'
    assert shlex.split(autostart.quoted(["/a b/c", "-d"])) == ["/a b/c", "-d"]


def test_light_icons_are_for_dark_panels() -> None:
    def ink(desktop: str, theme: str = "Adwaita", prefers: bool = False, xfce: bool | None = None) -> str:
        return ink_for({"XDG_CURRENT_DESKTOP": desktop}, theme=theme, prefers_dark=prefers, xfce_dark=xfce)

    assert ink("ubuntu:GNOME") == "light", "GNOME's bar is dark under light windows too"
    assert ink("KDE") == "dark"
    assert ink("KDE", theme="Breeze-Dark") == "light"
    assert ink("KDE", prefers=True) == "light"
    assert ink("XFCE", xfce=True) == "light"
    assert ink("XFCE", xfce=False) == "dark"
