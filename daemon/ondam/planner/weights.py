"""Where the planner's models are: catalog and store as its ``ModelLookup``."""

from __future__ import annotations

from pathlib import Path

from ondam.models.card import ModelCard
from ondam.models.catalog import Catalog
from ondam.models.store import Store


class StoredModels:
    """Implements ``choose.ModelLookup``."""

    def __init__(self, catalog: Catalog, store: Store) -> None:
        self._catalog = catalog
        self._store = store

    def find(self, model_id: str) -> tuple[Path, str | None]:
        """What an engine is given, and the SHA-256 of its weights file.

        Raises ModelError: unknown (with the nearest name), missing or broken (with what to type).
        """
        card = self._catalog.card(model_id)
        return self._store.path(card), weights_sha256(card)


def weights_sha256(card: ModelCard) -> str:
    """Of the entry where that is a file, else of the largest file: weights dwarf what lies beside."""
    named = [file for file in card.files if file.path == card.entry]
    return (named or [max(card.files, key=lambda file: file.size)])[0].sha256
