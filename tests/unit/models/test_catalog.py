from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pydantic
import pytest
from tests.unit.models.registry_server import TinyWheel, file_card, model

from ondam.errors import ModelError
from ondam.models.card import ModelCard, ModelFile
from ondam.models.catalog import EMBEDDED, Catalog, daemon_models
from ondam.places import Places
from ondam.planner.choose import SHIPPED
from ondam.supervisor.manifest import EngineFolder, Manifest

WHEEL = TinyWheel("tiny", {"weights": b"w"})
CARD = model("tiny-model", file_card("weights", (WHEEL, "weights")))


def engine(name: str, *cards: ModelCard) -> EngineFolder:
    values = {
        "name": name,
        "stage": "llm",
        "protocol": "openai",
        "licence": "MIT",
        "summary_en": "",
        "summary_ko": "",
        "launch": {"command": ["serve"]},
        "environment": {"locks": {}},
        "capabilities": {"languages": []},
        "needs": {"memory_mib": 1},
        "limits": {"busy_after_cancel_ms": 1},
        "models": [card.model_dump() for card in cards],
    }
    return EngineFolder(Path("/engines") / name, Manifest.model_validate(values))


def test_two_engines_may_declare_the_same_model() -> None:
    catalog = Catalog.union({"one": engine("one", CARD), "two": engine("two", CARD)})
    assert catalog.card("tiny-model") == CARD


def test_two_engines_that_disagree_on_a_model_are_both_named() -> None:
    other = CARD.model_copy(update={"licence": "GPL-3.0-or-later"})
    with pytest.raises(ModelError, match=r"/engines/one/engine\.toml and in /engines/two/engine\.toml"):
        Catalog.union({"one": engine("one", CARD), "two": engine("two", other)})


def test_an_imported_model_stands_beside_the_declared_ones() -> None:
    assert set(Catalog.union({}, [CARD]).cards) == {"silero-vad", "smart-turn", "tiny-model"}


def test_an_unknown_model_brings_the_nearest_name() -> None:
    with pytest.raises(ModelError, match='did you mean "silero-vad"'):
        Catalog.union({}).card("silero")
    with pytest.raises(ModelError, match='No model is called "xyzzy"') as caught:
        Catalog.union({}).card("xyzzy")
    assert caught.value.message().next == "ondam models list"


def test_models_inside_the_daemon_are_an_onnx_file_and_its_licence() -> None:
    assert {card.id: card.stage for card in daemon_models()} == {"silero-vad": "vad", "smart-turn": "turn"}
    for card in daemon_models():
        assert [file.path for file in card.files] == [card.entry, "LICENSE"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/weights", "a/../../b", ""])
def test_a_file_stays_inside_its_models_folder(path: str) -> None:
    with pytest.raises(pydantic.ValidationError, match="inside the model's folder"):
        ModelFile(path=path, size=1, sha256="0" * 64)


def test_looking_for_weights_loads_nothing_that_could_reach_the_network() -> None:
    script = (
        "import sys, ondam.models.catalog, ondam.models.store, ondam.cli.models\n"
        "print(sorted({'httpx', 'httpx2', 'unearth', 'requests', 'urllib3'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


def test_what_ships_is_declared_and_what_is_chosen_by_default_ships(tmp_path: Path) -> None:
    catalog = Catalog.of(Places(tmp_path, tmp_path, tmp_path, tmp_path))
    assert {card.id for card in catalog.embedded()} == set(EMBEDDED)
    assert {model for _, model in SHIPPED.values()} <= set(EMBEDDED)
    assert all(card.fetchable for card in catalog.embedded())
