"""A process per utterance against the resident engine."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ondam.errors import EngineError
from ondam.measure.cold import Alone, Job, Sides, measure, run_once
from ondam.supervisor.process import Launch
from ondam.types import HEARING_RATE_HZ, Audio

JOBS = [Job(name, Audio(np.zeros(1600, np.int16), HEARING_RATE_HZ), name) for name in "ab"]


class Scripted:
    """Its resident side takes ``resident_ms`` on a clock that only it moves."""

    def __init__(self, resident_ms: list[float], process_ms: list[float]) -> None:
        self.now_ns = 0
        self.order: list[str] = []
        self._resident = iter(resident_ms)
        self._process = iter(process_ms)

    async def resident(self, job: Job) -> None:
        self.order.append(f"resident {job.name}")
        self.now_ns += round(next(self._resident) * 1e6)

    async def alone(self, job: Job) -> Alone:
        self.order.append(f"process {job.name}")
        return Alone(next(self._process), 40.0, 10.0)


async def test_the_ratio_is_that_of_pairs_and_not_of_medians() -> None:
    side = Scripted([99, 10, 20, 100], [99, 100, 100, 100])
    made = await measure(
        {"stt": Sides("whisper", side.resident, side.alone)}, JOBS, pairs=3, clock=lambda: side.now_ns
    )
    told = made.as_json()["stt"]
    assert told["engine"] == "whisper"
    assert [pair["times"] for pair in told["pairs"]] == [10, 5, 1]
    assert told["times_as_long"] == {"median": 5, "min": 1, "max": 10, "n": 3}
    assert (told["resident_ms"]["p50"], told["process_ms"]["p50"]) == (20, 100)
    assert made.as_json()["tts"] is None


async def test_each_pair_is_one_job_and_the_sides_take_turns_at_being_first() -> None:
    side = Scripted([1] * 3, [1] * 3)
    await measure({"stt": Sides("w", side.resident, side.alone)}, JOBS, pairs=3, settle=0, clock=lambda: 0)
    assert side.order == [
        *("resident a", "process a"),
        *("process b", "resident b"),
        *("resident a", "process a"),
    ]


def launch(tmp_path: Path, code: str) -> Launch:
    marks = {"ONDAM_INSTANCE": "x"}
    env = {"PATH": "/usr/bin:/bin", **marks}
    return Launch("scripted", [sys.executable, "-c", code], env, marks, tmp_path, tmp_path / "pid")


async def test_a_process_is_given_its_job_and_tells_its_own_times(tmp_path: Path) -> None:
    code = (
        "import json, os, sys; given = sys.stdin.buffer.read(); print('noise of a library');"
        "assert 'ONDAM_INSTANCE' not in os.environ;"
        "print(json.dumps({'load_ms': len(given), 'engine_ms': 2}))"
    )
    done = await run_once(launch(tmp_path, code), b"12345")
    assert (done.load_ms, done.engine_ms) == (5, 2)
    assert done.ms > 5


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit('no such model')",
        "import sys; sys.stderr.write('no such model')",
        "import sys; sys.stderr.write('no such model'); print('[1]')",
    ],
)
async def test_a_process_that_does_not_do_its_job_says_why(tmp_path: Path, code: str) -> None:
    with pytest.raises(EngineError, match="no such model") as raised:
        await run_once(launch(tmp_path, code), b"")
    assert raised.value.code == "cold_failed"


async def test_a_process_that_never_ends_is_killed(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as raised:
        await run_once(launch(tmp_path, "import time; time.sleep(60)"), b"", longest_s=0.2)
    assert raised.value.code == "cold_slow"
