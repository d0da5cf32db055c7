"""Looks at the machine. What the planner reads of the system is read here and in ``gpus``. Raises nothing."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

from ondam.errors import OndamError
from ondam.places import places
from ondam.planner.facts import MACHINES, Facts, Gpu
from ondam.planner.gpus import Card, Sight, look, vulkan_drivers

CGROUP = Path("/sys/fs/cgroup")
CPUINFO = Path("/proc/cpuinfo")

SYSCTL = ("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")
"""How macOS names its processor (``Apple M2 Pro``)."""

UNIFIED_GB_S: Mapping[str, float] = {
    "Apple M1": 68, "Apple M1 Pro": 200, "Apple M1 Max": 400, "Apple M1 Ultra": 800,
    "Apple M2": 100, "Apple M2 Pro": 200, "Apple M2 Max": 400, "Apple M2 Ultra": 800,
    "Apple M3": 100, "Apple M3 Pro": 150, "Apple M3 Max": 300, "Apple M3 Ultra": 819,
    "Apple M4": 120, "Apple M4 Pro": 273, "Apple M4 Max": 410,
    "NVIDIA GB10": 273,
}  # fmt: skip
"""Bandwidth of memory that processor and GPU share, from the makers' specifications; of a name that is sold
in several widths the narrowest. No system tells it, and what is not here is not guessed."""


def probe(sight: Sight | None = None, folder: Path | None = None) -> Facts:
    """This machine, now. ``sight``: what ``gpus.look`` saw already. ``folder``: the disk to look at."""
    name, flags = _cpu(CPUINFO)
    name = name or (_apple_name() if sys.platform == "darwin" else "")
    memory_mib, machine = _memory_mib(CGROUP), platform.machine()
    cards = (look() if sight is None else sight).cards
    shared = [card for card in cards if card.total_mib is None]
    chip = shared[0].name if shared else name
    return Facts(
        cores=_cores(CGROUP),
        logical_cores=psutil.cpu_count() or 1,
        cpu=name or platform.processor() or machine,
        cpu_flags=flags,
        memory_mib=memory_mib,
        system=sys.platform,
        machine=MACHINES.get(machine, machine),
        gpus=tuple(_gpu(card, memory_mib) for card in cards),
        memory_gb_s=UNIFIED_GB_S.get(chip),
        unified_memory=bool(shared) or (sys.platform == "darwin" and machine == "arm64"),
        disk_free_gib=_disk_free_gib(folder),
        on_battery=on_battery(),
        vulkan=bool(vulkan_drivers()),
    )


def on_battery() -> bool:
    """Whether the machine runs on its battery now; False where it has none. Well under a millisecond."""
    try:
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    except OSError:  # no descriptor left to look with
        return False
    return battery is not None and battery.power_plugged is False


def _gpu(card: Card, memory_mib: int) -> Gpu:
    """The card as a fact. One without memory of its own has the machine's, as far as that is free."""
    if card.total_mib is None or card.free_mib is None:
        total, free = memory_mib, min(memory_mib, psutil.virtual_memory().available // 2**20)
    else:
        total, free = card.total_mib, card.free_mib
    return Gpu(
        name=card.name,
        vram_gib=_gib(total),
        # What was counted as ours may have grown between two answers of the driver.
        free_gib=_gib(min(free, total)),
        driver=card.driver or None,
        compute_capability=card.compute_capability,
        bandwidth_gb_s=card.bandwidth_gb_s or UNIFIED_GB_S.get(card.name),
        neighbours_gib=None if card.neighbours_mib is None else _gib(min(card.neighbours_mib, total)),
    )


def _gib(mib: float) -> float:
    return round(mib / 1024, 2)


def _disk_free_gib(folder: Path | None) -> float | None:
    """Of the disk that the models lie on, or would."""
    try:
        wanted = folder or places().models
        there = next(path for path in (wanted, *wanted.parents) if path.exists())
        return round(shutil.disk_usage(there).free / 2**30, 1)
    except (OndamError, OSError, StopIteration):
        return None  # whoever needs the folder says what is wrong with it


def _apple_name() -> str:
    try:
        done = subprocess.run(SYSCTL, capture_output=True, text=True, timeout=2, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return re.sub(r"\s+", " ", done.stdout).strip()


def _cores(cgroup: Path) -> int:
    allowed = [psutil.cpu_count(logical=False) or psutil.cpu_count() or 1]
    if hasattr(os, "sched_getaffinity"):
        allowed.append(len(os.sched_getaffinity(0)))
    # "max 100000", or "150000 100000": microseconds per period (cgroup-v2, cpu.max).
    with contextlib.suppress(OSError, ValueError):  # no cgroup, or no limit
        quota, period = (int(part) for part in (cgroup / "cpu.max").read_text().split())
        allowed.append(math.ceil(quota / period))
    return max(1, min(allowed))


def _memory_mib(cgroup: Path) -> int:
    total = psutil.virtual_memory().total
    with contextlib.suppress(OSError, ValueError):  # no cgroup, or "max"
        total = min(total, int((cgroup / "memory.max").read_text()))
    return total // 2**20


def _cpu(cpuinfo: Path) -> tuple[str, frozenset[str]]:
    name, flags = "", frozenset[str]()
    with contextlib.suppress(OSError), cpuinfo.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            # "flags" on x86, "Features" on Arm. All cores of a machine have the same; the first will do.
            if key.strip() == "model name" and not name:
                name = value.strip()
            elif key.strip() in {"flags", "Features"} and not flags:
                flags = frozenset(value.split())
    return name, flags
