"""A desktop session of our own: Xvfb, a session bus, and Xfce's panel, which takes icons in."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.tray.menubus import Bus

PROGRAMS = {
    "Xvfb": "xvfb",
    "dbus-daemon": "dbus",
    "xfce4-panel": "xfce4-panel",
    "xfconf-query": "xfconf",
    "xdotool": "xdotool",
}

CHANNEL = "xfce4/xfconf/xfce-perchannel-xml"

PANEL = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array">
    <value type="int" value="1"/>
    <property name="dark-mode" type="bool" value="{dark}"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="length" type="uint" value="100"/>
      <property name="position-locked" type="bool" value="true"/>
      <property name="size" type="uint" value="28"/>
      <property name="icon-size" type="uint" value="16"/>
      <property name="plugin-ids" type="array">
        <value type="int" value="1"/><value type="int" value="2"/><value type="int" value="3"/>
      </property>
    </property>
  </property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="separator">
      <property name="expand" type="bool" value="true"/>
      <property name="style" type="uint" value="0"/>
    </property>
    <property name="plugin-2" type="string" value="systray">
      <property name="square-icons" type="bool" value="true"/>
    </property>
    <property name="plugin-3" type="string" value="separator"/>
  </property>
</channel>
"""


@dataclass
class Desktop:
    """``start`` brings up display and bus; ``panel`` the one who takes icons in. ``stop`` leaves nothing."""

    folder: Path
    size: str = "1280x900"
    dark: bool = True
    number: int = 0
    address: str = ""
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self) -> None:
        """Returns when both answer."""
        missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
        if missing:
            raise RuntimeError(f"Type: sudo apt-get install {' '.join(missing)}")
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "run").mkdir(mode=0o700, exist_ok=True)
        channel = self.folder / "config" / CHANNEL
        channel.mkdir(parents=True, exist_ok=True)
        (channel / "xfce4-panel.xml").write_text(PANEL.format(dark=str(self.dark).lower()))
        ready, told = os.pipe()
        self._spawn(
            "Xvfb",
            "-displayfd",
            str(told),
            "-screen",
            "0",
            f"{self.size}x24",
            "-nolisten",
            "tcp",
            keep=(told,),
        )
        os.close(told)
        with os.fdopen(ready) as answer:
            self.number = int(answer.readline())
        self.start_bus()

    def start_bus(self) -> None:
        """The session bus; a new one where there was one."""
        ready, told = os.pipe()
        self._spawn("dbus-daemon", "--session", "--nofork", f"--print-address={told}", keep=(told,))
        os.close(told)
        with os.fdopen(ready) as answer:
            self.address = answer.readline().strip()

    def stop(self) -> None:
        """End everything, the newest first; what the bus started ends with it."""
        for name in reversed(list(self._running)):
            self.end(name)

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """One of the programs; what it started too."""
        process = self._running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def panel(self) -> None:
        """Start Xfce's panel; returns when it takes icons in."""
        self._spawn("xfce4-panel", "--disable-wm-check")
        with self.bus() as bus:
            until(bus.host_there, "the panel to take icons in")

    def windows(self) -> set[str]:
        """Those on the screen: the panel's, a menu's."""
        return set(self._hand("search", "--onlyvisible", "--name", ".*"))

    def click_icon(self) -> None:
        """The only icon, at the right end of the panel."""
        self._hand("mousemove", str(int(self.size.split("x")[0]) - 22), "14")
        self._hand("click", "1")

    def move_into_menu(self, right: int = -40, down: int = 60) -> None:
        """As a hand does; on the icon the panel would show its tooltip."""
        self._hand("mousemove_relative", "--", str(right), str(down))

    def press(self, key: str) -> None:
        """On the keyboard."""
        self._hand("key", key)

    def _hand(self, *command: str) -> list[str]:
        done = subprocess.run(
            ["xdotool", *command], env=self.environ(), capture_output=True, text=True, check=False, timeout=10
        )
        return done.stdout.split()

    def environ(self) -> dict[str, str]:
        """Of a program in this session."""
        kept = ("PATH", "LANG", "HOME", "TERM")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "DISPLAY": f":{self.number}",
            "DBUS_SESSION_BUS_ADDRESS": self.address,
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "XDG_CURRENT_DESKTOP": "XFCE",
            "NO_AT_BRIDGE": "1",
            "GDK_GL": "disable",
        }

    @contextlib.contextmanager
    def bus(self) -> Iterator[Bus]:
        """A connection of the test's own to the session bus."""
        with contextlib.closing(Bus(self.address)) as bus:
            yield bus

    def _spawn(self, *command: str, keep: tuple[int, ...] = ()) -> None:
        with (self.folder / f"{command[0]}.log").open("ab") as log:
            self._running[command[0]] = subprocess.Popen(
                command,
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=keep,
            )


def until(true: Callable[[], object], what: str, within_s: float = 15.0) -> None:
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, f"waited {within_s:g} s for {what}"
        time.sleep(0.02)


def without(environ: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in names}
