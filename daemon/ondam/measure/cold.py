"""A process per utterance against the resident engine: the same jobs, pair by pair, in one run.

Both run the engine's own code with the same model, threads and options. A process per utterance starts
Python, imports, loads the weights (from the page cache, after the pair that is not counted), does one job and
ends; it does no warm-up. The resident engine is asked over its own socket, without the daemon.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, TypeAlias

from ondam.clients.json_text import json_object, number_at
from ondam.errors import EngineError
from ondam.measure.distribution import distribution
from ondam.supervisor.leash import leashed
from ondam.supervisor.process import Launch
from ondam.types import Audio

Stage: TypeAlias = Literal["stt", "tts"]

LONGEST_S = 300.0
"""Loading a large model from a slow disk, and one utterance."""

TAIL_LINES = 6
"""Of what a process that failed has said."""


@dataclass(frozen=True, slots=True)
class Job:
    """One utterance for each stage."""

    name: str
    audio: Audio
    """At 16 kHz: what is written down."""
    words: str
    """What is spoken."""


@dataclass(frozen=True, slots=True)
class Alone:
    """What a process of its own took."""

    ms: float
    """From its start to its end."""
    load_ms: float | None = None
    engine_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Sides:
    """The two ways to do a stage's job."""

    engine: str
    resident: Callable[[Job], Awaitable[None]]
    """Returns when all of the answer is there."""
    alone: Callable[[Job], Awaitable[Alone]]


@dataclass(frozen=True, slots=True)
class Pair:
    """One job, done both ways right after each other."""

    clip: str
    resident_ms: float
    alone: Alone

    @property
    def times(self) -> float:
        """How many times as long the process takes."""
        return self.alone.ms / self.resident_ms

    def as_json(self) -> dict[str, Any]:
        """An entry of ``pairs``."""
        return {
            "clip": self.clip,
            "resident_ms": round(self.resident_ms, 1),
            "process_ms": round(self.alone.ms, 1),
            "load_ms": _round(self.alone.load_ms),
            "engine_ms": _round(self.alone.engine_ms),
            "times": round(self.times, 2),
        }


@dataclass(slots=True)
class Cold:
    """What was measured, by stage."""

    engines: Mapping[Stage, str]
    pairs: dict[Stage, list[Pair]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """``stt`` and ``tts``, each None where it was not measured."""
        return {stage: self._stage(stage) for stage in ("stt", "tts")}

    def _stage(self, stage: Literal["stt", "tts"]) -> dict[str, Any] | None:
        pairs = self.pairs.get(stage)
        if not pairs:
            return None
        times = [pair.times for pair in pairs]
        return {
            "engine": self.engines[stage],
            "resident_ms": distribution(pair.resident_ms for pair in pairs),
            "process_ms": distribution(pair.alone.ms for pair in pairs),
            "process_load_ms": distribution(pair.alone.load_ms for pair in pairs),
            "process_engine_ms": distribution(pair.alone.engine_ms for pair in pairs),
            "times_as_long": {
                "median": round(median(times), 2),
                "min": round(min(times), 2),
                "max": round(max(times), 2),
                "n": len(times),
            },
            "pairs": [pair.as_json() for pair in pairs],
        }


async def measure(
    sides: Mapping[Stage, Sides],
    jobs: Sequence[Job],
    *,
    pairs: int,
    settle: int = 1,
    clock: Callable[[], int] = time.monotonic_ns,
    tick: Callable[[], None] = lambda: None,
) -> Cold:
    """``pairs`` of each stage after ``settle`` that do not count. Raises EngineError when a side fails."""
    made = Cold({stage: side.engine for stage, side in sides.items()})
    for number in range(-settle, pairs):
        job = jobs[number % len(jobs)]
        for stage, side in sides.items():
            pair = await _pair(side, job, clock, alone_first=number % 2 == 1)
            if number >= 0:
                made.pairs.setdefault(stage, []).append(pair)
        tick()
    return made


async def _pair(side: Sides, job: Job, clock: Callable[[], int], *, alone_first: bool) -> Pair:
    # Every second pair the other way round, so that drift favours nobody.
    alone = await side.alone(job) if alone_first else None
    began = clock()
    await side.resident(job)
    resident_ms = (clock() - began) / 1e6
    return Pair(job.name, resident_ms, alone or await side.alone(job))


async def run_once(
    launch: Launch,
    given: bytes,
    *,
    longest_s: float = LONGEST_S,
    clock: Callable[[], int] = time.monotonic_ns,
) -> Alone:
    """Start ``launch``, hand it ``given``, wait for its end. Cancelled, or too slow, it is killed.

    Raises EngineError ``cold_failed`` with the end of what it said.
    """
    began = clock()
    process = await asyncio.create_subprocess_exec(
        *leashed(launch.command, launch.network, required=launch.required),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # Without the marks: the daemon must not take it for an engine of its own that was left over.
        env={name: value for name, value in launch.env.items() if name not in launch.marks},
        start_new_session=True,
    )
    try:
        out, errors = await asyncio.wait_for(process.communicate(given), longest_s)
    except TimeoutError as error:
        raise EngineError("cold_slow", engine=launch.name, seconds=round(longest_s)) from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    took = (clock() - began) / 1e6
    try:
        # The last line: what a library prints comes before it.
        told = json_object(out.strip().rpartition(b"\n")[2])
        parts = number_at(told, "load_ms"), number_at(told, "engine_ms")
    except ValueError as error:
        lines = errors.decode("utf-8", "replace").strip().splitlines()[-TAIL_LINES:]
        facts = {"engine": launch.name, "status": process.returncode, "tail": "\n".join(lines)}
        raise EngineError("cold_failed", **facts) from error
    return Alone(took, *parts)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
