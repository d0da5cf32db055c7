from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from tests.engine_contract.exercise import exercise_for
from tests.engine_contract.launched import Launched, Prepared
from tests.engine_contract.tracing import opened_to_write, opens, outside, reached, sockets, strace

from ondam.airgap.trace import Trace

REQUESTS = 20

WATCHED_S = 11.0
"""Reporters gather before they send: onnxruntime's first attempt came 9 s after the start."""

SEVERAL_PROCESSES = {"vllm"}
"""Engines that compute in processes of their own, started once, before the first answer."""

STARTING_OPENS = 4
"""To look at the head of the weights, to load them, to hash them for the report: each has its way."""

TRANSFORMERS_OPENS = 12
"""It maps the file anew for its head, its types, what is missing, …: nine times, and reads it once."""


@pytest.mark.timeout(300)
async def test_weights_are_read_at_the_start_alone_and_nothing_looks_outside(
    prepared: Prepared, tmp_path: Path
) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    began = time.monotonic()
    with Launched(prepared, tmp_path, before=strace(traces)) as engine:
        exercise = exercise_for(engine)
        await exercise.short()
        until_ready = Trace.read(traces)
        children = engine.children()
        for _ in range(REQUESTS):
            await exercise.short()
        await asyncio.sleep(max(0.0, began + WATCHED_S - time.monotonic()))
        assert engine.alive()
        report = engine.report()
        whole = Trace.read(traces)
        assert engine.children() == children, "a process was started for a request"
    assert outside(whole) == []
    if prepared.folder.manifest.launch.network == "none":
        # Although nothing would have kept it from making one: traced, an engine is not cut off.
        assert (reached(whole), sockets(whole)) == ([], [])
    assert children == [] or engine.name in SEVERAL_PROCESSES
    if report["model"] is not None:
        weights = Path(report["model"]["path"])
        print(f"{engine.name}: weights opened {opens(until_ready, weights)} times until ready")
        allowed = TRANSFORMERS_OPENS if "transformers" in report["versions"] else STARTING_OPENS
        assert 1 <= opens(until_ready, weights) <= allowed
        assert opens(whole, weights) == opens(until_ready, weights)
        assert opened_to_write(whole, weights.parent) == set()
    assert opened_to_write(whole, prepared.data.environments) == set()


async def test_asked_to_end_when_idle_it_ends(prepared: Prepared, tmp_path: Path) -> None:
    with Launched(prepared, tmp_path) as engine:
        await exercise_for(engine).short()
        status, seconds = engine.terminate()
    assert (status, engine.socket.exists()) == (0, False)
    assert seconds < 2


async def test_b30_asked_to_end_in_the_middle_of_a_job_it_ends(prepared: Prepared, tmp_path: Path) -> None:
    with Launched(prepared, tmp_path) as engine:
        begun = asyncio.Event()
        job = asyncio.create_task(exercise_for(engine).long(begun))
        await begun.wait()
        status, seconds = engine.terminate()
        job.cancel()
        await asyncio.wait([job])
    assert (status, engine.socket.exists()) == (0, False)
    assert seconds < 2


def test_b30_asked_to_end_while_it_loads_it_ends(prepared: Prepared, tmp_path: Path) -> None:
    engine = Launched(prepared, tmp_path)
    engine.begin()
    try:
        time.sleep(0.2)
        if engine.listening():
            pytest.skip("it loads too quickly to be interrupted")
        status, seconds = engine.terminate()
    finally:
        engine.end()
    # 0, or the signal itself where the interpreter had no say yet.
    assert status in {0, -signal.SIGTERM}
    assert seconds < 2
    assert not engine.socket.exists()


async def test_a_socket_that_a_dead_process_left_is_no_hindrance(prepared: Prepared, tmp_path: Path) -> None:
    engine = Launched(prepared, tmp_path)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(engine.socket))
        dead.listen()
    assert engine.socket.exists()
    with engine:
        await exercise_for(engine).short()


async def test_a_socket_that_somebody_answers_on_is_not_taken(
    prepared: Prepared, engine: Launched, tmp_path: Path
) -> None:
    second = Launched(prepared, engine.socket.parent)
    second.begin()
    try:
        assert second.process.wait(timeout=60) != 0
    finally:
        second.end()
    assert engine.report()["pid"] == engine.pid
    await exercise_for(engine).short()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the warden does it, see its own tests")
def test_b26_when_its_parent_is_killed_it_dies(prepared: Prepared, tmp_path: Path) -> None:
    engine = Launched(prepared, tmp_path)
    launch = asdict(prepared.launch(tmp_path)) | {"log": str(engine.log)}
    command = [sys.executable, "-m", "tests.engine_contract.parent", json.dumps(launch, default=str)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            child = psutil.Process(int(parent.stdout.readline()))
            deadline = time.monotonic() + prepared.folder.manifest.readiness.timeout_s
            while not engine.listening():
                assert child.is_running()
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            parent.kill()
    child.wait(timeout=2)
