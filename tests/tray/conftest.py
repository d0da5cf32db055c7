"""One desktop, one daemon with small engines, and the tray between them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from tests.fakes.engine.staffed import staffed
from tests.scenarios.house import House
from tests.sound.rig import SoundRig
from tests.tray.desktop import Desktop, until
from tests.tray.menubus import Bus, Icon

from ondam.deploy.tray import SYSTEM_PYTHON, install
from ondam.models.registry import Registry
from ondam.places import places
from ondam.types import Audio

APPEARS_WITHIN_S = 15.0


@dataclass
class Tray:
    """``ondam tray`` in a desktop, beside a house. ``said``: its stderr so far."""

    desktop: Desktop
    home: Path
    language: str = "en"
    process: subprocess.Popen[bytes] | None = None
    _logs: list[Path] = field(default_factory=list)

    def start(self, *options: str, environ: Mapping[str, str] | None = None) -> None:
        handle, name = tempfile.mkstemp(prefix="tray-", suffix=".log", dir=self.home)
        os.close(handle)
        log = Path(name)
        self._logs.append(log)
        given = {**self.desktop.environ(), "ONDAM_HOME": str(self.home), "ONDAM_LANGUAGE": self.language}
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ondam", "tray", *options],
                env=given if environ is None else {**environ, "ONDAM_HOME": str(self.home)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def said(self) -> str:
        return "".join(log.read_text("utf-8") for log in self._logs)

    def icon(self, bus: Bus) -> Icon:
        """Once the panel has it."""
        until(lambda: bus.icons() or self.ended(), f"the icon ({self.said})", APPEARS_WITHIN_S)
        return bus.icon()

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def wait(self, within_s: float = 15.0) -> int:
        """Its exit code."""
        assert self.process is not None
        return self.process.wait(within_s)

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            # In its first tenths of a second it has no handler yet.
            assert self.wait(5) in {0, -signal.SIGTERM}, self.said
        assert "Traceback" not in self.said, self.said
        assert "CRITICAL" not in self.said, self.said


def murmur(rig: SoundRig, seconds: int = 900) -> None:
    """What any real microphone gives: not exact silence, which is told as a fault after a while."""
    noise = np.random.default_rng(0).integers(-8, 9, seconds * 8000).astype(np.int16)
    rig.say(Audio(noise, 8000))


@pytest.fixture(scope="session")
def prepared_tray() -> Path:
    """The tray's environment, beside the engines'."""
    return install(places(), SYSTEM_PYTHON, Registry.from_pip().uv_environment()).root


@contextlib.contextmanager
def session() -> Iterator[Desktop]:
    """A display and a bus; nobody takes icons in."""
    # A socket's path is short, and pytest's folders are not.
    folder = Path(tempfile.mkdtemp(prefix="desk-"))
    desktop = Desktop(folder)
    try:
        desktop.start()
        yield desktop
    finally:
        desktop.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def bare_desktop() -> Iterator[Desktop]:
    with session() as desktop:
        yield desktop


@pytest.fixture(scope="module")
def desktop(bare_desktop: Desktop) -> Desktop:
    bare_desktop.panel()
    return bare_desktop


@pytest.fixture(scope="module")
def house(
    bare_desktop: Desktop, prepared_tray: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """A daemon in the desktop's session; every spoken turn is over its budget of 50 ms."""
    home = tmp_path_factory.mktemp("house")
    environ = {"XDG_RUNTIME_DIR": bare_desktop.environ()["XDG_RUNTIME_DIR"]}
    house = staffed(home, {"measure.budget_ms": "50"}, environ=environ)
    (home / "data" / "tray").symlink_to(prepared_tray)
    house.open()
    try:
        asyncio.run(house.ready())
        yield house
    finally:
        house.close()


@pytest.fixture
def tray(desktop: Desktop, house: House) -> Iterator[Tray]:
    """Not started yet; ended, and held to have shown no traceback."""
    if house.process is None or house.process.poll() is not None:
        house.open()  # a test that failed may have left it so
        asyncio.run(house.ready())
    made = Tray(desktop, house.home)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def bus(desktop: Desktop) -> Iterator[Bus]:
    with desktop.bus() as bus:
        yield bus
