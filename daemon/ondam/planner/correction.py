"""What engines were found to hold after a start, in place of the catalog's estimate. Pure.

The daemon keeps a JSON object in its state folder (``measured-memory.json``): ``engine/model/device kind`` to
GiB, all of what the engine held once it was warm, but for the cache beyond its need. Only what lies beyond
weights and cache is corrected by it: those follow from the model, the rest (context, graphs, workspace) from
the machine.
"""

from __future__ import annotations

from collections.abc import Mapping

from ondam.planner.arithmetic import Need
from ondam.planner.plan import PlannedEngine

FILE = "measured-memory.json"
"""In the state folder."""

MARGIN_GIB = 0.1
"""Over what was measured: allocators round, and the next start need not be like the last."""


def key(engine: str, model: str, device: str) -> str:
    """Under which a measurement is kept; all cards of a kind are one."""
    return f"{engine}/{model}/{device.partition(':')[0]}"


def learned(known: Mapping[str, float], planned: PlannedEngine, measured_gib: float) -> dict[str, float]:
    """``known`` with what ``planned`` was found to hold on its device (not what it holds in other memories).

    The larger of the last two is kept: a start that was measured before its last graph must not make the next
    plan too small.
    """
    name = key(planned.engine, planned.model, planned.device)
    if planned.need is not None:
        # Of the cache's floor each plan gives what there is; it is no part of what the model needs.
        measured_gib = max(0.0, measured_gib - planned.need.of("floor"))
    before = known.get(name)
    kept = measured_gib if before is None else max(measured_gib, (before + measured_gib) / 2)
    return {**known, name: round(kept, 2)}


def read(value: object) -> dict[str, float]:
    """From parsed JSON. What is no measurement is left out: the estimate stands then."""
    if not isinstance(value, Mapping):
        return {}
    return {
        str(name): float(gib)
        for name, gib in value.items()
        if isinstance(gib, int | float) and not isinstance(gib, bool) and 0 < gib < 1e4
    }


def extra_of(
    estimate: Need, measured: Mapping[str, float], engine: str, model: str, device: str
) -> float | None:
    """GiB beyond weights, cache and state, by measurement; None where there is none."""
    found = measured.get(key(engine, model, device))
    if found is None:
        return None
    return max(0.0, found + MARGIN_GIB - (estimate.gib - estimate.of("extra")))
