"""Makes this machine able to carry out its plan: engines' environments and models, side by side.

Only commands import this module: it reaches for the package registry, the daemon never does.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ondam.config import Config
from ondam.errors import OndamError
from ondam.messages import reader_language, text
from ondam.models.catalog import Catalog, daemon_models
from ondam.models.fetch import ensure
from ondam.models.lookup import WantedModels
from ondam.models.progress import Reporter
from ondam.models.registry import Registry
from ondam.models.store import Store
from ondam.places import Places
from ondam.planner import measured
from ondam.planner.choose import choose
from ondam.planner.gpus import look
from ondam.planner.probe import probe
from ondam.supervisor import toolchain
from ondam.supervisor.driver import gate
from ondam.supervisor.environment import build, is_current
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines


@dataclass(frozen=True, slots=True)
class _Steps:
    """Tells one line when an environment begins to be made; its steps are in its log."""

    name: str
    reporter: Reporter

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """See ``environment.Progress``."""


def prepare(config: Config, places: Places, reporter: Reporter) -> None:
    """Build and fetch what the plan needs and is not there yet. Raises the first OndamError."""
    engines = find_engines(engine_roots(places.user_engines))
    store = Store(places.models)
    catalog = Catalog.union(engines, store.imported())
    sight = look()
    plan = choose(probe(sight), config, engines, WantedModels(catalog, store), measured=measured.load(places))
    for planned in plan.launched:
        gate(engines[planned.engine], planned.variant, lambda: sight)
        toolchain.gate(engines[planned.engine], planned.variant, places)
    cards = [*daemon_models()]
    cards += [catalog.card(p.model) for p in plan.launched if p.model in catalog.cards]
    registry = Registry.from_pip()
    with ThreadPoolExecutor(len(plan.launched) + 1, "prepare") as pool:
        work = [pool.submit(ensure, cards, store, registry, reporter)]
        work += [
            pool.submit(_build, engines[p.engine], p.variant, places, registry, reporter)
            for p in plan.launched
        ]
    failures = [error for error in (job.exception() for job in work) if error is not None]
    # An explained failure says more to a person than an unexplained one that it may have caused.
    for error in sorted(failures, key=lambda e: not isinstance(e, OndamError)):
        raise error


def _build(
    engine: EngineFolder, variant: str, places: Places, registry: Registry, reporter: Reporter
) -> None:
    if is_current(engine, variant, places):
        return
    language = reader_language()
    reporter.say(text("prepare_building", language, name=engine.name))
    log = places.logs / f"build-{engine.name}.log"
    steps = _Steps(engine.name, reporter)
    build(engine, variant, places, registry=registry, progress=steps, log=log)
    reporter.say(text("prepare_built", language, name=engine.name))
