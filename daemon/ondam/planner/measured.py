"""Keeps what engines were found to hold (``planner.correction``) in the state folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ondam.places import Places
from ondam.planner.correction import FILE, read


def load(places: Places) -> dict[str, float]:
    """What was measured on this machine; where nothing was, or the file is broken, estimates stand."""
    try:
        return read(json.loads((places.state / FILE).read_text("utf-8")))
    except (OSError, ValueError):
        return {}


def save(places: Places, measured: Mapping[str, float]) -> None:
    """At once or not at all. Raises OSError."""
    path: Path = places.state / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{FILE}.new")
    beside.write_text(json.dumps(dict(sorted(measured.items())), indent=1), "utf-8")
    beside.replace(path)
