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
    """What turns (as ``measure.bench`` records them) come to. First audio and whole answer stay apart.

    ``engines_own_ms`` is what the engines themselves took in these turns: STT, first clause, first audio.
    ``after_endpoint_ms`` is first audio less the wait for the endpoint: what the daemon made of that sum.
    ``failed`` turns are in no distribution; each of them is among the turns. ``cut_short``: answered from
    sound that ended before the user's last voice. ``misheard``: other words than those in the clip.
    """
    answered = [turn for turn in turns if is_answered(turn)]
    first = [turn["first_audio_ms"] for turn in answered]
    after = [
        turn["first_audio_ms"] - turn["stages_ms"]["endpoint"]
        for turn in answered
        if turn["stages_ms"]["endpoint"] is not None
    ]
    return {
        "first_audio_ms": distribution(first),
        "answer_ms": distribution(turn["answer_ms"] for turn in answered),
        "stages_ms": {stage: distribution(turn["stages_ms"][stage] for turn in answered) for stage in STAGES},
        "engines_own_ms": distribution(turn["engine_ms"]["sum"] for turn in answered),
        "after_endpoint_ms": distribution(after),
        "over_budget": sum(1 for value in first if value > budget_ms),
        "failed": len(turns) - len(answered),
        "cut_short": sum(1 for turn in answered if turn["cut_short"]),
        "misheard": sum(1 for turn in answered if turn["misheard"]),
        "taken_back": sum(turn["taken_back"] for turn in answered),
        "drafts": {
            key: sum(turn["drafts"][key] for turn in answered) for key in ("made", "dropped", "tokens")
        },
        "prompts": prompts(turn["tokens"] for turn in answered),
    }


def prompts(tokens: Iterable[Mapping[str, int | None]]) -> dict[str, float | int | None]:
    """How long the prompts were, how much of them came from the engine's cache, and how many came whole."""
    known = list(tokens)
    return {
        "prompt_tokens_p50": distribution(one["prompt"] for one in known)["p50"],
        "cached_tokens_p50": distribution(one["cached"] for one in known)["p50"],
        "whole_from_cache": sum(1 for one in known if served_whole(one)),
    }


def served_whole(tokens: Mapping[str, int | None]) -> bool:
    """Whether a prompt came whole from the engine's cache: at most its last token had to be computed."""
    whole, cached = tokens["prompt"], tokens["cached"]
    return whole is not None and cached is not None and cached >= whole - 1


def differences(
    turns: Sequence[Mapping[str, Any]], against: Sequence[Mapping[str, Any]]
) -> dict[str, float | int | None]:
    """First audio of ``against`` less that of ``turns``, pair by pair: above 0 where ``turns`` are sooner.

    The n-th turns of both make a pair (the same clip, one right after the other); one without the other,
    because it failed, makes none.
    """
    return distribution(
        slow["first_audio_ms"] - quick["first_audio_ms"]
        for quick, slow in zip(turns, against, strict=True)
        if is_answered(quick) and is_answered(slow)
    )


def is_answered(turn: Mapping[str, Any]) -> bool:
    """Whether the turn counts: answered, and heard."""
    return turn["outcome"] == "answered" and turn["first_audio_ms"] is not None
