"""Looks at the machine. All of the planner's reading of the system is here."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import sys
from pathlib import Path

import psutil

from ondam.planner.facts import Facts

CGROUP = Path("/sys/fs/cgroup")
CPUINFO = Path("/proc/cpuinfo")


def probe() -> Facts:
    """This machine, now."""
    name, flags = _cpu(CPUINFO)
    logical = psutil.cpu_count() or 1
    return Facts(
        cores=_cores(CGROUP),
        logical_cores=logical,
        cpu=name or platform.processor() or platform.machine(),
        cpu_flags=flags,
        memory_mib=_memory_mib(CGROUP),
        system=sys.platform,
        machine=platform.machine(),
    )


def on_battery() -> bool:
    """Whether the machine runs on its battery now; False where it has none. Well under a millisecond."""
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    return battery is not None and battery.power_plugged is False


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
