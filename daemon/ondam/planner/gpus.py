"""Which GPUs this machine has and what is free on them. Never raises, never waits longer than ``LONGEST_S``.

Nothing here touches a GPU: NVIDIA's driver is asked in a process of its own (``planner.nvml``), and only
where something of it is installed; Vulkan is looked up in its loader's folders.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from ondam.errors import OndamError
from ondam.messages import Phrase
from ondam.places import places
from ondam.planner.nvml import CardSeen, Seen
from ondam.supervisor.family import INSTANCE, marked

LONGEST_S = 10.0
"""For the driver's answer. A driver that no program holds loaded takes 1-3 s to come up on a server with
several cards; one that has said nothing after ten hangs."""

ASK = (sys.executable, "-P", "-m", "ondam.planner.nvml")

ROOT = Path("/")

DRIVER_MARKS = (
    "proc/driver/nvidia/version",
    "dev/nvidiactl",
    "dev/dxg",  # Windows' Linux (WSL)
    "etc/nv_tegra_release",  # Jetson
    "dev/nvmap",  # Jetson
)
"""What of NVIDIA's driver can be seen without it."""

NVIDIA = "0x10de"
"""NVIDIA's number on the PCI bus (pci.ids)."""

DISPLAY_CLASS = "0x03"
"""PCI class of display controllers, 3D controllers among them."""

ICD_FOLDERS = (
    "usr/share/vulkan/icd.d",
    "usr/local/share/vulkan/icd.d",
    "etc/vulkan/icd.d",
    "usr/local/etc/vulkan/icd.d",
)
"""Where Vulkan's loader finds its drivers on Linux (Vulkan-Loader, LoaderDriverInterface.md)."""

SOFTWARE_ICDS = ("lvp", "llvmpipe", "swiftshader")
"""Vulkan drivers that compute on the processor: slower than not using Vulkan."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Somebody else's process on a card."""

    pid: int
    name: str
    mib: int | None
    """None where the driver does not say."""


@dataclass(frozen=True, slots=True)
class Card:
    """An NVIDIA card, or a slice of one. MiB; None: not told."""

    name: str
    driver: str
    compute_capability: str | None
    total_mib: int | None
    """None where it has no memory of its own and shares the machine's."""
    free_mib: int | None
    """For us: what is free now, and what this instance's engines hold, which would be given back."""
    neighbours_mib: int | None
    """Used by others. From the card's own sum: a list of processes hides those in other containers."""
    neighbours: tuple[Neighbour, ...] | None
    """None where the list is not given to this user."""
    bandwidth_gb_s: float | None
    """Of its memory, from bus width and clock; None where the driver does not tell, and for a slice."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen. ``trouble``: why cards are missing, or None when there is nothing to tell."""

    cards: tuple[Card, ...] = ()
    trouble: Phrase | None = None
    absent: bool = False
    """There is neither a card nor a trace of one: nothing is missing."""


def look(
    environ: Mapping[str, str] = os.environ, *, ask: Sequence[str] = ASK, longest_s: float = LONGEST_S
) -> Sight:
    """The NVIDIA cards that our engines would see, in the order in which CUDA counts them by bus."""
    if sys.platform == "darwin":
        return Sight(absent=True)
    if not any((ROOT / mark).exists() for mark in DRIVER_MARKS):
        if _card_on_the_bus():
            return Sight(trouble=Phrase("gpu_no_driver", detail="-"))
        return Sight(trouble=Phrase("gpu_none"), absent=True)
    answer = _answer(ask, longest_s)
    if isinstance(answer, Phrase):
        return Sight(trouble=answer)
    trouble = Phrase(answer["reason"], detail=answer["detail"]) if answer["reason"] else None
    seen = _visible(answer["cards"], environ.get("CUDA_VISIBLE_DEVICES"))
    if answer["cards"] and not seen:
        trouble = Phrase("gpu_hidden", value=environ.get("CUDA_VISIBLE_DEVICES", ""))
    ours = _our_processes() if seen else frozenset()
    return Sight(tuple(_card(card, answer["driver"], ours) for card in seen), trouble)


def vulkan_drivers(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Names of the Vulkan drivers for real GPUs (``radeon_icd.x86_64``); none without Vulkan's loader."""
    if sys.platform == "darwin":
        return ()
    given = environ.get("VK_DRIVER_FILES") or environ.get("VK_ICD_FILENAMES")
    if given:
        files = [Path(part) for part in given.split(os.pathsep) if part]
    else:
        files = [file for folder in ICD_FOLDERS for file in sorted((ROOT / folder).glob("*.json"))]
    names = dict.fromkeys(file.stem for file in files if file.is_file())
    real = tuple(name for name in names if not name.startswith(SOFTWARE_ICDS))
    # Last: it runs ldconfig, and a compiler where that knows nothing.
    return real if real and ctypes.util.find_library("vulkan") else ()


def _answer(ask: Sequence[str], longest_s: float) -> Seen | Phrase:
    try:
        # Not subprocess.run: after a timeout it waits for the end of a process that the driver may never let
        # go.
        process = subprocess.Popen(
            ask, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        return Phrase("gpu_driver_fails", detail=error.strerror or str(error))
    try:
        out, err = process.communicate(timeout=longest_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        return Phrase("gpu_driver_silent", seconds=f"{longest_s:g}")
    try:
        seen: Seen = json.loads(out)
    except ValueError:
        # It died of the driver's library; its last line says of what.
        last = err.strip().splitlines()[-1:] or [f"status {process.returncode}"]
        return Phrase("gpu_driver_fails", detail=last[0][:200])
    return seen


def _visible(cards: Sequence[CardSeen], wanted: str | None) -> list[CardSeen]:
    """As CUDA reads CUDA_VISIBLE_DEVICES (CUDA C++ programming guide): the first name of nothing ends it.

    Of slices a program gets one, and no other card beside it (MIG user guide, "CUDA device enumeration").
    """
    seen = list(cards) if wanted is None else _named(cards, wanted)
    return [card for card in seen if card["uuid"].startswith("MIG-")][:1] or seen


def _named(cards: Sequence[CardSeen], wanted: str) -> list[CardSeen]:
    seen: list[CardSeen] = []
    for name in (part.strip() for part in wanted.split(",")):
        if name.isdecimal():
            found = list(cards[int(name) : int(name) + 1])
        else:
            found = [card for card in cards if name and card["uuid"].startswith(name)][:1]
        if not found:
            break
        seen += found
    return seen


def _card(seen: CardSeen, driver: str, ours: frozenset[int]) -> Card:
    processes = seen["processes"]
    own = sum(process["mib"] or 0 for process in processes or () if process["pid"] in ours)
    free, used, total = seen["free_mib"], seen["used_mib"], seen["total_mib"]
    card = Card(
        name=seen["name"],
        driver=driver,
        compute_capability=seen["compute_capability"],
        total_mib=total,
        free_mib=None if free is None else free + own,
        neighbours_mib=None if used is None else max(0, used - own),
        neighbours=None,
        bandwidth_gb_s=seen["bandwidth_gb_s"],
    )
    if processes is None:
        return card
    others = (process for process in processes if process["pid"] not in ours)
    return replace(card, neighbours=tuple(Neighbour(p["pid"], _name(p["pid"]), p["mib"]) for p in others))


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return "?"  # ended meanwhile, somebody else's, or outside of this container


def _our_processes() -> frozenset[int]:
    """Engines of this instance: a new plan would end them first, so their memory is free for it."""
    try:
        instance = places().runtime.name
    except OndamError:
        return frozenset()  # told by whoever needs the folders; here it only means that nothing runs there
    return frozenset(process.pid for process, _ in marked({INSTANCE: instance}))


def _card_on_the_bus() -> bool:
    return any(
        _read(device / "vendor") == NVIDIA and _read(device / "class").startswith(DISPLAY_CLASS)
        for device in _pci_devices()
    )


def _pci_devices() -> Iterable[Path]:
    with contextlib.suppress(OSError):  # no PCI bus, as on many boards
        return sorted((ROOT / "sys/bus/pci/devices").iterdir())
    return ()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""  # unplugged meanwhile
