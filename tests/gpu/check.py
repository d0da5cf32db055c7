"""What only a machine with an NVIDIA card can show: docs/gpu-check.md. Run by ``check.sh``.

Standard library alone; every step is a process with a time limit, and what was found is written after each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.gpu import card
from tests.gpu.step import ROOT, Found, Given, run
from tests.gpu.steps import equipment

HELD, DIFFERS, NO_GPU, UNFINISHED = 0, 1, 2, 3

WHOLE_S = 470.0
"""The whole run: under eight minutes."""

STEPS = {
    "equipment": 100.0,
    "facts": 60.0,
    "sessions:cpu": 40.0,
    "sessions:cuda": 60.0,
    "speech:cpu": 60.0,
    "speech:cuda": 60.0,
    "warming": 180.0,
    "speech:tensorrt": 60.0,
    "sessions:tensorrt": 60.0,
    "equipment:vllm": 100.0,
    "language:fp8": 160.0,
    "language:eager": 130.0,
    "memory": 10.0,
}
"""Name to its limit in seconds. In this order: each finds what those before it have found."""

LEAST_S = 5.0
"""With less than this left a step is not begun."""

LAST = "memory"
"""Judges what the others have counted: time is kept for it."""


@dataclass
class Run:
    """All steps, and the file that tells of them."""

    given: Given
    out: Path
    limit_s: float = WHOLE_S
    began: float = field(default_factory=time.monotonic)
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    """Steps for which no time was left."""
    conditions: dict[str, Any] = field(default_factory=dict)
    verdict: str = "unfinished"

    def all(self, wanted: Sequence[str]) -> int:
        """Every step; the exit code."""
        self.conditions = conditions(self.given)
        for name, limit_s in STEPS.items():
            if not asked_for(name, wanted):
                continue
            left_s = self.limit_s - (time.monotonic() - self.began)
            if name != LAST and asked_for(LAST, wanted):
                left_s -= STEPS[LAST]
            if left_s < LEAST_S:
                self.late.append(name)
                found, took = Found(skipped=f"no time left: {self.limit_s:.0f} s are over"), 0.0
            else:
                print(f"== {name} (at most {min(limit_s, left_s):.0f} s)", flush=True)
                found, took = run(name, replace(self.given, earlier=self.steps), min(limit_s, left_s))
            if name.startswith("equipment"):
                self.given = equipment.equipped(self.given, found)
            self.tell(name, found, took)
        return self.end()

    def tell(self, name: str, found: Found, took: float) -> None:
        """A step is over."""
        self.steps[name] = {"status": found.status, "seconds": round(took, 1), **asdict(found)}
        said = f": {found.skipped}" if found.status == "skipped" else ""
        print(f"   {name} {found.status}{said} ({took:.1f} s)", flush=True)
        for line in found.differs:
            print(f"   ! {line}", flush=True)
        self.write()

    def end(self) -> int:
        """The last lines, and the exit code."""
        by = {status: self.named(status) for status in ("held", "differs", "skipped")}
        self.verdict = "differs" if by["differs"] else "unfinished" if self.late else "held"
        if self.given.rehearsal:
            self.verdict = f"rehearsal without a card: {self.verdict}"
        self.write()
        print(f"\n{self.verdict}: " + "; ".join(f"{len(names)} {status}" for status, names in by.items()))
        for name in by["skipped"]:
            print(f"  not checked: {name}: {self.steps[name]['skipped']}")
        print(f"  {self.out} ({time.monotonic() - self.began:.0f} s)", flush=True)
        return DIFFERS if by["differs"] else UNFINISHED if self.late else HELD

    def named(self, status: str) -> list[str]:
        """Steps with that status."""
        return [name for name, step in self.steps.items() if step["status"] == status]

    def write(self) -> None:
        """What is known so far, whole or not at all."""
        told = {
            "verdict": self.verdict,
            "rehearsal": self.given.rehearsal,
            "seconds": round(time.monotonic() - self.began, 1),
            "conditions": self.conditions,
            "steps": self.steps,
        }
        self.out.parent.mkdir(parents=True, exist_ok=True)
        beside = self.out.with_name(f"{self.out.name}.new")
        beside.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
        beside.replace(self.out)


def asked_for(name: str, wanted: Sequence[str]) -> bool:
    """Whether ``name`` is asked for (as all are, if none is), or makes what one of those needs."""
    if name == "equipment:vllm":
        return not wanted or any(each.startswith("language") for each in wanted)
    return not wanted or name == "equipment" or name in wanted or name.partition(":")[0] in wanted


def conditions(given: Given) -> dict[str, Any]:
    """What the numbers were measured on; the card's own are in ``facts``."""
    names = [
        line.partition(":")[2].strip()
        for line in _text(Path("/proc/cpuinfo")).splitlines()
        if line.startswith("model name")
    ]
    return {
        "at": datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        "source": _source(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "cpu": names[0] if names else platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": given.threads,
        "load": [round(value, 2) for value in os.getloadavg()],
        "card": given.card,
        "carried": _text(Path(given.carry) / "contents.json")[:20_000],
    }


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _source() -> str:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "no git"
    return done.stdout.strip()


def no_gpu(given: Given, out: Path, why: str) -> int:
    """Said clearly, with what else is missing, and written down."""
    lacking = equipment.missing(given)
    print(f"no GPU: {why}")
    print("Nothing was checked. A run with a card also needs, and does not find here:")
    for line in lacking or ["nothing else"]:
        print(f"  - {line}")
    print("What a processor can rehearse: tests/gpu/check.sh --cpu")
    this = Run(given, out, verdict=f"no GPU: {why}", conditions={**conditions(given), "lacking": lacking})
    this.write()
    return NO_GPU


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Of the command line."""
    work = Path(tempfile.gettempdir()) / f"ondam-gpu-check-{os.getuid()}"
    parser = argparse.ArgumentParser(
        prog="tests/gpu/check.sh",
        description=__doc__,
        epilog="Exit codes: 0 all that could be checked held, 1 something differs, 2 no GPU, 3 unfinished.",
        allow_abbrev=False,
    )
    parser.add_argument("--cpu", action="store_true", help="a rehearsal: every step that a processor can do")
    parser.add_argument("--card", type=int, default=0, help="which card, counted by bus")
    parser.add_argument("--carry", type=Path, default=ROOT / "gpu-check", help="what carry.py packed")
    parser.add_argument("--work", type=Path, default=work, help="for what is built; may be used again")
    parser.add_argument("--out", type=Path, help="default: $OUT/gpu-check.json, else in the work folder")
    parser.add_argument("--limit", type=float, default=WHOLE_S, metavar="SECONDS", help="of the whole run")
    parser.add_argument("--threads", type=int, default=max(1, min(4, (os.cpu_count() or 2) // 2)))
    parser.add_argument(
        "--environment",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="Python of an environment that was made otherwise; ondam_engines must be found there",
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="STEP", help=", ".join(STEPS))
    given = parser.parse_args(argv)
    if unknown := set(given.only) - {*STEPS, *(name.partition(":")[0] for name in STEPS)}:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    if strange := [each for each in given.environment if each.partition("=")[0] not in equipment.NAMES]:
        parser.error(f"no such environment: {', '.join(strange)}; known are {', '.join(equipment.NAMES)}")
    given.out = given.out or Path(os.environ.get("OUT") or given.work) / "gpu-check.json"
    return given


def main(argv: Sequence[str] | None = None) -> int:
    """The whole check."""
    told = arguments(argv)
    given = Given(
        work=str(told.work.resolve()),
        carry=str(told.carry.resolve()),
        rehearsal=told.cpu,
        card=told.card,
        threads=told.threads,
        pythons=dict(each.split("=", 1) for each in told.environment if "=" in each),
    )
    out: Path = told.out.resolve()
    if told.cpu:
        print("A REHEARSAL on the processor: nothing here says anything about a card.", flush=True)
    elif why := card.why_none(told.card):
        return no_gpu(given, out, why)
    return Run(given, out, told.limit).all(told.only)


if __name__ == "__main__":
    sys.exit(main())
