"""One engine process, from birth to the last of what it started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from ondam.errors import EngineError
from ondam.supervisor.airlock import Network
from ondam.supervisor.family import Identity, end, relatives
from ondam.supervisor.leash import leashed
from ondam.supervisor.log import Log

KILLED_WITHIN_S = 1.0
"""What SIGKILL has not ended by then waits in the kernel (a device, a dead disk) and cannot be waited for."""


@dataclass(frozen=True, slots=True)
class Launch:
    """All that is needed to start an engine."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    """The whole environment, marks included."""
    marks: Mapping[str, str]
    """What tells this engine's processes from all others (see ``family``)."""
    folder: Path
    """Working directory."""
    pidfile: Path
    network: Network = "none"
    """What it is let have."""
    required: bool = False
    """It is not started where its network cannot be taken away (``leash.NOT_CLOSED``)."""


class EngineProcess:
    """A running engine. Made by ``start``; ``stop`` must be called in the end, however it ended."""

    def __init__(self, launch: Launch, process: asyncio.subprocess.Process, identity: Identity) -> None:
        self._launch = launch
        self._process = process
        self.identity = identity

    @classmethod
    async def start(cls, launch: Launch, log: Log) -> EngineProcess:
        """Start it in a session of its own, stdin closed, output to ``log``, dying with the daemon.

        Call from the thread that lives as long as the daemon (see ``leash``). Raises EngineError.
        """
        output = log.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *leashed(launch.command, launch.network, required=launch.required),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(launch.env),
                cwd=launch.folder,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(
                "engine_not_started", engine=launch.name, reason=error.strerror or error
            ) from error
        finally:
            os.close(output)
        try:
            identity = Identity.of(process.pid)
        except psutil.NoSuchProcess:
            # Gone and reaped before we could look. An identity that fits nobody, so that nobody is mistaken
            # for it.
            identity = Identity(process.pid, 0.0)
        started = cls(launch, process, identity)
        try:
            launch.pidfile.write_text(json.dumps({"pid": process.pid, "born": identity.born, **launch.marks}))
        except OSError as error:
            await started.stop(0)
            raise EngineError(
                "engine_not_started", engine=launch.name, reason=f"{launch.pidfile}: {error.strerror}"
            ) from error
        log.note(f"{launch.name} started as {process.pid}")
        return started

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.identity.pid

    @property
    def running(self) -> bool:
        """Its end has not been seen."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Its exit status; negative: the signal that ended it."""
        return await self._process.wait()

    async def stop(self, timeout_s: float) -> list[int]:
        """Ask it to end, kill it and everything it started. Returns ids of what could not be ended.

        Takes at most ``timeout_s`` and a second. Safe to call again.
        """
        if self.running:
            self._signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(timeout_s):
                    await self._process.wait()
            except TimeoutError:
                self._signal(signal.SIGKILL)
        left = await asyncio.to_thread(
            end, lambda: relatives(self.identity, self._launch.marks), KILLED_WITHIN_S
        )
        with contextlib.suppress(TimeoutError):
            # Its status, when it can be had; a process stuck in the kernel is in ``left``.
            async with asyncio.timeout(KILLED_WITHIN_S if not left else 0):
                await self._process.wait()
        self._launch.pidfile.unlink(missing_ok=True)
        return [process.pid for process in left]

    async def memory_mib(self) -> float:
        """Resident memory of the engine and what it started; 0 when it is gone."""
        return await asyncio.to_thread(_memory_mib, self.identity)

    def _signal(self, number: signal.Signals) -> None:
        if self.identity.alive:
            with contextlib.suppress(ProcessLookupError):  # ended between the look and the signal
                os.killpg(self.pid, number)


def _memory_mib(identity: Identity) -> float:
    total = 0
    try:
        leader = psutil.Process(identity.pid)
        for process in (leader, *leader.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    except (psutil.Error, OSError):  # gone; or no descriptor is left to look with
        return 0.0
    return round(total / 2**20, 1)
