"""Percentiles, and the summary of a run of turns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ondam.journal.marks import STAGES

PERCENTILES = (50, 90, 95, 99)


def distribution(values: Iterable[float | None]) -> dict[str, float | int | None]:
    """p50, p90, p95, p99 (linear between the neighbouring values), max and n. None is left out."""
    known = [value for value in values if value is not None]
    if not known:
        return {**{f"p{p}": None for p in PERCENTILES}, "max": None, "n": 0}
    figures = np.percentile(known, PERCENTILES)
    named = {f"p{p}": round(float(v), 1) for p, v in zip(PERCENTILES, figures, strict=True)}
    return {**named, "max": round(max(known), 1), "n": len(known)}


def summary(turns: Sequence[Mapping[str, Any]], *, budget_ms: float) -> dict[str, Any]:
    """What a run of turns (as ``Turn.as_json``) comes to. First audio and whole answer stay apart.

    ``engine_sum_ms`` is what the engines themselves took in these turns: STT, first clause, first audio.
    ``after_endpoint_ms`` is first audio less the wait for the endpoint: what the daemon made of that sum.
    """
    answered = [turn for turn in turns if turn["outcome"] == "answered"]
    first = [turn["first_audio_ms"] for turn in answered]
    after = [
        turn["first_audio_ms"] - turn["stages_ms"]["endpoint"]
        for turn in answered
        if turn["first_audio_ms"] is not None and turn["stages_ms"]["endpoint"] is not None
    ]
    return {
        "first_audio_ms": distribution(first),
        "answer_ms": distribution(turn["answer_ms"] for turn in answered),
        "stages_ms": {stage: distribution(turn["stages_ms"][stage] for turn in answered) for stage in STAGES},
        "engine_sum_ms": distribution(turn["engine_ms"]["sum"] for turn in answered),
        "after_endpoint_ms": distribution(after),
        "over_budget": sum(1 for value in first if value is not None and value > budget_ms),
        "failed": len(turns) - len(answered),
    }
