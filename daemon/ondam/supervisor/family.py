"""Which processes are ours: marked in their environment at birth, or in the session made for an engine.

Nothing is ever ended on the strength of a process id alone, for ids are used again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import psutil

INSTANCE = "ONDAM_INSTANCE"
"""Which instance (its folders) an engine belongs to."""
DAEMON = "ONDAM_DAEMON"
"""Which daemon process started it, as an ``Identity`` in text."""
ENGINE = "ONDAM_ENGINE"
"""Which engine it is."""

SAME_BIRTH_S = 0.5
"""Two readings of one process's birth differ by a rounding; two births of one id hardly fall so close
together."""

LOOK_AGAIN_S = 0.02


@dataclass(frozen=True, slots=True)
class Identity:
    """A process that cannot be mistaken for a later one with the same id."""

    pid: int
    born: float
    """Seconds since the machine was started; elsewhere than on Linux since the epoch."""

    @classmethod
    def of(cls, pid: int) -> Identity:
        """The process with this id now. Raises psutil.NoSuchProcess."""
        return cls(pid, _born(pid))

    @classmethod
    def parse(cls, text: str) -> Identity | None:
        """The reverse of ``str``; None when ``text`` is something else."""
        try:
            pid, born = text.split(":")
            return cls(int(pid), float(born))
        except ValueError:
            return None  # a variable that somebody else set: no identity, which is what the caller asks

    def __str__(self) -> str:
        return f"{self.pid}:{self.born:.2f}"

    @property
    def alive(self) -> bool:
        """It still runs (a zombie does not)."""
        try:
            return (
                abs(_born(self.pid) - self.born) < SAME_BIRTH_S
                and psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True  # somebody's living process has the id: taken for alive, so nothing of it is ended


def marked(marks: Mapping[str, str]) -> Iterator[tuple[psutil.Process, Mapping[str, str]]]:
    """This user's living processes whose environment at birth held all ``marks``, without ourselves."""
    for process in _own_processes():
        try:
            environ = process.environ()
        except (psutil.Error, OSError):
            continue  # ended meanwhile, a zombie, or closed to us: in no case one of our engines
        if all(environ.get(name) == value for name, value in marks.items()):
            yield process, environ


def orphans(instance: str) -> list[psutil.Process]:
    """Engines of ``instance``, and what they started, whose daemon is gone."""
    found = []
    for process, environ in marked({INSTANCE: instance}):
        daemon = Identity.parse(environ.get(DAEMON, ""))
        if daemon is None or not daemon.alive:
            found.append(process)
    return found


def relatives(leader: Identity, marks: Mapping[str, str]) -> list[psutil.Process]:
    """What is left of the engine started as ``leader``: marked, or in its session with marks wiped off."""
    found = {process.pid: process for process, _ in marked(marks)}
    # While any process is in the session, the kernel gives its number to nobody else; a stranger with the
    # leader's number proves that the session has ended.
    if not _stranger_has(leader):
        for process in in_session_of(leader):
            found.setdefault(process.pid, process)
    return list(found.values())


def in_session_of(leader: Identity) -> list[psutil.Process]:
    """This user's living processes in the session with the leader's number, it included."""
    found = []
    for process in _own_processes():
        try:
            if os.getsid(process.pid) == leader.pid:
                found.append(process)
        except (ProcessLookupError, PermissionError):
            continue  # ended meanwhile, or in a session that is not ours to see
    return found


def end(find: Callable[[], list[psutil.Process]], within_s: float) -> list[psutil.Process]:
    """Kill what ``find`` finds until it finds nothing, at most ``within_s``. Returns what is left.

    Looks again because a process may have started another one between the look and the kill. Blocks.
    """
    until = time.monotonic() + within_s
    while True:
        found = find()
        if not found or time.monotonic() > until:
            return found
        for process in found:
            try:
                process.kill()  # psutil looks at the birth again before it signals
            except psutil.NoSuchProcess:
                continue  # gone by itself, as wanted
            except psutil.AccessDenied:
                continue  # reported as left
        time.sleep(LOOK_AGAIN_S)


def _born(pid: int) -> float:
    """On Linux since the machine was started: psutil adds when that was, as the clock has it now, and whoever
    sets the clock would make every process another. Raises psutil.Error.
    """
    born = psutil.Process(pid).create_time()
    return born - psutil.boot_time() if sys.platform == "linux" else born


def _stranger_has(leader: Identity) -> bool:
    try:
        return abs(_born(leader.pid) - leader.born) >= SAME_BIRTH_S
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _own_processes() -> Iterator[psutil.Process]:
    me, user = os.getpid(), os.getuid()
    for process in psutil.process_iter():
        try:
            if process.pid != me and process.uids().real == user and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except psutil.Error:
            continue  # ended meanwhile
