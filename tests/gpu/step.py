"""One step of the check: a process of its own with a time limit, so that none stops the others.

    python -m tests.gpu.step NAME GIVEN.json FOUND.json

Standard library alone: a bare machine has nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[2]

Status = Literal["held", "differs", "skipped"]


@dataclass(frozen=True, slots=True)
class Given:
    """What every step is told."""

    work: str
    """Folder for all that is made."""
    carry: str
    """What ``carry.py`` packed, or a folder that is not there."""
    rehearsal: bool
    """On a processor: a request for a card is to be refused."""
    card: int
    threads: int
    pythons: dict[str, str] = field(default_factory=dict)
    """Name of an engine, or ``ondam``, to the Python of its environment."""
    models: dict[str, str] = field(default_factory=dict)
    """Name of an engine to what it is given instead of its model."""
    tensorrt: str = ""
    """Where TensorRT's libraries are, for people to read; empty where they are not."""
    earlier: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name of a step to what it found."""

    def made(self, name: str) -> Path:
        """A folder below ``work``, made if need be."""
        folder = Path(self.work) / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass(frozen=True, slots=True)
class Found:
    """What a step found."""

    differs: list[str] = field(default_factory=list)
    """Whatever is not as it should be, a sentence each."""
    skipped: str = ""
    """Why nothing could be checked, else empty."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """A difference counts also where the rest was skipped."""
        return "differs" if self.differs else "skipped" if self.skipped else "held"


def run(name: str, given: Given, limit_s: float) -> tuple[Found, float]:
    """Run the step ``name``; whatever happens to it, something was found. Also returns its seconds."""
    folder = given.made("steps")
    told, written = folder / f"{name}.given.json", folder / f"{name}.found.json"
    told.write_text(json.dumps(asdict(given)), "utf-8")
    written.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.gpu.step", name, str(told), str(written)]
    began = time.monotonic()
    status = watched(command, limit_s)
    took = time.monotonic() - began
    try:
        return Found(**json.loads(written.read_text("utf-8"))), took
    except (OSError, ValueError, TypeError):
        why = f"took longer than {limit_s:.0f} s" if status is None else f"ended with status {status}"
        return Found(differs=[f"the step {why}; what it said is above"]), took


def watched(command: list[str], limit_s: float, env: Mapping[str, str] | None = None) -> int | None:
    """Run in a group of its own and show each line as it comes. Its status; None where it ran out of time.

    Nothing of the group is left behind.
    """
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    relay = threading.Thread(target=_show, args=(process,), daemon=True)
    relay.start()
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # A process that the driver does not let go stays; it is not waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        relay.join(2)


def _show(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            print(f"    {line.rstrip()[:300]}", flush=True)


def main(name: str, told: Path, written: Path) -> None:
    """The step itself: ``speech:cuda`` is ``tests.gpu.steps.speech.check(given, "cuda")``."""
    given = Given(**json.loads(told.read_text("utf-8")))
    module, _, argument = name.partition(":")
    try:
        found = import_module(f"tests.gpu.steps.{module}").check(given, *([argument] if argument else []))
    except Exception as error:  # noqa: BLE001 - a step's own failure is a finding; the others go on
        traceback.print_exc()
        found = Found(differs=[f"the step failed: {type(error).__name__}: {error}"])
    beside = written.with_suffix(".new")
    beside.write_text(json.dumps(asdict(found)), "utf-8")
    beside.replace(written)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
