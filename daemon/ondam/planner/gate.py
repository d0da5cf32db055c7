"""Whether an engine can run on a card at all: its maker's driver, what the card computes in. Pure.

Asked before anything is downloaded: a set of packages that is too new for the driver fails only when it is
loaded, gigabytes later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ondam.messages import Phrase
from ondam.models.card import ModelCard
from ondam.planner.facts import Gpu
from ondam.supervisor.manifest import Manifest

CUDA_DRIVERS = {"cu13": 580, "cu129": 575, "cu128": 570, "cu126": 560, "cu124": 550, "cu12": 525}
"""Lowest driver of each CUDA (CUDA release notes, table of driver versions), where a manifest does not say.
Within CUDA 12 any driver from 525 runs what was not compiled on the machine."""

OLDEST_CUDA = 525
"""For an engine that is compiled on the machine: CUDA 12."""

CUDA_CAPABILITIES = {"cu13": (7, 5)}
"""Oldest cards: CUDA 13 has left out Maxwell, Pascal and Volta."""

FP8 = (8, 9)
"""Oldest cards that compute in FP8: Ada. What is kept in FP8 (a key/value cache) is read quickly from there
on, too."""

MIN_FLOAT16 = (7, 0)
"""Oldest cards on which float16 is not slower than float32."""


@dataclass(frozen=True, slots=True)
class Gate:
    """It can run."""

    variant: str
    """Which of the engine's locks."""
    note: Phrase | None = None
    """What a person should know of that choice."""


def plain(manifest: Manifest, kind: str, system: str) -> Gate:
    """How it runs on a device that asks for no particular driver."""
    locks = manifest.environment.locks
    names = [kind, {"darwin": "macos", "win32": "windows"}.get(system, ""), "cpu"]
    if kind == "cpu":
        del names[0]
    return Gate(next((name for name in names if name in locks), next(iter(locks), "cpu")))


def gate(
    manifest: Manifest, kind: str, gpu: Gpu | None, card: ModelCard | None, system: str
) -> Gate | Phrase:
    """How ``manifest`` runs on ``gpu``; else why not. ``gpu`` None: a device without facts of its own."""
    if kind != "cuda" or gpu is None:
        return plain(manifest, kind, system)
    if gpu.driver_major is None:
        return Phrase("plan_driver_missing", card=gpu.name, engine=manifest.name)
    if card is not None and card.quantization == "fp8" and (gpu.capability or FP8) < FP8:
        found = gpu.compute_capability
        return Phrase("plan_no_fp8", card=gpu.name, capability=found, wanted=".".join(map(str, FP8)))
    sets = sorted(_sets(manifest), key=lambda found: -found[1])
    able = [found for found in sets if (gpu.capability or (99, 0)) >= _capability(found[0])]
    if not able:
        wanted = ".".join(map(str, min(_capability(name) for name, _ in sets)))
        found = gpu.compute_capability
        return Phrase("plan_card_too_old", card=gpu.name, capability=found, wanted=wanted)
    for name, driver in able:
        if gpu.driver_major >= driver:
            newest, newest_driver = able[0]
            if name == newest:
                return Gate(name)
            facts = {"driver": gpu.driver, "newest": newest, "needed": newest_driver, "variant": name}
            return Gate(name, Phrase("plan_older_set", **facts))
    lowest = min(driver for _, driver in able)
    return Phrase("plan_driver_too_old", engine=manifest.name, driver=gpu.driver, needed=lowest)


def _sets(manifest: Manifest) -> list[tuple[str, int]]:
    """Pinned sets for CUDA with the driver each needs; that for the CPU, where it is compiled for CUDA."""
    environment, needs = manifest.environment, manifest.needs
    names = [name for name in environment.locks if name.startswith("cu")] or list(environment.locks)[:1]
    sets = []
    for name in names:
        told = environment.drivers.get(name) or needs.minimum_driver or ""
        head = re.match(r"\d+", told)
        sets.append((name, int(head[0]) if head else _known(name)))
    return sets


def _known(name: str) -> int:
    fitting = [prefix for prefix in CUDA_DRIVERS if name.startswith(prefix)]
    return CUDA_DRIVERS[max(fitting, key=len)] if fitting else OLDEST_CUDA


def _capability(name: str) -> tuple[int, int]:
    return next((found for prefix, found in CUDA_CAPABILITIES.items() if name.startswith(prefix)), (0, 0))
