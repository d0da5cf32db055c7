"""Every engine that is found goes through the same suite, in its real environment, with its real model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.engine_contract.exercise import STANDIN, Answering, Exercise, Hearing, Speaking, exercise_for
from tests.engine_contract.garbage import GARBAGE
from tests.engine_contract.launched import Launched, Prepared
from tests.fakes.standins import standin

from ondam.models.catalog import Catalog
from ondam.models.fetch import ensure
from ondam.models.progress import Silent
from ondam.models.registry import Registry
from ondam.models.store import Store, sha256_of
from ondam.places import Places, places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.environment import build, environment_folder, variant_for
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines
from ondam.supervisor.stamp import Stamp
from ondam.types import Stage

STAGE_OF: dict[str, Stage] = {"hearing": "stt", "answering": "llm", "speaking": "tts"}
"""Fixtures for what only engines of one stage do."""

ON_REQUEST = {"vllm": "cpu"}
"""Engines whose environment is gigabytes, and its variant here: in the suite where somebody has built it."""

QUICK: dict[str, dict[str, Any]] = {"vllm": {"cuda_graphs": False}}
"""Options for a processor: there vLLM compiles for minutes, and has no graphs in the end."""

WEIGHTS = (".onnx", ".safetensors")
"""How files of weights end in a model that stands in for a real one."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``engine_folder`` is every engine; with a fixture of one stage, every engine of that stage."""
    if "engine_folder" not in metafunc.fixturenames:
        return
    stages = {STAGE_OF[name] for name in metafunc.fixturenames if name in STAGE_OF}
    if "wyoming" in metafunc.fixturenames:
        stages = {"stt", "tts"}
    engines = [
        engine
        for engine in find_engines(engine_roots(places().user_engines)).values()
        if not stages or engine.manifest.stage in stages
    ]
    cases = [pytest.param(engine, id=engine.name, marks=_marks(engine)) for engine in engines]
    names = ["engine_folder"]
    if "garbage" in metafunc.fixturenames:
        names.append("garbage")
        cases = [
            pytest.param(engine, garbage, id=f"{engine.name}-{name}", marks=_marks(engine))
            for engine in engines
            for name, garbage in GARBAGE[engine.manifest.protocol].items()
        ]
    metafunc.parametrize(names, cases, scope="session")


def _marks(engine: EngineFolder) -> list[pytest.MarkDecorator]:
    return [pytest.mark.compile] if engine.manifest.environment.needs_compiler else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "engine_folder" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.engines)


class _Quiet:
    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        pass


@pytest.fixture(scope="session")
def prepare(tmp_path_factory: pytest.TempPathFactory) -> Callable[[EngineFolder], Prepared]:
    """Builds what is missing, but compiles nothing."""
    data = places()
    standins = tmp_path_factory.mktemp("standins")
    ready: dict[str, Prepared] = {}

    def prepared(engine: EngineFolder) -> Prepared:
        if engine.name not in ready:
            ready[engine.name] = _prepared(engine, data, standins)
        return ready[engine.name]

    return prepared


def _prepared(engine: EngineFolder, data: Places, standins: Path) -> Prepared:
    variant = variant_for(engine)
    if engine.name in ON_REQUEST:
        variant = ON_REQUEST[engine.name]
        if not environment_folder(engine.name, data).exists():
            pytest.skip(f"not built: ondam engines build {engine.name} --variant {variant}")
    if engine.manifest.environment.needs_compiler:
        stamp = Stamp.read(environment_folder(engine.name, data))
        if stamp is None or stamp.packages != Stamp.wanted(engine, variant).packages:
            pytest.skip(f"not compiled: ondam engines build {engine.name}")
    registry = Registry.from_pip()
    log = data.logs / f"build-{engine.name}.log"
    build(engine, variant, data, registry=registry, progress=_Quiet(), log=log)
    if (made := standin(engine.name, standins, data)) is not None:
        largest = max(
            (file for file in made.rglob("*.*") if file.suffix in WEIGHTS), key=lambda f: f.stat().st_size
        )
        return Prepared(engine, _planned(engine, STANDIN, made, sha256_of(largest)), data)
    cards = engine.manifest.models
    if not cards and engine.manifest.stage == "llm":
        # It answers with whatever GGUF there is.
        cards = [card for card in Catalog.of(data).cards.values() if card.stage == "llm" and card.fetchable]
    store = Store(data.models)
    ensure(cards[:1], store, registry, Silent())
    if not cards:
        return Prepared(engine, _planned(engine, "", None, None), data)
    return Prepared(
        engine, _planned(engine, cards[0].id, store.path(cards[0]), _weights_sha256(cards[0])), data
    )


def _planned(engine: EngineFolder, model: str, path: Path | None, sha256: str | None) -> PlannedEngine:
    languages = engine.manifest.capabilities.languages
    return PlannedEngine(
        engine=engine.name,
        stage=engine.manifest.stage,
        model=model,
        model_path=path,
        model_sha256=sha256,
        device="cpu",
        threads=min(2, os.cpu_count() or 1),
        language="en" if "en" in languages else "ko",
        options={**engine.manifest.options, **QUICK.get(engine.name, {})},
    )


def _weights_sha256(card: Any) -> str:
    """Of the largest file: configurations and vocabularies are small."""
    sha256: str = max(card.files, key=lambda file: file.size).sha256
    return sha256


@pytest.fixture
def prepared(engine_folder: EngineFolder, prepare: Callable[[EngineFolder], Prepared]) -> Prepared:
    """The engine, not running."""
    return prepare(engine_folder)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Prepared], Launched]]:
    """Every engine at most once, for the tests that leave it alive."""
    with ExitStack() as stack:
        launched: dict[str, Launched] = {}

        def run(prepared: Prepared) -> Launched:
            name = prepared.planned.engine
            if name not in launched:
                runtime = tmp_path_factory.mktemp(f"run-{name[:8]}")
                launched[name] = stack.enter_context(Launched(prepared, runtime))
            return launched[name]

        yield run


@pytest.fixture
def engine(prepared: Prepared, running: Callable[[Prepared], Launched]) -> Iterator[Launched]:
    """The engine, serving. It must be the same process afterwards."""
    launched = running(prepared)
    assert launched.alive(), "an earlier test ended it"
    yield launched
    assert launched.alive(), launched.log.read_text("utf-8", "replace")[-2000:]


@pytest.fixture
def exercise(engine: Launched) -> Exercise:
    """Questions to the serving engine."""
    return exercise_for(engine)


@pytest.fixture
def hearing(exercise: Exercise) -> Hearing:
    assert isinstance(exercise, Hearing)
    return exercise


@pytest.fixture
def answering(exercise: Exercise) -> Answering:
    assert isinstance(exercise, Answering)
    return exercise


@pytest.fixture
def speaking(exercise: Exercise) -> Speaking:
    assert isinstance(exercise, Speaking)
    return exercise


@pytest.fixture
def wyoming(engine: Launched) -> Path:
    """The socket of a speech engine."""
    return engine.socket
