"""What engines were found to hold after a start, in place of the catalog's estimate. Pure.

The daemon keeps a JSON object in its state folder (``measured-memory.json``): ``engine/model/device
kind/extra`` to GiB, what the engine held beyond its weights and cache once it was warm. Those follow from
model and settings; the rest (context, graphs, workspace) from the machine, whatever the settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from ondam.planner.plan import PlannedEngine

FILE = "measured-memory.json"
"""In the state folder."""

EXTRA = "/extra"
"""What every key ends with. One without is an older file's, all of what was held: nobody knows with which
settings."""

MARGIN_GIB = 0.1
"""Over what was measured: allocators round, and the next start need not be like the last."""


def key(engine: str, model: str, device: str) -> str:
    """Under which a measurement is kept; all cards of a kind are one."""
    return f"{engine}/{model}/{device.partition(':')[0]}{EXTRA}"


def learned(known: Mapping[str, float], planned: PlannedEngine, measured_gib: float) -> dict[str, float]:
    """``known`` with what ``planned`` was found to hold on its device (not what it holds in other memories).

    Unchanged where its sum has nothing to correct. The larger of the last two is kept: a start that was
    measured before its last graph must not make the next plan too small.
    """
    need = planned.need
    if need is None or all(addend.name != "extra" for addend in need.addends):
        return dict(known)
    extra = max(0.0, measured_gib - (need.gib - need.of("extra")))
    name = key(planned.engine, planned.model, planned.device)
    before = known.get(name)
    kept = extra if before is None else max(extra, (before + extra) / 2)
    return {**known, name: round(kept, 2)}


def read(value: object) -> dict[str, float]:
    """From parsed JSON. What is no measurement is left out: the estimate stands then."""
    if not isinstance(value, Mapping):
        return {}
    return {
        str(name): float(gib)
        for name, gib in value.items()
        if str(name).endswith(EXTRA)
        if isinstance(gib, int | float) and not isinstance(gib, bool) and 0 <= gib < 1e4
    }


def extra_of(measured: Mapping[str, float], engine: str, model: str, device: str) -> float | None:
    """GiB beyond weights, cache and state, by measurement; None where there is none."""
    found = measured.get(key(engine, model, device))
    return None if found is None else found + MARGIN_GIB
