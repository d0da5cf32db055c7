"""What the service manager sees: ExecStart run for real, with a manager of the test's own to listen to it."""

from __future__ import annotations

import asyncio
import grp
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fakes.engine.staffed import set_mood, staffed
from tests.scenarios.house import House

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.engines

WATCHDOG_S = 1.0

UNWRITABLE = "/sys"
"""A home in which even root can make no folder."""


class Manager:
    """systemd's end of the socket."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))
        self._socket.setblocking(False)
        self.heard: list[dict[str, str]] = []

    @property
    def environ(self) -> dict[str, str]:
        return {"NOTIFY_SOCKET": str(self.path), "WATCHDOG_USEC": str(round(WATCHDOG_S * 1e6))}

    def listen(self) -> None:
        while True:
            try:
                message = self._socket.recv(65536).decode()
            except BlockingIOError:
                return
            self.heard.append(dict(line.split("=", 1) for line in message.splitlines()))

    async def until(self, true: Callable[[dict[str, str]], object], within_s: float = 30.0) -> dict[str, str]:
        """The next message that fits; all before it are forgotten."""
        end = time.monotonic() + within_s
        while True:
            self.listen()
            while self.heard:
                if true(message := self.heard.pop(0)):
                    return message
            assert time.monotonic() < end, "it was never told"
            await asyncio.sleep(0.02)

    async def messages(self, for_s: float) -> list[dict[str, str]]:
        """What is told from now on."""
        self.listen()
        self.heard.clear()
        await asyncio.sleep(for_s)
        self.listen()
        return self.heard

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager() -> Iterator[Manager]:
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        made = Manager(Path(folder))
        yield made
        made.close()


@pytest.fixture
def opened() -> Iterator[list[House]]:
    houses: list[House] = []
    yield houses
    for house in houses:
        house.close()


async def test_s12_a_slow_load_is_told_and_given_time_and_only_then_it_is_ready(
    tmp_path: Path, manager: Manager, opened: list[House]
) -> None:
    gate = tmp_path / "loaded"
    # And in a folder with a space and Hangul, in no locale, by a user without a home.
    group = grp.getgrgid(os.getgid()).gr_name
    bare = {"LC_ALL": "C", "HOME": "/nonexistent", "ONDAM_SYSTEM": "1", "ONDAM_GROUP": group}
    house = staffed(tmp_path / "온담 집", environ={**manager.environ, **bare})
    set_mood(house, "llm", load_until=str(gate))
    opened.append(house)
    house.open()
    first = await manager.until(lambda told: "fake_llm" in told.get("STATUS", ""))
    assert first["STATUS"].startswith("loading ")
    waiting = await manager.messages(0.8)
    assert waiting and all(int(told["EXTEND_TIMEOUT_USEC"]) >= 10_000_000 for told in waiting)
    assert not any("READY" in told for told in waiting)
    gate.touch()
    ready = await manager.until(lambda told: "READY" in told)
    assert (ready["READY"], ready["STATUS"], ready["WATCHDOG"]) == ("1", "ready", "1")
    assert "EXTEND_TIMEOUT_USEC" not in ready
    socket_file = house.places.control_socket
    assert (socket_file.stat().st_mode & 0o777, socket_file.parent.stat().st_mode & 0o777) == (0o660, 0o750)
    assert socket_file.group() == group, "the system's daemon opens it to its group"
    fed = await manager.messages(WATCHDOG_S)
    assert len(fed) >= 2 and all(told["WATCHDOG"] == "1" for told in fed), "at least twice in its time"
    assert house.process is not None
    for process in house.family():
        assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & process.environ().keys() or (
            process.pid == house.process.pid  # what it was started with is what the kernel shows of it
        )
    began = time.monotonic()
    house.process.send_signal(signal.SIGTERM)
    assert (await manager.until(lambda told: "STOPPING" in told))["STATUS"] == "ending"
    assert await asyncio.to_thread(house.process.wait, 10) == 0
    assert time.monotonic() - began < 5.0


async def test_a_stuck_event_loop_and_stuck_sound_each_end_the_feeding_of_the_watchdog(
    tmp_path: Path, manager: Manager, opened: list[House]
) -> None:
    silence = tmp_path / "silence.wav"
    with wave.open(str(silence), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(bytes(3200))
    house = staffed(
        tmp_path / "home",
        environ={**manager.environ, "PYTHONPATH": str(ROOT), "HOME": UNWRITABLE},
        microphone=f"wav:{silence}",
        prefix=(sys.executable, "-m", "tests.faults.stuck_daemon"),
    )
    opened.append(house)
    house.open()
    await manager.until(lambda told: "READY" in told)
    assert house.process is not None
    assert any("WATCHDOG" in told for told in await manager.messages(0.6))

    os.kill(house.process.pid, signal.SIGUSR2)
    status = await manager.until(lambda told: "listened" in told.get("STATUS", ""), 5.0)
    assert "WATCHDOG" not in status
    stuck = await manager.messages(0.6)
    assert stuck and not any("WATCHDOG" in told for told in stuck), "the loop runs, and says so"
    os.kill(house.process.pid, signal.SIGUSR2)
    assert (await manager.until(lambda told: "WATCHDOG" in told, 5.0))["STATUS"] == "ready"

    os.kill(house.process.pid, signal.SIGUSR1)
    await asyncio.sleep(0.3)
    assert await manager.messages(1.0) == []
    assert "sound no longer moves (conversation)" in house.log.read_text("utf-8")


def test_a_home_that_cannot_be_written_in_is_told_with_what_to_set(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": UNWRITABLE, "LC_ALL": "C"}
    command = [sys.executable, "-m", "ondam", "up", "--microphone", "none", "--speaker", "none"]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith(f"{UNWRITABLE}/.local/state/ondam") and "ONDAM_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
