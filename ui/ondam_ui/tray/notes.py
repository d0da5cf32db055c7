"""When a fault is worth a notification: once, and gone with the fault. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AGAIN_S = 600.0
"""A fault that comes and goes is told once in ten minutes."""

BETWEEN_S = 10.0
"""Faults that come together, as all engines of a machine that was asleep, are told in one go."""


@dataclass(frozen=True, slots=True)
class Told:
    """``at``: when each fault was last told, by its text; ``on_screen``: those in the notification now."""

    at: Mapping[str, float] = field(default_factory=dict)
    on_screen: tuple[str, ...] = ()
    last_s: float | None = None


def tell(told: Told, faults: tuple[str, ...], now_s: float) -> tuple[Told, tuple[str, ...] | None]:
    """What the notification says from now on: these lines, nothing (``()``: it goes), or None: as it is.

    ``faults``: what is wrong now. A new one that comes too soon after the last notification is told by a
    later call.
    """
    staying = tuple(fault for fault in told.on_screen if fault in faults)
    fresh = tuple(
        fault
        for fault in faults
        if fault not in staying and (fault not in told.at or now_s - told.at[fault] >= AGAIN_S)
    )
    if fresh and (told.last_s is None or now_s - told.last_s >= BETWEEN_S):
        lines = (*staying, *fresh)
        at = {**{f: s for f, s in told.at.items() if now_s - s < AGAIN_S}, **dict.fromkeys(fresh, now_s)}
        return Told(at, lines, now_s), lines
    if staying != told.on_screen:
        return Told(told.at, staying, told.last_s), staying
    return told, None


def waits(told: Told, faults: tuple[str, ...], now_s: float) -> float | None:
    """Seconds until ``tell`` would tell one of ``faults`` that it does not tell now; None: nothing waits."""
    soonest = 0.0 if told.last_s is None else told.last_s + BETWEEN_S
    due = [max(soonest, told.at.get(f, -AGAIN_S) + AGAIN_S) for f in faults if f not in told.on_screen]
    return max(0.0, min(due) - now_s) if due else None
