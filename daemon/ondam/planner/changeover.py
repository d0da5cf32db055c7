"""From one plan to another while the first one runs: what goes, what comes, do both fit at once? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ondam.config import PlanConfig
from ondam.messages import Phrase
from ondam.planner.arithmetic import Need, sum_of, up
from ondam.planner.facts import Facts
from ondam.planner.oncards import budget_of
from ondam.planner.plan import Plan, PlannedEngine
from ondam.planner.rooms import Room, cards, main_memory
from ondam.types import Stage

RUN_BY = (
    "engine",
    "stage",
    "model",
    "model_path",
    "model_sha256",
    "device",
    "threads",
    "language",
    "options",
    "policy",
    "spare",
    "variant",
    "quantization",
)
"""What a process is started with, or compared with afterwards; reasons and sums are not."""


@dataclass(frozen=True, slots=True)
class Changeover:
    """What has to happen."""

    plan: Plan
    """The one that is wanted, as it will run: what stays, stays as it was started."""
    stays: tuple[PlannedEngine, ...]
    goes: tuple[PlannedEngine, ...]
    comes: tuple[PlannedEngine, ...]
    lacking: tuple[Phrase, ...] = ()
    """Why those that come have no room beside those that stay, for each memory: it cannot be done at all."""
    short: tuple[Phrase, ...] = ()
    """Why those that come have no room beside those that go, for each memory; empty where they have."""

    @property
    def beside(self) -> bool:
        """Whether the new ones can be started before the old ones are stopped."""
        return not self.short

    @property
    def stages(self) -> frozenset[Stage]:
        """Whose engines change."""
        return frozenset(engine.stage for engine in (*self.goes, *self.comes))


def changeover(now: Plan, then: Plan, facts: Facts, settings: PlanConfig, available_gib: float) -> Changeover:
    """How to get from ``now``, which runs, to ``then``.

    ``facts``: of this moment, our own engines' memory counted as free. ``available_gib``: of the main memory,
    what nobody uses now; our engines use theirs.
    """
    left = list(now.launched)
    stays: dict[int, PlannedEngine] = {}
    for index, engine in enumerate(then.launched):
        found = next((old for old in left if _same(old, engine)), None)
        if found is not None:
            left.remove(found)
            stays[index] = found
    comes = tuple(engine for index, engine in enumerate(then.launched) if index not in stays)
    launched = tuple(stays.get(index, engine) for index, engine in enumerate(then.launched))
    short = _short([*launched, *left], comes, facts, settings)
    # Others use the machine too, and its budget says nothing of them.
    free = sum_of(("memory", available_gib), ("reserve", -up(settings.memory_reserve_gib)))
    memory = main_memory(facts, settings)
    coming = sum(_share(engine, memory, shared=_shared(facts)) for engine in comes)
    return Changeover(
        replace(then, launched=launched),
        tuple(stays.values()),
        tuple(left),
        comes,
        tuple(_lacking(launched, comes, facts, settings)),
        tuple(short or _too_much("switch_no_room", memory.device, coming, free)) if left else (),
    )


def _same(one: PlannedEngine, other: PlannedEngine) -> bool:
    return all(_of(one, name) == _of(other, name) for name in RUN_BY)


def _of(engine: PlannedEngine, name: str) -> Any:
    return getattr(engine, name)


def _shared(facts: Facts) -> bool:
    """Whether what lies on a card lies in the main memory too."""
    return facts.unified_memory or facts.metal


def _short(
    together: Sequence[PlannedEngine],
    comes: Sequence[PlannedEngine],
    facts: Facts,
    settings: PlanConfig,
) -> list[Phrase]:
    """Every memory that would be too small for all of them at once."""
    lacking = []
    for room in (*cards(facts, settings), main_memory(facts, settings)):
        if any(_share(engine, room, shared=_shared(facts)) for engine in comes):
            needed = sum(_share(engine, room, shared=_shared(facts)) for engine in together)
            lacking += _too_much("switch_no_room", room.device, needed, room.budget)
    return lacking


def _lacking(
    launched: Sequence[PlannedEngine],
    comes: Sequence[PlannedEngine],
    facts: Facts,
    settings: PlanConfig,
) -> list[Phrase]:
    """Every memory that is too small for all that will run.

    What lies over several cards takes of each as much as the others leave, as the planner lays it: so it
    needs no more than they leave on all of them together.
    """
    rooms, memory, shared = cards(facts, settings), main_memory(facts, settings), _shared(facts)
    over = [engine for engine in launched if _spread(engine, rooms)]
    lacking: list[Phrase] = []
    left: dict[str, float] = {}
    for room in (*rooms, memory):
        there = launched if room is memory else [engine for engine in launched if engine not in over]
        needed = sum(_share(engine, room, shared=shared) for engine in there)
        left[room.device] = max(0.0, round(room.gib - needed, 2))
        if any(_share(engine, room, shared=shared) for engine in comes if engine in there):
            lacking += _too_much("switch_lacks", room.device, needed, room.budget)
    for kind in dict.fromkeys(engine.device for engine in over):
        if any(engine.device.partition(":")[0] == kind for engine in comes):
            able = [room for room in rooms if room.kind == kind and left[room.device] > 0]
            needed = sum(engine.on_card_gib for engine in over if engine.device == kind)
            lacking += _too_much("switch_lacks", kind, needed, budget_of(able, left))
    return lacking


def _spread(engine: PlannedEngine, rooms: Sequence[Room]) -> bool:
    """Whether it lies over several cards: its device is then their kind."""
    return engine.device in {room.kind for room in rooms} - {room.device for room in rooms}


def _share(engine: PlannedEngine, room: Room, *, shared: bool) -> float:
    """GiB of the engine that lie in this memory. One that lies over several cards is counted in full on each:
    rather one after the other than both without room."""
    if room.kind != "cpu":
        return engine.on_card_gib if engine.device in (room.device, room.kind) else 0.0
    return engine.main_gib(shared=shared)


def _too_much(code: str, device: str, gib: float, budget: Need) -> list[Phrase]:
    needed = round(gib, 2)
    if needed <= budget.gib:
        return []
    short = f"{needed - budget.gib:.2f}"
    return [Phrase(code, device=device, need=f"{needed:.2f}", budget=budget.told, short=short)]
