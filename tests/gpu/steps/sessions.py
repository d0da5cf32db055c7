"""The four sessions of Supertonic on one provider: they have what was asked for, or say why not."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.gpu import card
from tests.gpu.engine import environment
from tests.gpu.step import ROOT, Found, Given
from tests.gpu.steps.warming import CACHE

INSIDE = ROOT / "tests" / "gpu" / "inside" / "sessions.py"

NEAR = 0.05
"""Largest difference from the processor's numbers, which are of the order of 1: a card multiplies in TF32,
with ten bits of fraction. A graph that computes something else is off by more."""


def check(given: Given, kind: str) -> Found:
    """``kind``: cpu, cuda or tensorrt."""
    if "supertonic" not in given.pythons:
        return Found(skipped="no environment of supertonic")
    if "supertonic" not in given.models:
        return Found(skipped="no stand-in for Supertonic's model")
    told = {
        "model": given.models["supertonic"],
        "device": kind if kind == "cpu" else f"{kind}:{given.card}",
        "threads": given.threads,
        # What ``warming`` built, so that nothing is built twice.
        "cache": str(next(given.made(CACHE).glob("*/warmed.json"), given.made("sessions") / "-").parent),
        "outputs": str(given.made("outputs")),
        "binding": str(card.NVML),
    }
    done = subprocess.run(
        [given.pythons["supertonic"], "-P", str(INSIDE), json.dumps(told)],
        env=environment(given),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    for line in lines[:-1]:
        print(line)
    if done.returncode != 0:
        return Found(differs=[f"{kind}: the sessions' process ended with status {done.returncode}"])
    facts: dict[str, Any] = json.loads(lines[-1])
    return judged(kind, facts, given)


def judged(kind: str, facts: dict[str, Any], given: Given) -> Found:
    """What of it is as it should be."""
    found = Found(facts=facts)
    expected = facts["providers_of"][kind][0]
    refused = {name: one["refused"] for name, one in facts["sessions"].items() if one["refused"]}
    for name, why in refused.items():
        print(f"{name}: refused: {why}")
        instead = facts["sessions"][name]["instead"]
        if not instead["why"]:
            found.differs.append(
                f"{name}: opened on {instead['device']} instead of {kind}, and does not say why"
            )
    if given.rehearsal and kind != "cpu":
        opened = sorted(set(facts["sessions"]) - set(refused))
        if opened:
            found.differs.append(f"{', '.join(opened)}: opened on {kind}, where there is no card")
        return found
    if refused and kind == "tensorrt" and not given.tensorrt:
        # As it must: refused in words, not computed elsewhere in silence.
        return Found(found.differs, f"TensorRT is not here: {next(iter(refused.values()))}", facts)
    found.differs.extend(f"{name}: refused: {why}" for name, why in refused.items())
    for name, one in facts["sessions"].items():
        if one["refused"]:
            continue
        print(f"{name}: {', '.join(one['providers'])}; nodes {one['nodes']}; {one['run_ms']} ms")
        if one["providers"][0] != expected:
            found.differs.append(f"{name}: {one['providers'][0]} instead of {expected}")
        if one["nodes"] and not one["nodes"].get(expected):
            found.differs.append(f"{name}: no operator runs on {expected}: {one['nodes']}")
        if one["strayed"]:
            found.differs.append(f"{name}: the processor computes {', '.join(one['strayed'])}")
        if not one["finite"]:
            found.differs.append(f"{name}: what it computes is no number")
        if one["off_by"] is not None and one["off_by"] > NEAR:
            found.differs.append(f"{name}: {one['off_by']:.3g} away from what the processor computes")
    before, after = facts["used_mib"]
    if kind != "cpu" and not refused and before is not None and after <= before:
        found.differs.append(f"the card holds {after} MiB with the sessions, {before} without")
    return found
