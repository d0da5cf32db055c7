"""vLLM with a small model: what it says of FP8 and of graphs is what it was asked for, in both directions."""

from __future__ import annotations

import json
from typing import Any

from tests.gpu import card
from tests.gpu.engine import chat, manifest, open_to, running
from tests.gpu.step import Found, Given
from tests.gpu.steps import facts as facts_step
from tests.gpu.steps.speech import distribution

READY_S = {"fp8": 140.0, "eager": 100.0}
"""A small model. The first start compiles and captures. Less than its step has, so that it is told why."""

KV_BYTES = 256 * 1024 * 1024

ROUNDS = 10


def check(given: Given, kind: str) -> Found:
    """``kind``: fp8 (with graphs, as a plan has it) or eager (which must be told, since it costs a lot)."""
    if "vllm" not in given.pythons:
        return Found(skipped="no environment of vllm")
    if "vllm" not in given.models:
        return Found(skipped="no model for vllm")
    on_card = not given.rehearsal
    options = {
        **manifest("vllm")["options"],
        "context_length": 1024,
        "kv_cache_memory_bytes": KV_BYTES,
        "cuda_graphs": kind == "fp8",
        "quantization": "fp8_per_tensor" if kind == "fp8" and on_card else "none",
    }
    values = {
        "device": f"cuda:{given.card}" if on_card else "cpu",
        "options": json.dumps(options),
        "cache": str(given.made("vllm-cache")),
    }
    found = Found()
    counted_on = {name: options[name] for name in ("context_length", "kv_cache_memory_bytes")}
    planned = facts_step.planned(given, found, "llm", "vllm", counted_on)
    before = card.used_mib(given)
    with running("vllm", given, READY_S[kind], **values) as engine:
        ready = card.used_mib(given)
        name = "vllm-check"
        answers = [chat(engine.socket, name, f"{n}. What is the capital of Korea?") for n in range(ROUNDS)]
    facts: dict[str, Any] = {
        "ready_s": round(engine.ready_s, 1),
        "report": engine.report,
        "options": options,
        "first_token_ms": distribution([first for first, _, _ in answers]),
        "answer_ms": distribution([whole for _, whole, _ in answers]),
        "said": [said for _, _, said in answers],
        "planned": planned,
        "used_mib": {"before": before, "ready": ready, "behind": card.left_mib(given, before)},
    }
    report = engine.report
    told = {key: report.get(key) for key in ("device", "dtype", "quantization", "cuda_graphs", "graph_mode")}
    print(f"ready after {facts['ready_s']} s; {told}")
    print(f"it says: {facts['said'][0]!r}")
    return Found(found.differs + (judged(kind, facts) if on_card else []), facts=facts)


def judged(kind: str, facts: dict[str, Any]) -> list[str]:
    """What is not as it was asked for."""
    report, found = facts["report"], []
    if not str(report["device"]).startswith("cuda"):
        found.append(f"computes on {report['device']}")
    if kind == "fp8":
        if not str(report.get("quantization")).startswith("fp8"):
            found.append(f"FP8 was asked for, {report.get('quantization')} is told")
        if report.get("cuda_graphs") is not True or report.get("graph_mode") in {None, "eager", "none"}:
            found.append(f"graphs: {report.get('cuda_graphs')}, {report.get('graph_mode')}")
        found.extend(f"{name}: {why}" for name, why in report.get("why", {}).items())
    elif report.get("cuda_graphs") is not False or report.get("graph_mode") != "eager":
        found.append(f"eager is not told: {report.get('cuda_graphs')}, {report.get('graph_mode')}")
    found.extend(open_to(report))
    if report["weight_loads"] != 1:
        found.append(f"weights were loaded {report['weight_loads']} times")
    if not all(facts["said"]):
        found.append("an answer was empty")
    return found
