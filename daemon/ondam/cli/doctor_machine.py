"""``ondam doctor``: the machine, its GPUs, and what the plan for it needs of both."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ondam.cli.finding import Finding
from ondam.errors import OndamError
from ondam.messages import Phrase, reader_language
from ondam.places import Places

if TYPE_CHECKING:
    from ondam.models.catalog import Catalog
    from ondam.models.store import Store
    from ondam.planner.facts import Facts
    from ondam.planner.gpus import Card, Sight
    from ondam.planner.plan import Plan
    from ondam.supervisor.manifest import EngineFolder

NEARLY_FULL_GIB = 0.5
"""Less free than this, and what is written while running (journal, logs) may soon fail."""

GIB = 2**30


def machine(facts: Facts) -> Iterator[Finding]:
    """What it computes with and runs on."""
    memory = f"{facts.ram_gib:.1f}"
    yield Finding.told(
        "machine", True, Phrase("doctor_machine_is", cpu=facts.cpu, cores=facts.cores, gib=memory)
    )
    if facts.on_battery:
        yield Finding.told("machine", True, Phrase("doctor_on_battery"))


def gpus(sight: Sight, facts: Facts) -> Iterator[Finding]:
    """Cards, and why some are missing."""
    from ondam.planner.gpus import vulkan_drivers

    for number, card in enumerate(sight.cards):
        yield Finding.told("gpu", True, _card(number, card))
        if others := [other for other in card.neighbours or () if (other.mib or 0) >= 1]:
            names = ", ".join(f"{other.name} (pid {other.pid}) {_gib(other.mib)} GiB" for other in others)
            yield Finding.told("gpu", True, Phrase("doctor_gpu_neighbours", number=number, names=names))
        elif card.neighbours is None:
            yield Finding.told("gpu", True, Phrase("doctor_gpu_neighbours_closed", number=number))
    if sight.trouble:
        yield Finding.told("gpu", sight.absent, sight.trouble)
    if facts.metal:
        yield Finding.told("gpu", True, Phrase("doctor_gpu_metal"))
    if vulkan := vulkan_drivers():
        yield Finding.told("gpu", True, Phrase("doctor_gpu_vulkan", names=", ".join(vulkan)))


def plan_fit(plan: Plan, found: Mapping[str, EngineFolder], sight: Sight) -> Iterator[Finding]:
    """What was chosen, what was asked for and cannot be, and whether the driver carries it."""
    from ondam.planner.choose import missing
    from ondam.supervisor.driver import gate

    for lacking in missing(plan):
        stage = Phrase(f"doctor_stage_{lacking}")
        yield Finding.told("plan", False, Phrase("doctor_plan_lacks", stage=stage))
    for planned in plan.launched:
        size = f"{planned.memory_gib:.1f} GiB" if planned.memory_gib else "–"
        facts = {"engine": planned.engine, "model": planned.model, "device": planned.device, "size": size}
        stage = Phrase(f"doctor_stage_{planned.stage}")
        yield Finding.told("plan", True, Phrase("doctor_plan_engine", stage=stage, **facts))
        try:
            gate(found[planned.engine], planned.variant, lambda: sight)
        except OndamError as error:
            yield Finding.of("driver", error)
    for refusal in plan.refused:
        if refusal.fixed:
            reason = refusal.reason.in_language(reader_language())
            facts = {"engine": refusal.engine, "model": refusal.model or "–", "reason": reason}
            yield Finding.told("plan", False, Phrase("doctor_plan_refused", **facts))


def idle(plan: Plan, later: Plan, catalog: Catalog) -> Iterator[Finding]:
    """What a card could run of what stays on the processor until its model is fetched. ``later``: the plan
    with models that have to be fetched."""
    here = {planned.stage for planned in plan.launched if planned.device != "cpu"}
    known = {planned.model for planned in plan.launched}
    for planned in later.launched:
        card = catalog.cards.get(planned.model)
        if planned.device == "cpu" or planned.stage in here or planned.model in known or card is None:
            continue
        stage, size = Phrase(f"doctor_stage_{planned.stage}"), f"{card.size / 1e9:.1f}"
        facts = {"engine": planned.engine, "model": planned.model, "device": planned.device, "size": size}
        yield Finding.told("gpu", True, Phrase("doctor_card_idle", stage=stage, **facts))


def memory(plan: Plan, facts: Facts, available_gib: float) -> Iterator[Finding]:
    """Whether what is free holds the engines, of those on a card their programs. Not asked while they run
    there already."""
    shared = facts.unified_memory or facts.metal
    needed = sum(planned.main_gib(shared=shared) for planned in plan.launched)
    sums = {"needed": f"{needed:.1f}", "free": f"{available_gib:.1f}"}
    if needed <= available_gib:
        yield Finding.told("memory", True, Phrase("doctor_memory_fits", **sums))
    else:
        yield Finding.told("memory", False, Phrase("doctor_memory_short", **sums))


def disk(plan: Plan, catalog: Catalog, store: Store, here: Places) -> Iterator[Finding]:
    """Whether the disk holds what has yet to be fetched."""
    from ondam.models.catalog import daemon_models

    cards = {card.id: card for card in daemon_models()}
    cards |= {p.model: catalog.cards[p.model] for p in plan.launched if p.model in catalog.cards}
    lacking = [card for card in cards.values() if store.check(card).state != "whole"]
    folder = next(path for path in (here.models, *here.models.parents) if path.exists())
    free = shutil.disk_usage(folder).free / GIB
    needed = sum(card.size for card in lacking) / GIB
    facts = {"path": folder, "free": f"{free:.1f}", "needed": f"{needed:.1f}"}
    if free < needed + NEARLY_FULL_GIB:
        code = "doctor_disk_short" if needed else "doctor_disk_full"
        yield Finding.told("disk", False, Phrase(code, **facts))
    else:
        yield Finding.told("disk", True, Phrase("doctor_disk_fine", **facts))


def _card(number: int, card: Card) -> Phrase:
    if card.total_mib is None:
        return Phrase("doctor_gpu_shared", number=number, name=card.name, driver=card.driver)
    return Phrase(
        "doctor_gpu_card",
        number=number,
        name=card.name,
        total=_gib(card.total_mib),
        free=_gib(card.free_mib),
        driver=card.driver,
    )


def _gib(mib: int | None) -> str:
    return "?" if mib is None else f"{mib / 1024:.1f}"
