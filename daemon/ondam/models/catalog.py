"""Which models exist: the union of what the daemon, the engines' manifests and the imports declare."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources

from ondam.config.schema import Table, check
from ondam.errors import ModelError
from ondam.models.card import ModelCard
from ondam.models.store import Store
from ondam.places import Places
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines

EMBEDDED = ("whisper-base", "smollm2-135m-instruct", "joe", "silero-vad", "smart-turn")
"""What the shipped configuration needs; ``ondam models add`` without a name."""


class _Declared(Table):
    models: list[ModelCard]


def daemon_models() -> list[ModelCard]:
    """The models that run inside the daemon, from ``daemon_models.toml``."""
    text = resources.files("ondam.models").joinpath("daemon_models.toml").read_text("utf-8")
    return check(_Declared, tomllib.loads(text), "daemon_models.toml").models


@dataclass(frozen=True)
class Catalog:
    """Models by id."""

    cards: Mapping[str, ModelCard]

    @classmethod
    def union(cls, engines: Mapping[str, EngineFolder], imported: Iterable[ModelCard] = ()) -> Catalog:
        """Everything declared. Two may declare the same model; ModelError where they disagree on it."""
        cards: dict[str, ModelCard] = {}
        origins: dict[str, str] = {}
        for origin, card in _declared(engines, imported):
            known = cards.setdefault(card.id, card)
            if known != card:
                raise ModelError("model_declared_twice", id=card.id, one=origins[card.id], other=origin)
            origins.setdefault(card.id, origin)
        return cls(cards)

    @classmethod
    def of(cls, places: Places, on_broken: Callable[[ModelError], None] | None = None) -> Catalog:
        """Everything this instance knows: its engines' models and its imports.

        Raises ConfigError on a broken manifest; an imported card that cannot be read goes to ``on_broken``.
        """
        engines = find_engines(engine_roots(places.user_engines))
        return cls.union(engines, Store(places.models).imported(on_broken))

    def card(self, model_id: str) -> ModelCard:
        """The model called ``model_id``. Raises ModelError with the nearest name."""
        if model_id in self.cards:
            return self.cards[model_id]
        if near := difflib.get_close_matches(model_id, self.cards, n=1, cutoff=0.5):
            raise ModelError("model_unknown_near", id=model_id, near=near[0])
        raise ModelError("model_unknown", id=model_id)

    def embedded(self) -> list[ModelCard]:
        """What the shipped configuration needs."""
        return [self.card(model_id) for model_id in EMBEDDED]


def _declared(
    engines: Mapping[str, EngineFolder], imported: Iterable[ModelCard]
) -> Iterator[tuple[str, ModelCard]]:
    for card in daemon_models():
        yield "daemon_models.toml", card
    for engine in engines.values():
        for card in engine.manifest.models:
            yield str(engine.path / "engine.toml"), card
    for card in imported:
        yield "ondam models import", card
