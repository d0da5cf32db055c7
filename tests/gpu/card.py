"""What NVIDIA's driver says of the cards, through the planner's own question to it."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from typing import Any

from tests.gpu.step import ROOT, Given

NVML = ROOT / "daemon" / "ondam" / "planner" / "nvml.py"

PROBE = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
count, version, status = ctypes.c_int(0), ctypes.c_int(0), driver.cuInit(0)
driver.cuDriverGetVersion(ctypes.byref(version))
if status == 0:
    driver.cuDeviceGetCount(ctypes.byref(count))
print(status, count.value, version.value)
"""

GONE_S = 5.0
"""Until what a process that was killed held on a card is free again: some tenths of a second are usual."""

LONGEST_S = 20.0
"""A driver that no program holds loaded takes some seconds on a server with many cards."""


def why_none(number: int) -> str:
    """Why the card ``number`` cannot be computed on; empty where it can. Asked in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the NVIDIA driver has not answered for {LONGEST_S:.0f} s"
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        if "libcuda.so.1" in last and "No such file" in last:
            return "no NVIDIA driver (libcuda.so.1 is not there)"
        return f"the NVIDIA driver cannot be asked: {last}"
    status, count, version = (int(part) for part in done.stdout.split())
    if status != 0:
        cuda = f"{version // 1000}.{version % 1000 // 10}"
        return f"the NVIDIA driver (CUDA {cuda}) finds no card: cuInit {status}"
    if number >= count:
        return f"there is no card {number}: the driver finds {count}"
    return ""


def seen(given: Given) -> dict[str, Any]:
    """The planner's view (``planner.nvml.Seen``). ``reason`` is set where there is none."""
    # Whichever environment has NVIDIA's binding; ours need not be there on a bare machine.
    for python in dict.fromkeys(
        [given.pythons.get("ondam"), given.pythons.get("supertonic"), sys.executable]
    ):
        if python is None:
            continue
        done = subprocess.run(
            [python, "-P", str(NVML)], capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
        try:
            answer: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            continue  # it died of the driver's library; another Python may have another binding
        if answer["reason"] != "gpu_binding_missing":
            return answer
    return {"driver": "", "cards": [], "reason": "gpu_binding_missing", "detail": "no Python here has pynvml"}


def used_mib(given: Given) -> int | None:
    """On the card that is checked, by everybody; None where nobody can tell."""
    cards = seen(given)["cards"]
    return cards[given.card]["used_mib"] if given.card < len(cards) else None


def left_mib(given: Given, before: int | None) -> int | None:
    """What is in use once an engine is gone, as soon as no more is than ``before``; at most ``GONE_S`` later.

    Whoever ends with ``os._exit`` waits for no child that it killed, and the driver takes its time.
    """
    until = time.monotonic() + GONE_S
    while (used := used_mib(given)) is not None and before is not None:
        if used <= before or time.monotonic() > until:
            break
        time.sleep(0.2)
    return used


def library(name: str) -> bool:
    """Whether the loader finds it."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
