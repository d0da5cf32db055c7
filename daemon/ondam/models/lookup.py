"""From a model's name to its weights, as the planner asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ondam.models.card import ModelCard
from ondam.models.catalog import EMBEDDED, Catalog
from ondam.models.store import Store
from ondam.planner.candidates import able
from ondam.supervisor.manifest import EngineFolder
from ondam.types import Stage


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

    def file_size(self, path: Path) -> int | None:
        """Bytes of a weights file that the user named; None where there is none, or a folder."""
        return _file_size(path)


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

    def file_size(self, path: Path) -> int | None:
        """Bytes of a weights file that the user named; None where there is none, or a folder."""
        return _file_size(path)


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


def _file_size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):
        return None


def weights_sha256(card: ModelCard) -> str | None:
    """Hash of the weights themselves: by far the largest file of a model. None while no file is known."""
    return max(card.files, key=lambda file: file.size).sha256 if card.files else None
