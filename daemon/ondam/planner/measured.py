"""Keeps what engines were found to hold (``planner.correction``) in the state folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from ondam.places import Places
from ondam.planner.correction import FILE, learned, read
from ondam.planner.plan import Plan
from ondam.supervisor.status import Change, EngineStatus

_log = logging.getLogger(__name__)


def load(places: Places) -> dict[str, float]:
    """What was measured on this machine; where nothing was, or the file is broken, estimates stand."""
    try:
        return read(json.loads((places.state / FILE).read_text("utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}


def save(places: Places, measured: Mapping[str, float]) -> None:
    """At once or not at all. Raises OSError."""
    path: Path = places.state / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{FILE}.new")
    beside.write_text(json.dumps(dict(sorted(measured.items())), indent=1), "utf-8")
    beside.replace(path)


class Learning:
    """Writes down what each engine holds once it is ready. Subscribes to the fleet."""

    def __init__(self, places: Places, plan: Callable[[], Plan]) -> None:
        """``plan`` gives what the engines were started for."""
        self._places = places
        self._plan = plan

    def __call__(self, change: Change) -> None:
        """See ``supervisor.status.Change``. What cannot be kept is logged; the estimate stands then."""
        status = change.status
        planned = self._plan().planned(status.name)
        if status.state != "ready" or planned is None or status.device != planned.device:
            return
        held = held_gib(status)
        known = load(self._places)
        if held is None or known == (now := learned(known, planned, held)):
            return
        try:
            save(self._places, now)
        except OSError as error:
            _log.warning("what %s holds is not kept: %s", status.name, error)


def held_gib(status: EngineStatus) -> float | None:
    """GiB of a ready engine where its model is: on its card, as it reports, else resident. None: not told."""
    mib = status.rss_mib
    if status.device is not None and status.device.startswith("cuda"):
        told = (status.report or {}).get("gpu_memory_mib")
        mib = float(told) if isinstance(told, int | float) and not isinstance(told, bool) else None
    return mib / 1024 if mib else None
