"""Asks NVIDIA's driver about its cards, as ``python -m ondam.planner.nvml``: one line of JSON, then the end.

A process of its own, because a driver that hangs takes its caller with it (a call into the kernel that cannot
be interrupted), and because the driver's library stays in whatever process loaded it. ``planner.gpus`` starts
it and waits only so long. Imports nothing of ours: it is to be quick.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypedDict

MEMORY_CLOCK = 2
"""NVML_CLOCK_MEM (nvml.h)."""

TWICE_A_CLOCK = 2
"""Transfers per cycle of the clock that NVML names: with it, bus width times clock is the data sheet's figure
(RTX 4090: 384 bit × 10,501 MHz × 2 / 8 = 1,008 GB/s; H200: 6,144 bit × 3,201 MHz × 2 / 8 = 4,917 GB/s)."""

MIB = 2**20


class ProcessSeen(TypedDict):
    """A process that computes or draws on a card."""

    pid: int
    mib: int | None
    """Its memory there; None where the driver does not say."""


class CardSeen(TypedDict):
    """One card, or one slice of a card that is cut in slices (MIG). Sizes in MiB; None: not told."""

    name: str
    uuid: str
    compute_capability: str | None
    total_mib: int | None
    """None where the card has no memory of its own (GB10, Jetson: unified memory)."""
    free_mib: int | None
    used_mib: int | None
    """By everybody, without what the driver keeps for itself where it tells the two apart."""
    bandwidth_gb_s: float | None
    processes: list[ProcessSeen] | None
    """None where the list is not given to this user."""


class Seen(TypedDict):
    """What the driver answered. ``reason``: a message code when there is something to tell, else empty."""

    driver: str
    cards: list[CardSeen]
    reason: str
    detail: str
    """The driver's own words."""


def look(nvml: Any) -> Seen:
    """Everything that ``nvml`` (the module pynvml; Any: it has no types) tells. Raises nothing of NVML's."""
    seen: Seen = {"driver": "", "cards": [], "reason": "", "detail": ""}
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return {**seen, "reason": _why(nvml, error), "detail": str(error)}
    try:
        seen["driver"] = _text(nvml.nvmlSystemGetDriverVersion())
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                seen["cards"] += _card(nvml, nvml.nvmlDeviceGetHandleByIndex(index))
            except nvml.NVMLError as error:
                # One card that has fallen off the bus leaves the others usable.
                seen["reason"], seen["detail"] = "gpu_card_failed", f"{index}: {error}"
    except nvml.NVMLError as error:
        seen["reason"], seen["detail"] = _why(nvml, error), str(error)
    finally:
        with contextlib.suppress(nvml.NVMLError):  # we leave anyway
            nvml.nvmlShutdown()
    return seen


def _card(nvml: Any, handle: Any) -> Iterator[CardSeen]:
    """The card, or its slices: a program can use one slice and never the card they were cut from."""
    whole = _one(nvml, handle, handle)
    slices = list(_slices(nvml, handle))
    if not slices:
        yield whole
    for part in slices:
        # A slice has its share of the bandwidth and does not say how large that is.
        yield {**_one(nvml, part, handle), "bandwidth_gb_s": None}


def _slices(nvml: Any, handle: Any) -> Iterator[Any]:
    if not (_told(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle)[0]) or 0):
        return
    for index in range(_told(nvml, lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle)) or 0):
        # There may be gaps: the count is of places, not of slices.
        part = _told(nvml, partial(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index))
        if part is not None:
            yield part


def _one(nvml: Any, handle: Any, card: Any) -> CardSeen:
    capability = _told(nvml, lambda: nvml.nvmlDeviceGetCudaComputeCapability(card))
    # The newer call counts what the driver keeps apart from what programs use; old drivers lack it.
    memory = _told(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2))
    memory = memory or _told(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    return {
        "name": _text(nvml.nvmlDeviceGetName(handle)),
        "uuid": _text(_told(nvml, lambda: nvml.nvmlDeviceGetUUID(handle)) or ""),
        "compute_capability": f"{capability[0]}.{capability[1]}" if capability else None,
        "total_mib": memory.total // MIB if memory and memory.total else None,
        "free_mib": memory.free // MIB if memory and memory.total else None,
        "used_mib": memory.used // MIB if memory and memory.total else None,
        "bandwidth_gb_s": _bandwidth(nvml, card),
        "processes": _processes(nvml, handle),
    }


def _bandwidth(nvml: Any, handle: Any) -> float | None:
    bits = _told(nvml, lambda: nvml.nvmlDeviceGetMemoryBusWidth(handle))
    mhz = _told(nvml, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, MEMORY_CLOCK))
    return round(bits / 8 * mhz * TWICE_A_CLOCK / 1000, 1) if bits and mhz else None


def _processes(nvml: Any, handle: Any) -> list[ProcessSeen] | None:
    found: dict[int, int | None] = {}
    lists = (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses)
    answers = [_told(nvml, partial(ask, handle)) for ask in lists]
    if all(answer is None for answer in answers):
        return None
    for process in (process for answer in answers for process in answer or ()):
        used = process.usedGpuMemory
        # A process that computes and draws stands in both lists, each time with all of its memory.
        found[process.pid] = used // MIB if used is not None else found.get(process.pid)
    return [{"pid": pid, "mib": mib} for pid, mib in found.items()]


def _told(nvml: Any, ask: Callable[[], Any]) -> Any:
    """The answer; None where this card, driver or user does not get one. Any: whatever NVML gives."""
    try:
        return ask()
    except (nvml.NVMLError, AttributeError):
        return None  # AttributeError: a pynvml older than the call


def _why(nvml: Any, error: Any) -> str:
    return {
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND: "gpu_library_missing",
        nvml.NVML_ERROR_DRIVER_NOT_LOADED: "gpu_no_driver",
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "gpu_driver_mismatch",
        nvml.NVML_ERROR_NO_PERMISSION: "gpu_no_permission",
    }.get(error.value, "gpu_driver_fails")


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def main() -> None:
    """Print what there is."""
    try:
        import pynvml
    except ImportError as error:
        seen: Seen = {"driver": "", "cards": [], "reason": "gpu_binding_missing", "detail": str(error)}
    else:
        seen = look(pynvml)
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
