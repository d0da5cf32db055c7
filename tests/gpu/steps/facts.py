"""The machine as the planner sees it, held against what else can be asked, and what it would plan."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.gpu import card
from tests.gpu.step import ROOT, Found, Given

PLANNED_OR_MISSING = (0, 3)
"""Exit codes of ``ondam plan``: 3 says that a stage has nothing that fits, which is an answer."""


def check(given: Given) -> Found:
    """Facts by NVML, the plan by itself, and the plan with Supertonic's stand-in as the voice."""
    seen = card.seen(given)
    found = Found(facts={"nvml": seen, "nvidia_smi": smi()})
    if not given.rehearsal:
        found.differs.extend(against_smi(seen, found.facts["nvidia_smi"]))
        if not seen["cards"]:
            found.differs.append(f"NVML shows no card: {seen['reason']} {seen['detail']}")
    if "ondam" not in given.pythons:
        return Found(found.differs, "no Python with the packages of ondam", found.facts)
    found.facts["facts"] = facts = _ondam(given, found, "plan", "--facts")
    found.facts["plan"] = _ondam(given, found, "plan", "--json")
    if "supertonic" in given.models:
        found.facts["planned"] = planned(given, found, "tts", "supertonic", {})
    gpus = facts.get("gpus", [])
    print("cards:", ", ".join(f"{gpu['name']} {gpu['vram_gib']} GiB" for gpu in gpus) or "none")
    for stage in ("stt", "llm", "tts"):
        if one := found.facts["plan"].get(stage):
            print(f"{stage}: {one['engine']} {one['model']} on {one['device']}")
    if len(gpus) != len(seen["cards"]):
        found.differs.append(f"{len(seen['cards'])} cards in NVML, {len(gpus)} in the facts")
    for gpu in gpus:
        lacking = [name for name in ("driver", "compute_capability", "bandwidth_gb_s") if not gpu.get(name)]
        if lacking:
            found.differs.append(f"{gpu['name']}: the driver does not tell {', '.join(lacking)}")
        if gpu["free_gib"] > gpu["vram_gib"]:
            found.differs.append(f"{gpu['name']}: more is free than there is")
    return found


def planned(
    given: Given, found: Found, stage: str, engine: str, options: Mapping[str, object]
) -> dict[str, Any]:
    """What the plan counts ``engine`` with its stand-in and ``options`` for; {} where it has no place."""
    if "ondam" not in given.pythons:
        return {}
    model = given.models[engine]
    wishes = [f"{stage}.engine={engine}", f"{stage}.model={model}"]
    wishes += [f"engines.{engine}.{name}={value}" for name, value in options.items()]
    plan = _ondam(given, found, "plan", "--json", *(part for each in wishes for part in ("--set", each)))
    return plan.get(stage) or {}


def _ondam(given: Given, found: Found, *words: str) -> dict[str, Any]:
    """Its JSON; {} where it fails, which is a finding."""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("daemon", "engines", "ui"))
    done = subprocess.run(
        [given.pythons["ondam"], "-P", "-m", "ondam", *words],
        # A home of its own: no configuration and no models of whoever runs this.
        env={**os.environ, "PYTHONPATH": path, "ONDAM_HOME": str(given.made("home"))},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if done.returncode not in PLANNED_OR_MISSING:
        said = (done.stderr.strip().splitlines() or [""])[-1]
        found.differs.append(f"ondam {' '.join(words)} ended with {done.returncode}: {said}")
        return {}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def smi() -> list[dict[str, str]]:
    """The driver's own tool; empty where it is not there."""
    fields = "name,driver_version,memory.total,memory.used,compute_cap,clocks.max.mem"
    query = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = csv.reader(done.stdout.splitlines(), skipinitialspace=True)
    return [dict(zip(fields.split(","), row, strict=False)) for row in rows]


def against_smi(seen: dict[str, Any], told: list[dict[str, str]]) -> list[str]:
    """Where the driver's tool says something else of a card (slices have no line there)."""
    whole = [one for one in seen["cards"] if not one["uuid"].startswith("MIG-")]
    if not told or len(whole) != len(seen["cards"]):
        return []
    found = []
    if len(told) != len(whole):
        found.append(f"nvidia-smi shows {len(told)} cards, NVML {len(whole)}")
    for one, line in zip(whole, told, strict=False):
        pairs = {
            "name": (one["name"], line["name"]),
            "driver": (seen["driver"], line["driver_version"]),
            "total": (str(one["total_mib"]), line["memory.total"]),
            "compute capability": (one["compute_capability"], line["compute_cap"]),
        }
        for what, (ours, theirs) in pairs.items():
            if theirs and not theirs.startswith("[") and ours != theirs:
                found.append(f"{one['name']}: {what} is {ours} to us, {theirs} to nvidia-smi")
    return found
