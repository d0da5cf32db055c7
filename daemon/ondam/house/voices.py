"""Which voices can be chosen: engines that are built, with weights that are here. Reads the disk."""

from __future__ import annotations

from collections.abc import Mapping

from ondam.errors import EngineError
from ondam.models.catalog import Catalog
from ondam.models.lookup import WholeModels
from ondam.models.store import Store
from ondam.places import Places
from ondam.planner.candidates import able, of_stage, speaks
from ondam.supervisor.environment import installed
from ondam.supervisor.manifest import EngineFolder
from ondam.types import Language


def voice_engines(engines: Mapping[str, EngineFolder], places: Places, language: Language) -> list[str]:
    """Names of the voice engines that could speak ``language`` here, in the order in which they are found."""
    return [
        name
        for name, folder in engines.items()
        if folder.manifest.stage == "tts"
        and speaks(folder.manifest.capabilities.languages, language)
        and _built(folder, places)
        and (not folder.manifest.models or voice_models(engines, name, places, language))
    ]


def voice_models(
    engines: Mapping[str, EngineFolder], engine: str, places: Places, language: Language
) -> list[str]:
    """Models of ``engine`` that are here and speak ``language``."""
    store = Store(places.models)
    models = WholeModels(Catalog.union(engines, store.imported()), store)
    return [
        card.id
        for card in of_stage(engines, "tts").values()
        if speaks(card.languages, language)
        and engine in able(engines, "tts", card.id, card)
        and models.ready(card.id)
    ]


def _built(folder: EngineFolder, places: Places) -> bool:
    try:
        installed(folder, places)
    except EngineError:
        return False
    return True
