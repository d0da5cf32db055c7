"""One daemon per set of folders. Who holds the lock owns the sockets, and cleans up after the one before."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock
import psutil

from ondam.errors import ControlError
from ondam.places import Places, private_folder
from ondam.supervisor.family import Identity, end, in_session_of, orphans

ENDED_WITHIN_S = 2.0

LEFTOVERS = ("*.sock", "*.report.json", "*.pid")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Swept:
    """What was found of a daemon that did not end by itself."""

    ended: int
    """Processes."""


@contextlib.contextmanager
def claim(places: Places) -> Iterator[Swept]:
    """Be the daemon of these folders, for as long as the context lasts.

    Makes the folders; ends engines that a dead daemon of this instance left, and no others; removes its
    sockets, which are proven dead by the lock. Raises ControlError ``daemon_runs`` when there is another
    daemon, ConfigError ``folder_not_ours`` when somebody else made the sockets' folder.
    """
    places.state.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(places.lock)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise ControlError("daemon_runs", path=places.lock) from error
    try:
        private_folder(places.runtime)
        yield _sweep(places)
        # An engine that was killed while it loaded could not take its files away.
        _clear(places)
    finally:
        lock.release()


def _sweep(places: Places) -> Swept:
    leaders = [leader for path in places.runtime.glob("*.pid") if (leader := _leader(path)) is not None]

    def left_behind() -> list[psutil.Process]:
        found = {process.pid: process for process in orphans(places.runtime.name)}
        # Where a system hides the environment of a process, the file says who it was. Only a living leader
        # vouches for its session: long afterwards the number may be another's.
        for leader in leaders:
            if leader.alive:
                found |= {process.pid: process for process in in_session_of(leader)}
        return list(found.values())

    found = left_behind()
    left = end(left_behind, ENDED_WITHIN_S) if found else []
    if left:
        _log.error("processes %s of an earlier daemon cannot be ended", [process.pid for process in left])
    _clear(places)
    return Swept(len(found) - len(left))


def _clear(places: Places) -> None:
    for pattern in LEFTOVERS:
        for path in places.runtime.glob(pattern):
            path.unlink(missing_ok=True)


def _leader(pidfile: Path) -> Identity | None:
    try:
        values = json.loads(pidfile.read_text("utf-8"))
        return Identity(int(values["pid"]), float(values["born"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # half-written when the daemon was killed; the marks say the same
