"""Memory on the card: what each engine said, what the driver counted, what the plan counts with. Pure."""

from __future__ import annotations

from typing import Any

from tests.gpu.step import Found, Given

OF_SAID, AT_LEAST_MIB = 0.1, 96
"""How far an engine's word and the card's own sum may be apart: the driver keeps some for itself, once."""

OVER, OVER_MIB = 0.05, 512
"""Over its share, as the supervisor allows: docs/engines.md, "What is compared"."""

LEFT_MIB = 64
"""That may stay when an engine has ended."""


def check(given: Given) -> Found:
    """From what the steps before have found; nothing is started."""
    if given.rehearsal:
        return Found(skipped="no card: nothing to hold the plan against")
    voice = given.earlier.get("facts", {}).get("facts", {}).get("planned")
    found = Found(facts={"engines": {}})
    for step, one in given.earlier.items():
        used = one["facts"].get("used_mib")
        if not isinstance(used, dict) or used["before"] is None or step.endswith(":cpu"):
            continue
        said = one["facts"]["report"].get("gpu_memory_mib")
        counted = used.get("asked", used["ready"]) - used["before"]
        planned = on_card(voice if step.startswith("speech") else one["facts"].get("planned"))
        left = used["behind"] - used["before"]
        row = {"said_mib": said, "counted_mib": counted, "left_mib": left, "planned_gib": planned}
        found.facts["engines"][step] = row
        print(f"{step}: {row}")
        found.differs.extend(judged(step, row))
    if not found.facts["engines"] and not found.differs:
        return Found(skipped="no engine ran on the card", facts=found.facts)
    return found


def on_card(planned: dict[str, Any] | None) -> float | None:
    """GiB that the plan counts it for on a card; None where it puts it on none."""
    return planned["memory_gib"] if planned and str(planned["device"]).startswith("cuda") else None


def judged(step: str, row: dict[str, Any]) -> list[str]:
    """Differences, in sentences."""
    said, counted, found = row["said_mib"], row["counted_mib"], []
    # None: a container whose process ids are not the machine's. The card's own sum stands then.
    if said is not None and abs(said - counted) > max(AT_LEAST_MIB, OF_SAID * said):
        found.append(f"{step}: the engine says {said} MiB, the card {counted} MiB")
    if row["planned_gib"] is None:
        found.append(f"{step}: the plan puts it on no card: its memory can be held against nothing")
    else:
        share = row["planned_gib"] * 1024
        most = max(said or 0, counted)
        if most > share + max(OVER * share, OVER_MIB):
            found.append(f"{step}: {most} MiB where the plan counts {share:.0f} MiB")
    if row["left_mib"] > LEFT_MIB:
        found.append(f"{step}: {row['left_mib']} MiB are not given back")
    return found
