"""What a version brought is found by it: engines and models, below what the user has for that version."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from ondam.deploy.bundle_manifest import MARKER
from ondam.errors import EngineError, ModelError
from ondam.models import store as store_module
from ondam.models.card import ModelCard, ModelFile
from ondam.models.store import Store
from ondam.places import Places
from ondam.supervisor import environment
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines
from ondam.supervisor.stamp import Stamp

CONTENT = b"weights"
CARD = ModelCard(
    id="toy",
    stage="llm",
    languages=["en"],
    licence="MIT",
    files=[ModelFile(path="toy.gguf", size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())],
)


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a version that a bundle installed, and that this process runs from."""
    folder = tmp_path / "versions/1"
    folder.mkdir(parents=True)
    (folder / MARKER).write_text("{}")
    for module in (store_module, environment):
        monkeypatch.setattr(module, "carried", lambda: folder)
    return folder


@pytest.fixture
def engine(tmp_path: Path) -> EngineFolder:
    return find_engines(engine_roots(tmp_path / "none"))["espeak"]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(*(tmp_path / name for name in ("config", "data", "state", "runtime")))


def model_in(folder: Path, content: bytes = CONTENT) -> Path:
    path = folder / "toy/toy.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def test_a_model_that_came_with_the_version_is_found_and_noted_elsewhere(
    version: Path, places: Places
) -> None:
    brought = model_in(version / "models")
    store = Store(places.models)
    assert store.path(CARD) == brought.parent
    # The version's folder may belong to root: what was hashed is noted where this user may write.
    assert sorted(path.name for path in brought.parent.iterdir()) == ["toy.gguf"]
    hashed: list[int] = []
    store.check(CARD, on_bytes=hashed.append)
    assert hashed == []


def test_ones_own_model_comes_first_and_only_that_can_be_removed(version: Path, places: Places) -> None:
    brought = model_in(version / "models")
    own = model_in(places.models)
    store = Store(places.models)
    assert store.path(CARD) == own.parent
    store.remove("toy")
    assert store.path(CARD) == brought.parent
    with pytest.raises(ModelError) as caught:
        store.remove("toy")
    assert caught.value.code == "model_brought" and brought.exists()


def test_an_imported_model_that_was_carried_is_known(version: Path, places: Places) -> None:
    brought = model_in(version / "models")
    card = CARD.model_copy(update={"id": "toy"})
    (brought.parent / "card.json").write_text(card.model_dump_json())
    assert [each.id for each in Store(places.models).imported()] == ["toy"]


def environment_in(folder: Path, engine: EngineFolder, stamp: Stamp) -> Path:
    root = folder / "environments" / engine.name
    python = root / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    stamp.write(root)
    return root


def test_the_engine_that_came_with_the_version_is_used_and_nothing_is_built(
    version: Path, places: Places, engine: EngineFolder
) -> None:
    with pytest.raises(EngineError):
        environment.installed(engine, places)
    wanted = Stamp.wanted(engine, "cpu")
    # That the system's Python was updated since changes what a stamp would be, and not what is there.
    brought = environment_in(version, engine, replace(wanted, packages="of another Python"))
    assert environment.environment_used(engine, places) == brought
    assert environment.is_current(engine, "cpu", places)


def test_an_environment_that_was_built_for_this_version_comes_first_and_an_older_one_does_not(
    version: Path, places: Places, engine: EngineFolder
) -> None:
    wanted = Stamp.wanted(engine, "cpu")
    brought = environment_in(version, engine, wanted)
    own = environment_in(places.data, engine, wanted)
    assert environment.environment_used(engine, places) == own
    replace(wanted, source="of the version before").write(own)
    assert environment.environment_used(engine, places) == brought
    replace(wanted, variant="gone").write(own)
    assert environment.environment_used(engine, places) == brought


def test_nothing_is_carried_where_ondam_was_not_installed_from_a_bundle() -> None:
    from ondam.carried import carried

    assert carried() is None
