"""From a model's name to its weights, as the planner asks."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ondam.models.card import ModelCard
from ondam.models.catalog import EMBEDDED, Catalog
from ondam.models.store import Store
from ondam.planner.candidates import able
from ondam.supervisor.manifest import EngineFolder
from ondam.types import Stage

WEIGHTS = (".safetensors", ".gguf", ".onnx", ".bin")
"""How files of weights end, the form that engines take first."""

PART = re.compile(r"-[0-9]{5}-of-")
"""In the name of a GGUF that was split; whoever is given the first part loads all."""


@dataclass(frozen=True, slots=True)
class WholeModels:
    """Models that can be loaded now. Implements ``planner.candidates.ModelLookup``."""

    catalog: Catalog
    store: Store

    def find(self, model_id: str) -> tuple[Path, str | None]:
        """The weights. Raises ModelError, with what to type, when they are missing or broken."""
        card = self.catalog.card(model_id)
        return self.store.path(card), weights_sha256(self.store.known(card))

    def ready(self, model_id: str) -> bool:
        """Whether its weights are here, or come with Ondam."""
        return _ready(self.catalog, self.store, model_id)

    def card(self, model_id: str) -> ModelCard | None:
        """Its card; None for a name that nobody knows."""
        return self.catalog.cards.get(model_id)

    def weights(self, path: Path) -> Mapping[str, int]:
        """Bytes of a weights file that the user named, or of each in a folder, by name."""
        return _weights(path)


@dataclass(frozen=True, slots=True)
class WantedModels:
    """Models that are known, whether they have been fetched or not: for planning what to fetch."""

    catalog: Catalog
    store: Store

    def find(self, model_id: str) -> tuple[Path, str | None]:
        """Where the weights will be. Raises ModelError on an unknown name."""
        card = self.catalog.card(model_id)
        return self.store.folder(card.id) / card.entry, weights_sha256(self.store.known(card))

    def ready(self, model_id: str) -> bool:
        """As ``WholeModels`` says it, so that what is fetched is what is planned."""
        return _ready(self.catalog, self.store, model_id)

    def card(self, model_id: str) -> ModelCard | None:
        """Its card; None for a name that nobody knows."""
        return self.catalog.cards.get(model_id)

    def weights(self, path: Path) -> Mapping[str, int]:
        """Bytes of a weights file that the user named, or of each in a folder, by name."""
        return _weights(path)


def loaded_by(engines: Mapping[str, EngineFolder], store: Store, stage: Stage, model: str) -> list[str]:
    """Names of the engines of a stage that can load a model of the catalog; none for one that is not in
    it."""
    card = Catalog.union(engines, store.imported()).cards.get(model)
    return able(engines, stage, model, card) if card is not None and card.stage == stage else []


def _ready(catalog: Catalog, store: Store, model_id: str) -> bool:
    # What comes with Ondam counts as here: where it is broken, that is told instead of planned around.
    if model_id in EMBEDDED:
        return True
    card = catalog.cards.get(model_id)
    return card is not None and store.check(card).state == "whole"


def _weights(path: Path) -> dict[str, int]:
    """A folder may hold the same weights in several forms: those of the first one count."""
    try:
        if not path.is_dir():
            parts = path.parent.glob(PART.sub("-*-of-", glob.escape(path.name)))
            return {part.name: part.stat().st_size for part in (path, *parts) if part.is_file()}
        for suffix in WEIGHTS:
            # Some models keep a part in a folder of its own; deeper nobody looks.
            files = (*path.glob(f"*{suffix}"), *path.glob(f"*/*{suffix}"))
            if found := {file.relative_to(path).as_posix(): file.stat().st_size for file in files}:
                return found
    except (OSError, ValueError):
        pass  # not readable, or no path at all: whoever loads it says what is wrong
    return {}


def weights_sha256(card: ModelCard) -> str | None:
    """Hash of the weights themselves: by far the largest file of a model. None while no file is known."""
    return max(card.files, key=lambda file: file.size).sha256 if card.files else None
