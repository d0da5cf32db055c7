"""What the daemon and its engines take at a quiet moment."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psutil
from tests.scenarios.house import House

from ondam.control import wire

TASKS = re.compile(rb"^ondam_tasks (\d+)", re.MULTILINE)


@dataclass
class Readings:
    """Everything that must not grow, read after so many turns: name to (turns, value)."""

    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    ceilings: dict[str, float] = field(default_factory=dict)
    """Of engines that were filled up before: the level at which they settled."""
    _pids: dict[str, int] = field(default_factory=dict)

    def settle(self, status: wire.Status) -> None:
        """What each engine takes now is what it may take."""
        for engine in status["engines"]:
            if engine["pid"] is not None:
                self.ceilings[memory_of(engine["name"])] = (
                    psutil.Process(engine["pid"]).memory_info().rss / 2**20
                )

    async def take(self, house: House, status: wire.Status, turns: int) -> None:
        """Read it all once. Engines count from their second reading in one life: a new one is still small."""
        assert house.process is not None
        daemon = psutil.Process(house.process.pid)
        with daemon.oneshot():
            self._note("daemon memory, MiB", turns, daemon.memory_info().rss / 2**20)
            self._note("daemon descriptors", turns, daemon.num_fds())
            self._note("daemon threads", turns, daemon.num_threads())
        self._note("daemon tasks", turns, await tasks(house.places.control_socket))
        for engine in status["engines"]:
            pid, name = engine["pid"], engine["name"]
            if pid is None or self._pids.get(name) != pid:
                self._pids[name] = pid or 0
                continue
            with suppress(psutil.NoSuchProcess):
                self._note(memory_of(name), turns, psutil.Process(pid).memory_info().rss / 2**20)
        if status["turns"]:
            self._note("journal, bytes a turn", turns, bytes_of(house.places.journal) / status["turns"])

    def _note(self, name: str, turns: int, value: float) -> None:
        self.series.setdefault(name, []).append((turns, value))


def memory_of(engine: str) -> str:
    """What its series is called."""
    return f"{engine} memory, MiB"


async def tasks(socket: Path) -> int:
    """How many tasks the daemon's event loop has now."""
    connector = aiohttp.UnixConnector(str(socket), force_close=True)
    async with (
        aiohttp.ClientSession(base_url="http://ondam", connector=connector) as session,
        session.get(wire.METRICS.path) as answer,
    ):
        found = TASKS.search(await answer.read())
        assert found is not None, "the metrics tell no tasks"
        return int(found[1])


def bytes_of(journal: Path) -> int:
    """The journal without what SQLite keeps beside it for a moment."""
    return journal.stat().st_size if journal.exists() else 0
