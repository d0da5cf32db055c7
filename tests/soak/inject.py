"""The faults of a soak, each done to a living daemon and undone again."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import socket
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from tests.fakes.engine.staffed import set_mood
from tests.scenarios.house import House
from tests.soak.course import SOUND_FAULTS, Fault
from tests.sound.rig import SoundRig

from ondam.errors import OndamError
from ondam.types import Stage

Injector = Callable[["Victim", Fault], Awaitable[None]]

DEVICE_BACK_S = 4.0
"""A device that is back is opened again within this: its watch looks, and backs off."""

CALLERS_AGAIN_S = 1.5
"""A daemon that was out of descriptors takes callers again within this: asyncio rests for a second."""

ALIVE_WITHIN_S = 10.0
"""An engine that another fault ended has a process again within this, mostly."""

GARBAGE = random.Random(3).randbytes(20_000)


class NotMadeError(Exception):
    """There was nothing that the fault could befall."""


@dataclass
class Victim:
    """The daemon that it is done to, and what the soak knows of it meanwhile."""

    house: House
    stages: Mapping[Stage, str]
    """Stage to the engine that does it."""
    disk: Path | None = None
    """A small file system of its own for the state."""
    rig: SoundRig | None = None
    hindered_until: float = 0.0
    """On the loop's clock: until then the daemon may take no caller (stopped, full, without descriptors)."""
    device_gone_until: float = 0.0
    """Likewise: until then it is no wonder that nothing is heard."""
    injected: dict[str, int] = field(default_factory=dict)
    not_made: dict[str, int] = field(default_factory=dict)
    """Faults that found nothing to befall: an engine without a process, a journal that was not there."""
    _sound: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def befall(self, fault: Fault) -> bool:
        """Do it, for as long as it lasts; whether it was done. One sound server has one fault at a time."""
        count = self.injected
        async with self._sound if fault.kind in SOUND_FAULTS else nullcontext():
            try:
                await INJECTORS[fault.kind](self, fault)
            except NotMadeError:
                count = self.not_made
        count[fault.kind] = count.get(fault.kind, 0) + 1
        return count is self.injected

    async def signal(self, stage: Stage, number: signal.Signals) -> int:
        """Send it to the process that serves ``stage``, and return its id. Raises NotMadeError."""
        loop = asyncio.get_running_loop()
        end = loop.time() + ALIVE_WITHIN_S
        while loop.time() < end:  # it may be started again, or the daemon have no descriptor left for us
            with suppress(OndamError, ProcessLookupError):
                async with self.house.client() as client:
                    engines = (await client.status())["engines"]
                pid = next((e["pid"] for e in engines if e["name"] == self.stages[stage]), None)
                if pid is not None:
                    os.kill(pid, number)
                    return pid
            await asyncio.sleep(0.1)
        raise NotMadeError

    def hindered(self, lasts_s: float) -> None:
        now = asyncio.get_running_loop().time()
        self.hindered_until = max(self.hindered_until, now + lasts_s + CALLERS_AGAIN_S)

    def device_gone(self, lasts_s: float) -> None:
        now = asyncio.get_running_loop().time()
        self.device_gone_until = max(self.device_gone_until, now + lasts_s + DEVICE_BACK_S)


def _signals(number: signal.Signals) -> Injector:
    async def inject(victim: Victim, fault: Fault) -> None:
        await victim.signal(fault.stage, number)

    return inject


async def _pause(victim: Victim, fault: Fault) -> None:
    """Slow for a moment: stopped and continued."""
    pid = await victim.signal(fault.stage, signal.SIGSTOP)
    try:
        await asyncio.sleep(min(fault.lasts_s, 0.8))
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


async def _engine_garbage(victim: Victim, fault: Fault) -> None:
    """Somebody talks nonsense to an engine's socket."""
    await asyncio.to_thread(_talk, victim.house.places.engine_socket(victim.stages[fault.stage]))


async def _control_garbage(victim: Victim, fault: Fault) -> None:
    """Somebody talks nonsense to the daemon's."""
    for _ in range(5):
        await asyncio.to_thread(_talk, victim.house.places.control_socket)


def _talk(path: Path) -> None:
    """Raises NotMadeError where nobody answers at that socket."""
    with closing(socket.socket(socket.AF_UNIX)) as line:
        line.settimeout(0.5)
        try:
            line.connect(str(path))
        except OSError as error:
            raise NotMadeError from error
        with suppress(OSError):
            line.sendall(GARBAGE)
            line.recv(4096)


async def _crowd(victim: Victim, fault: Fault) -> None:
    """More connections than are taken, that say nothing."""
    victim.hindered(fault.lasts_s)
    with ExitStack() as held:
        for _ in range(80):
            line = held.enter_context(closing(socket.socket(socket.AF_UNIX)))
            line.setblocking(False)
            with suppress(OSError):
                line.connect(str(victim.house.places.control_socket))
        await asyncio.sleep(fault.lasts_s)


async def _suspend(victim: Victim, fault: Fault) -> None:
    """The machine sleeps: daemon and engines stop together, and go on together."""
    victim.hindered(fault.lasts_s)
    processes = [p for p in victim.house.family() if p.pid != os.getpid()]
    if victim.house.process is not None:
        processes.append(psutil.Process(victim.house.process.pid))
    try:
        for process in processes:
            with suppress(psutil.Error):
                process.suspend()
        await asyncio.sleep(fault.lasts_s)
    finally:
        for process in reversed(processes):
            with suppress(psutil.Error):
                process.resume()


async def _descriptors(victim: Victim, fault: Fault) -> None:
    """The daemon may open almost no file more."""
    victim.hindered(fault.lasts_s)
    assert victim.house.process is not None
    pid = victim.house.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (psutil.Process(pid).num_fds() + 2, hard))
    try:
        await asyncio.sleep(fault.lasts_s)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


async def _journal_locked(victim: Victim, fault: Fault) -> None:
    """Somebody else writes into the journal and does not finish."""
    if not victim.house.places.journal.exists():
        raise NotMadeError
    with closing(sqlite3.connect(victim.house.places.journal, timeout=1.0)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise NotMadeError from error
        await asyncio.sleep(fault.lasts_s)
        other.rollback()


async def _disk_full(victim: Victim, fault: Fault) -> None:
    """Not a byte more fits beside the journal and the logs."""
    assert victim.disk is not None
    filler = victim.disk / "filler"
    try:
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"\0" * 65_536):
                pass
        with suppress(OSError), filler.open("ab", buffering=0) as file:
            while file.write(b"\0" * 64):
                pass
        await asyncio.sleep(fault.lasts_s)
    finally:
        filler.unlink(missing_ok=True)


def _mood(**what: object) -> Injector:
    async def inject(victim: Victim, fault: Fault) -> None:
        set_mood(victim.house, fault.stage, **what)
        try:
            await asyncio.sleep(fault.lasts_s)
        finally:
            set_mood(victim.house, fault.stage)

    return inject


def _pulled_out(device: str) -> Injector:
    async def inject(victim: Victim, fault: Fault) -> None:
        assert victim.rig is not None
        victim.device_gone(fault.lasts_s)
        await asyncio.to_thread(victim.rig.remove, device)
        try:
            await asyncio.sleep(fault.lasts_s)
        finally:
            await asyncio.to_thread(victim.rig.add, device)
            await asyncio.to_thread(_defaults, victim.rig)
            victim.device_gone(0.0)

    return inject


async def _sound_killed(victim: Victim, fault: Fault) -> None:
    assert victim.rig is not None
    victim.device_gone(fault.lasts_s + 2)
    await asyncio.to_thread(victim.rig.kill)
    try:
        await asyncio.sleep(fault.lasts_s)
    finally:
        await asyncio.to_thread(victim.rig.start)
        victim.device_gone(0.0)


async def _sound_hung(victim: Victim, fault: Fault) -> None:
    assert victim.rig is not None
    victim.device_gone(fault.lasts_s)
    victim.rig.hang()
    try:
        await asyncio.sleep(fault.lasts_s)
    finally:
        victim.rig.resume()
        victim.device_gone(0.0)


def _defaults(rig: SoundRig) -> None:
    rig.control("set-default-sink", "speaker")
    rig.control("set-default-source", "microphone")


INJECTORS: dict[str, Injector] = {
    "kill": _signals(signal.SIGKILL),
    "term": _signals(signal.SIGTERM),
    "freeze": _signals(signal.SIGSTOP),
    "pause": _pause,
    "engine_garbage": _engine_garbage,
    "control_garbage": _control_garbage,
    "crowd": _crowd,
    "suspend": _suspend,
    "descriptors": _descriptors,
    "journal_locked": _journal_locked,
    "disk_full": _disk_full,
    "deaf": _mood(deaf=True),
    "slow": _mood(slow_s=1.0),
    "lie_garbage": _mood(lie="garbage"),
    "lie_half": _mood(lie="half"),
    "lie_nothing": _mood(lie="nothing"),
    "exit_0": _mood(exit_now=0),
    "speaker_gone": _pulled_out("speaker"),
    "microphone_gone": _pulled_out("microphone"),
    "sound_killed": _sound_killed,
    "sound_hung": _sound_hung,
}
