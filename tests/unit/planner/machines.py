"""Machines to plan for, with the engines and models that come with Ondam."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ondam_engines
from ondam import config as configuration
from ondam.config import Config
from ondam.errors import ModelError
from ondam.models.card import ModelCard
from ondam.planner.choose import consider
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan
from ondam.supervisor.manifest import find_engines

ENGINES = find_engines(map(Path, ondam_engines.__path__))
"""Those that come with Ondam."""


class Shelf:
    """Models by name; ``here``: those on the disk, None for all."""

    def __init__(self, *cards: ModelCard, here: set[str] | None = None) -> None:
        self.cards = {card.id: card for folder in ENGINES.values() for card in folder.manifest.models}
        self.cards |= {card.id: card for card in cards}
        self.here = here
        self.files: dict[str, dict[str, int]] = {}
        """Weights that the user names by where they lie, with the size of each file."""

    def find(self, model_id: str) -> tuple[Path, str | None]:
        if model_id not in self.cards:
            raise ModelError("model_unknown", id=model_id)
        return Path("/models") / model_id, None

    def ready(self, model_id: str) -> bool:
        return self.here is None or model_id in self.here

    def card(self, model_id: str) -> ModelCard | None:
        return self.cards.get(model_id)

    def weights(self, path: Path) -> dict[str, int]:
        return self.files.get(str(path), {})


def gpu(vram: float, driver: str = "580.65.06", capability: str = "8.9", **more: Any) -> dict[str, Any]:
    """A card with nobody else on it."""
    return {
        "name": f"{vram:g} GB card",
        "vram_gib": vram,
        "free_gib": vram,
        "driver": driver,
        "compute_capability": capability,
        **more,
    }


def machine(*gpus: dict[str, Any], ram: float = 64, **more: Any) -> Facts:
    """A Linux machine with 16 cores."""
    given = {
        "os": "linux",
        "arch": "x86_64",
        "cpu": {"cores": 16, "flags": ["avx2"]},
        "ram_gib": ram,
        "gpus": list(gpus),
        **more,
    }
    return Facts.from_json(given, "test")


def config(language: str = "ko", **tables: Any) -> Config:
    return configuration.load(None, {"language": language, **tables})


def plan(
    facts: Facts, language: str = "ko", *, shelf: Shelf | None = None, ahead: bool = True, **tables: Any
) -> Plan:
    """As ``ondam plan`` makes it."""
    return consider(facts, config(language, **tables), ENGINES, shelf or Shelf(), ahead=ahead)
