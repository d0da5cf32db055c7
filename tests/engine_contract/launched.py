"""An engine's real process, launched as its manifest says, watched from outside."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ondam.places import Places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.family import Identity
from ondam.supervisor.launch import launch
from ondam.supervisor.leash import leashed
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.process import Launch


@dataclass(frozen=True)
class Prepared:
    """An engine with its environment built and its model in the store."""

    folder: EngineFolder
    planned: PlannedEngine
    data: Places
    """Where the environment is."""

    def places(self, runtime: Path) -> Places:
        """Sockets and reports in ``runtime``, all else shared."""
        return Places(self.data.config, self.data.data, runtime, runtime)

    def launch(self, runtime: Path) -> Launch:
        """What the supervisor would start."""
        from ondam.supervisor.environment import installed

        return launch(
            self.planned,
            manifest=self.folder.manifest,
            home=installed(self.folder, self.data),
            places=self.places(runtime),
            daemon=Identity.of(os.getpid()),
            environ=os.environ,
            isolated=True,
        )


class Launched:
    """``with Launched(prepared, runtime) as engine``: listening inside, ended behind."""

    def __init__(self, prepared: Prepared, runtime: Path, before: Sequence[str] = ()) -> None:
        """``before``: words in front of the command (strace)."""
        self.prepared = prepared
        places = prepared.places(runtime)
        self.name = prepared.planned.engine
        self.socket = places.engine_socket(self.name)
        self.report_path = places.engine_report(self.name)
        self.log = runtime / f"{self.name}.log"
        self._launch = prepared.launch(runtime)
        self._before = before

    def __enter__(self) -> Launched:
        self.begin()
        try:
            self.wait_until_listening()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Start the process and return at once."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                # Traced, it keeps its network: strace sees an attempt only where the filter does not.
                leashed(
                    [*self._before, *self._launch.command],
                    "open" if self._before else self._launch.network,
                ),
                env=dict(self._launch.env),
                cwd=self._launch.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_listening(self) -> None:
        """Until somebody takes a connection; at most as long as the manifest allows."""
        deadline = time.monotonic() + self.prepared.folder.manifest.readiness.timeout_s
        while not self.listening():
            said = self.log.read_text("utf-8", "replace")[-2000:]
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {said}"
            assert time.monotonic() < deadline, f"not listening in time: {said}"
            time.sleep(0.01)

    def listening(self) -> bool:
        """Whether the socket takes a connection now."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            return True

    def end(self) -> None:
        """Whatever state it is in."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def address(self) -> str:
        """For the daemon's clients."""
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int:
        """Of the engine."""
        return self.process.pid

    def report(self) -> dict[str, Any]:
        """What it wrote."""
        report: dict[str, Any] = json.loads(self.report_path.read_bytes())
        return report

    def alive(self) -> bool:
        """The very process that was launched."""
        return self.process.poll() is None

    def rss_mib(self) -> float:
        """Resident memory of all its processes."""
        leader = psutil.Process(self.pid)
        return sum(each.memory_info().rss for each in (leader, *leader.children(recursive=True))) / 2**20

    def children(self) -> list[psutil.Process]:
        """What it started, and what those started."""
        found = psutil.Process(self.pid).children(recursive=True)
        return [child for child in found if child.name() != "strace"]

    def open_sockets(self) -> int:
        """How many sockets it holds, listening ones included."""
        held = 0
        for descriptor in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed while we looked
                held += str(descriptor.readlink()).startswith("socket:")
        return held

    def terminate(self) -> tuple[int, float]:
        """SIGTERM; its exit status, and the seconds it took."""
        began = time.monotonic()
        self.process.terminate()
        try:
            status = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            raise AssertionError("SIGTERM did not end it within 10 s") from None
        return status, time.monotonic() - began
