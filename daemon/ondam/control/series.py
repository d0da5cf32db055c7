"""Figures over time, for whoever looks at them: made by a process of its own, and seldom.

A page that is open asks again after every turn, and twenty pages ask twenty times. All of them get what was
made last, as long as making it anew would keep a core busy for more than a twentieth of the time.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ondam.journal.apart import made_apart
from ondam.journal.reading import Selection

SHARE = 0.05
"""Of a core, that looking at figures may take while it goes on."""

FRESH_S = 300.0
"""An answer goes on being right while nothing is written; only "the last seven days" are others by then."""

KEPT = 8
"""Answers to different questions that are remembered."""


@dataclass(slots=True)
class _Made:
    """An answer, when it was begun and how long it took."""

    answer: dict[str, Any]
    stamp: object
    at_s: float
    took_s: float


class SeriesMaker:
    """Of one journal. ``settings``: what the configuration says of settling and of the budget."""

    def __init__(self, journal: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._journal = journal
        self._clock = clock
        self._made: dict[tuple[object, ...], _Made] = {}
        self._one = asyncio.Lock()

    async def series(self, selection: Selection, window: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """``window``: ``selection.since`` as it was asked, which goes on with time. Raises JournalError."""
        asked = (window, selection.plan, selection.most, *settings.values())
        async with self._one:
            stamp = _stamp(self._journal)
            known = self._made.get(asked)
            if known:
                age_s = self._clock() - known.at_s
                if age_s < (FRESH_S if known.stamp == stamp else known.took_s * (1 / SHARE - 1)):
                    return {**known.answer, "behind": known.stamp != stamp}
            began = self._clock()
            answer = await _apart(self._journal, selection, settings)
            took_s = self._clock() - began
            self._made.pop(asked, None)
            self._made[asked] = _Made(answer, stamp, self._clock(), took_s)
            while len(self._made) > KEPT:
                self._made.pop(next(iter(self._made)))
            return {**answer, "behind": False}


def _stamp(journal: Path) -> object:
    """Another one when something was written. What is new stands in the log beside the file at first."""
    found = []
    for path in (journal, journal.with_name(journal.name + "-wal")):
        with suppress(OSError):
            told = path.stat()
            found.append((told.st_mtime_ns, told.st_size, told.st_ino))
    return tuple(found)


async def _apart(journal: Path, selection: Selection, settings: Mapping[str, Any]) -> dict[str, Any]:
    since = None if selection.since is None else selection.since.isoformat()
    wanted = {**settings, "since": since, "plan": selection.plan, "most": selection.most}
    command = [sys.executable, "-m", "ondam.journal.series_reading", str(journal), json.dumps(wanted)]
    return await made_apart(command)
