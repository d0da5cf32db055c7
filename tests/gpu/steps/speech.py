"""Supertonic's engine with its stand-in, by one provider: cached start, report, first audio, memory."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from tests.gpu import card
from tests.gpu.engine import Running, manifest, open_to, running, speak
from tests.gpu.step import Found, Given
from tests.gpu.steps.warming import CACHE, files

TEXTS = (
    ("ko", "네."),
    ("ko", "안녕하세요, 반갑습니다."),
    ("ko", "오늘은 오후부터 비가 오겠습니다, 나가실 때 우산을 챙기세요."),
    ("en", "The meeting has been moved to three o'clock, so there is time for lunch before it begins."),
)
"""Clauses as the daemon sends them, from one syllable to the length that TensorRT is prepared for best."""

ROUNDS = 15

READY_S = 60.0
CACHED_START_S = 20.0
"""A start that takes longer has built something: libraries and four networks take some seconds."""

FRAME = 3072
"""Samples of one frame of the sound, 70 ms: rounding may put the end of a sound on its other side."""

QUIET = 300
"""Of 16-bit samples; the stand-in's chord is some thousands."""


def check(given: Given, kind: str) -> Found:
    """``kind``: cpu, cuda or tensorrt."""
    if "supertonic" not in given.pythons:
        return Found(skipped="no environment of supertonic")
    if "supertonic" not in given.models:
        return Found(skipped="no stand-in for Supertonic's model")
    if given.rehearsal and kind != "cpu":
        return Found(skipped="no card: sessions say that it is refused")
    if kind == "tensorrt":
        if not given.tensorrt:
            return Found(skipped="TensorRT is not here")
        if given.earlier.get("warming", {}).get("status") != "held":
            return Found(skipped="TensorRT's engines were not built")
    options = {**manifest("supertonic")["options"], "provider": kind if kind != "cpu" else "cuda"}
    device = "cpu" if kind == "cpu" else f"cuda:{given.card}"
    cache = given.made(CACHE)
    before, kept = card.used_mib(given), files(cache)
    values = {"device": device, "options": json.dumps(options), "cache": str(cache)}
    with running("supertonic", given, READY_S, **values) as engine:
        with_engine = card.used_mib(given)
        print(f"ready after {engine.ready_s:.1f} s; {engine.report['providers']}")
        facts = measured(engine)
        asked = card.used_mib(given)
    behind = card.left_mib(given, before)
    facts |= {
        "ready_s": round(engine.ready_s, 2),
        "report": engine.report,
        "used_mib": {"before": before, "ready": with_engine, "asked": asked, "behind": behind},
        "new_files": sorted(set(files(cache)) - set(kept)),
    }
    one = facts["first_audio_ms"]
    print(f"first audio: {' '.join(f'{name} {value}' for name, value in one.items())} ms")
    earlier = given.earlier.get("speech:cpu", {}).get("facts", {}).get("samples")
    return Found(judged(kind, facts, earlier), facts=facts)


def measured(engine: Running) -> dict[str, Any]:
    """Each text some times over, and how it sounded."""
    by_text: list[list[float]] = [[] for _ in TEXTS]
    samples, peaks = [0] * len(TEXTS), [0] * len(TEXTS)
    for _ in range(ROUNDS):
        for number, (language, text) in enumerate(TEXTS):
            spoken = speak(engine.socket, text, language)
            by_text[number].append(spoken.first_ms)
            samples[number], peaks[number] = spoken.samples, spoken.peak
    return {
        "first_audio_ms": distribution([ms for each in by_text for ms in each]),
        "first_audio_ms_by_text": {TEXTS[n][1]: distribution(each) for n, each in enumerate(by_text)},
        "samples": samples,
        "peaks": peaks,
    }


def distribution(values: Sequence[float]) -> dict[str, float]:
    """Nearest rank, as the daemon's reports."""
    ranked = sorted(values)
    at = {f"p{part}": ranked[max(0, math.ceil(part / 100 * len(ranked)) - 1)] for part in (50, 90, 95, 99)}
    return {"n": len(ranked), **{name: round(value, 1) for name, value in (*at.items(), ("max", ranked[-1]))}}


def judged(kind: str, facts: dict[str, Any], samples_on_cpu: list[int] | None) -> list[str]:
    """What is not as it should be."""
    report = facts["report"]
    found: list[str] = []
    wanted = {"cpu": "CPU", "cuda": "CUDA", "tensorrt": "Tensorrt"}[kind] + "ExecutionProvider"
    found.extend(
        f"{name}: {providers[0]} instead of {wanted}"
        for name, providers in report["providers"].items()
        if providers[0] != wanted
    )
    found.extend(f"{name}: {why}" for name, why in report.get("why", {}).items())
    found.extend(open_to(report))
    if report["weight_loads"] != 1:
        found.append(f"weights were loaded {report['weight_loads']} times")
    if facts["ready_s"] > CACHED_START_S:
        found.append(f"ready after {facts['ready_s']} s: more than {CACHED_START_S:.0f} s")
    if facts["new_files"]:
        found.append(f"built while somebody waited: {', '.join(facts['new_files'])}")
    if min(facts["peaks"]) < QUIET:
        found.append(f"a text was silent: peaks {facts['peaks']}")
    for (_, text), ours, theirs in zip(TEXTS, facts["samples"], samples_on_cpu or [], strict=False):
        if abs(ours - theirs) > FRAME:
            found.append(f"{text!r} has {ours} samples, {theirs} on the processor")
    return found
