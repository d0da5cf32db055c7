"""Small models with random weights, made by code: real packages load them and run. They speak noise."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

MADE = ("supertonic",)
"""Engines whose model no package registry carries; each has a module here with ``build(folder)``."""


def standin(engine: str, folder: Path) -> Path | None:
    """What ``engine`` is given instead of its model, made below ``folder``; None where its model is real."""
    if engine not in MADE:
        return None
    built: Path = import_module(f"{__name__}.{engine}").build(folder / engine)
    return built
