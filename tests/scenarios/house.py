"""A daemon of our own for a test: its own state and sockets, the engines and models already prepared."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from ondam.control import wire
from ondam.control.client import Client
from ondam.errors import ControlError
from ondam.places import Places, places

STARTS_WITHIN_S = 120.0


def prepared_data() -> Path:
    """The data folder with the engines' environments and the models."""
    return places().data


@dataclass
class House:
    """One daemon. ``home`` becomes its ONDAM_HOME; its data folder is the prepared one."""

    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    microphone: str = "none"
    speaker: str = "none"
    environ: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    """What runs the daemon: ``unshare -n``, ``strace``."""
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        data = self.home / "data"
        if not data.exists():
            data.symlink_to(prepared_data())

    @property
    def places(self) -> Places:
        """Its folders."""
        return places({**os.environ, **self.environ, "ONDAM_HOME": str(self.home)})

    @property
    def log(self) -> Path:
        """What it printed."""
        return self.home / "up.log"

    def open(self) -> None:
        """Start it; does not wait."""
        command = [
            sys.executable,
            "-m",
            "ondam",
            "up",
            "--microphone",
            self.microphone,
            "--speaker",
            self.speaker,
        ]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *command],
                env={**os.environ, **self.environ, "ONDAM_HOME": str(self.home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def ready(self, within_s: float = STARTS_WITHIN_S) -> wire.Status:
        """Wait until no engine is being started."""
        deadline = time.monotonic() + within_s
        while True:
            assert self.process is None or self.process.poll() is None, self.log.read_text("utf-8")
            if self.places.control_socket.exists():
                try:
                    async with self.client() as client:
                        status = await client.status()
                except ControlError as error:
                    # The socket may be that of a daemon that was killed, until the new one clears it.
                    assert error.code == "daemon_not_running", error
                else:
                    if status["state"] != "starting":
                        return status
            assert time.monotonic() < deadline, self.log.read_text("utf-8")
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client of it."""
        async with Client(self.places.control_socket, "en") as client:
            yield client

    def close(self) -> int:
        """Ask it to end; returns its exit status. Five seconds are the promise."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(10)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def family(self) -> list[psutil.Process]:
        """Every process that runs with this house's sockets: engines and what they started."""
        mark = self.places.runtime.name
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("ONDAM_INSTANCE") == mark:
                    found.append(process)
            except psutil.Error:
                continue  # gone, or not ours to look at
        return found


def engine(status: wire.Status, name: str) -> wire.EngineStatus:
    """One engine of a status."""
    return next(e for e in status["engines"] if e["name"] == name)
