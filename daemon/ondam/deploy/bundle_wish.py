"""What a bundle is to hold: from a plan for the target, or from names that a person gave."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ondam.config import load
from ondam.deploy import bundle_debian, bundle_target
from ondam.deploy.bundle_create import Wish
from ondam.deploy.bundle_manifest import Target
from ondam.deploy.bundle_target import MACHINES
from ondam.errors import BundleError
from ondam.models.card import ModelCard
from ondam.models.catalog import Catalog, daemon_models
from ondam.models.lookup import WantedModels
from ondam.models.store import Store
from ondam.places import Places
from ondam.planner import measured
from ondam.planner.choose import choose
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan
from ondam.planner.probe import probe
from ondam.supervisor.environment import variant_for
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines


def wish_for(
    here: Places,
    *,
    engines: Sequence[str],
    models: Sequence[str],
    facts: str | None,
    config: Path | None,
    machine: str | None,
    python: str | None,
    glibc: str | None,
    carry: Path | None,
    debian: bool,
    wheel: Path | None,
) -> Wish:
    """The target is this machine where nothing else is said. Raises ConfigError, BundleError, ModelError."""
    found = find_engines(engine_roots(here.user_engines))
    store = Store(here.models)
    catalog = Catalog.union(found, store.imported())
    given = None if facts is None else _facts(facts)
    known = measured.load(here) if given is None else {}
    wanted = WantedModels(catalog, store)
    settings = load(config or here.config_file)
    plan = choose(given or probe(), settings, found, wanted, ahead=given is not None, measured=known)
    planned = {each.engine: each.variant for each in plan.launched}
    chosen = _engines(engines, planned, found)
    arch = platform.machine()
    own_machine = MACHINES.get(arch, arch)
    target = Target(
        system=sys.platform if given is None else given.system,
        machine=machine or (own_machine if given is None else given.machine),
        python=python or f"{sys.version_info.major}.{sys.version_info.minor}",
        release=bundle_target.release(),
    )
    if target.system != "linux":
        raise BundleError("bundle_system_unknown", system=target.system)
    if debian and target.machine != own_machine:
        raise BundleError("bundle_debian_elsewhere", here=own_machine, there=target.machine)
    return Wish(
        target=target,
        glibc=glibc or bundle_target.glibc() or "2.28",
        engines=chosen,
        models=_models(models, plan, catalog),
        debian=bundle_debian.NEEDED + bundle_debian.BASE if debian else (),
        python=carry,
        config=config,
        wheel=wheel,
        lacking=[
            f"{name}:{variant}"
            for name, variant in sorted(planned.items())
            if (found[name], variant) not in chosen
        ],
    )


def _engines(
    named: Sequence[str], planned: Mapping[str, str], found: Mapping[str, EngineFolder]
) -> list[tuple[EngineFolder, str]]:
    if not named:
        return [(found[name], variant) for name, variant in planned.items()]
    chosen = []
    for name in dict.fromkeys(named):
        engine, _, variant = name.partition(":")
        if engine not in found:
            raise BundleError("bundle_engine_unnamed", name=engine, known=", ".join(sorted(found)))
        chosen.append((found[engine], variant or planned.get(engine) or variant_for(found[engine])))
    return chosen


def _models(named: Sequence[str], plan: Plan, catalog: Catalog) -> list[ModelCard]:
    """With those that run in the daemon itself."""
    cards = {card.id: card for card in daemon_models()}
    if named:
        cards |= {name: catalog.card(name) for name in named}
    else:
        for planned in plan.launched:
            if planned.model in catalog.cards:
                cards[planned.model] = catalog.cards[planned.model]
            elif planned.model_path is not None:
                raise BundleError("bundle_model_is_file", path=shlex.quote(str(planned.model_path)))
    return list(cards.values())


def _facts(file: str) -> Facts:
    try:
        told = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise BundleError("bundle_facts_unreadable", path=file, reason=error) from error
    return Facts.from_json(told, file)
