"""The memories that models can be put into: each card's, and the machine's. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ondam.config import PlanConfig
from ondam.messages import Phrase
from ondam.planner.arithmetic import Need, card_budget, down, memory_budget, sum_of, up
from ondam.planner.facts import Facts, Gpu

Kind = Literal["cpu", "cuda", "metal", "vulkan"]

METAL_SHARE = 2 / 3
"""Of the machine's memory that macOS lets a GPU hold (recommendedMaxWorkingSetSize); larger Macs get 3/4."""


@dataclass(frozen=True, slots=True)
class Room:
    """One memory."""

    device: str
    """``cuda:0``, ``metal``, ``cpu``, …"""
    kind: Kind
    gpu: Gpu | None
    budget: Need
    gb_s: float | None
    """Its bandwidth, where it is known."""

    @property
    def gib(self) -> float:
        """What there is for us."""
        return self.budget.gib


def cards(facts: Facts, settings: PlanConfig) -> tuple[Room, ...]:
    """Every accelerator's memory that may be used. Empty where there is none, or none is wanted.

    A card that others have filled is there all the same: what it lacks is told.
    """
    found: list[Room] = []
    for index, gpu in enumerate(facts.gpus):
        if gpu.driver is not None or gpu.compute_capability is not None:
            found.append(
                Room(f"cuda:{index}", "cuda", gpu, _budget(facts, gpu, settings), gpu.bandwidth_gb_s)
            )
        elif facts.vulkan:
            budget = _budget(facts, gpu, settings)
            found.append(Room(f"vulkan:{index}", "vulkan", gpu, budget, gpu.bandwidth_gb_s))
    if facts.metal:
        apple = facts.gpus[0] if facts.gpus else None
        found = [Room("metal", "metal", apple, _metal(facts, apple, settings), _gb_s(facts, settings))]
    return tuple(room for room in found if settings.device in ("auto", room.kind))


def unused(facts: Facts, settings: PlanConfig) -> tuple[Phrase, ...]:
    """Of each card that is no room: why not."""
    if facts.metal:
        return ()
    rooms = {room.gpu for room in cards(facts, settings)}
    found = []
    for gpu in facts.gpus:
        if gpu not in rooms:
            known = gpu.driver is not None or gpu.compute_capability is not None or facts.vulkan
            code = "plan_card_not_wanted" if known else "plan_card_unused"
            found.append(Phrase(code, name=gpu.name, device=settings.device))
    return tuple(found)


def main_memory(facts: Facts, settings: PlanConfig) -> Room:
    """The machine's own."""
    budget = memory_budget(facts.ram_gib, settings.memory_reserve_gib)
    return Room("cpu", "cpu", None, budget, _gb_s(facts, settings))


def _gb_s(facts: Facts, settings: PlanConfig) -> float | None:
    """The user's word on the main memory's bandwidth, else what is known of it."""
    return settings.memory_gb_s or facts.memory_gb_s


def _budget(facts: Facts, gpu: Gpu, settings: PlanConfig) -> Need:
    """A card's. Whatever is not free is somebody's, whoever was named."""
    taken = max(gpu.neighbours_gib or 0.0, gpu.vram_gib - gpu.free_gib)
    if facts.unified_memory:
        # The same memory holds the system, this daemon and the engines on the processor. Several cards that
        # say so have equal parts of it: nobody tells which of them share it.
        share = facts.ram_gib / len(facts.gpus)
        return card_budget(min(gpu.vram_gib, share), taken, settings.memory_reserve_gib + 1.0)
    return card_budget(gpu.vram_gib, taken, settings.reserve_gib)


def _metal(facts: Facts, gpu: Gpu | None, settings: PlanConfig) -> Need:
    limit = min(facts.ram_gib * METAL_SHARE, facts.ram_gib - settings.memory_reserve_gib)
    if gpu is not None:
        limit = min(limit, gpu.free_gib)
    return sum_of(
        ("memory", down(facts.ram_gib)),
        ("system", -up(facts.ram_gib - limit)),
        ("reserve", -up(settings.reserve_gib)),
    )
