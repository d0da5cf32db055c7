"""What a report of a fault should hold: no sound, no word that was spoken or answered, no secret, no name."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from ondam import __version__
from ondam.config import Config
from ondam.config.keys import shown
from ondam.control import wire

LINES = 200
"""Of each log."""

LIBRARIES = ("aiohttp", "numpy", "onnxruntime", "pydantic", "sounddevice", "wyoming")
"""Whose version has explained a fault before."""

WORDS = ("transcript", "reply", "slots")
"""Of a turn: what was said and answered."""


def diagnostics(
    status: wire.Status, config: Config, report: wire.Report, logs: Mapping[str, str], home: Path
) -> wire.Diagnostics:
    """All of it, with ``~`` for ``home``: a user's name is in its path."""
    made: wire.Diagnostics = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "status": _wordless(status),
        "config": shown(config),
        "report": report,
        "findings": [finding for group in report["groups"] for finding in group["findings"]],
        "logs": logs,
    }
    return cast(wire.Diagnostics, _without(made, str(home)))


def versions() -> dict[str, str]:
    """Of what it runs on."""
    known = {"ondam": __version__, "python": sys.version.split()[0], "system": platform.platform()}
    for name in LIBRARIES:
        try:
            known[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # never without a reason: that it is lacking may be the fault
            known[name] = "–"
    return known


def _wordless(status: wire.Status) -> wire.Status:
    """Without the words of the last turn, and the engines' addresses and command lines left as reported."""
    last = status["last_turn"]
    if last is None:
        return status
    silent = {name: None if name in WORDS else value for name, value in last.items()}
    return {**status, "last_turn": cast(wire.Turn, silent)}


def _without(value: Any, home: str) -> Any:
    """Any: JSON."""
    if isinstance(value, str):
        return value.replace(home, "~") if len(home) > 1 else value
    if isinstance(value, Mapping):
        return {name: _without(inside, home) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_without(inside, home) for inside in value]
    return value
