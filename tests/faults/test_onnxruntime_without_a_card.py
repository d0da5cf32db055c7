"""CUDA and TensorRT asked of an onnxruntime on a machine that has none, in an engine of its own process.

Always with the onnxruntime of the daemon, a build for the CPU; where ``ONDAM_TEST_ONNXRUNTIME_GPU`` names a
Python that has onnxruntime-gpu (``script/test`` makes one), with that as well, if no NVIDIA driver is here.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.engine.rig import Rig, planned
from tests.fakes.tiny_network import MATMUL_RELU

import ondam_engines
from ondam.messages import message
from ondam.places import Places
from ondam.planner.plan import PlannedEngine, Policy

WITH_GPU = os.environ.get("ONDAM_TEST_ONNXRUNTIME_GPU", "")


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


PYTHONS = {"the build for the CPU": sys.executable}
if WITH_GPU and not has_driver():
    PYTHONS["the build for CUDA"] = WITH_GPU


@pytest.fixture(params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    return PYTHONS[request.param]


def engine(tmp_path: Path, device: str, provider: str, policy: Policy) -> PlannedEngine:
    network = tmp_path / "network.onnx"
    network.write_bytes(MATMUL_RELU)
    kit = str(Path(next(iter(ondam_engines.__path__))).parent)
    wishes: dict[str, Any] = {"onnx": str(network), "kit": kit, "provider": provider}
    return planned("tts", policy=policy, device=device, **wishes)


@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
async def test_where_the_plan_warns_it_runs_on_the_cpu_and_says_so_with_the_cause(
    home: Places, tmp_path: Path, provider: str, python: str
) -> None:
    async with Rig(home, engine(tmp_path, "cuda:0", provider, "warn"), python=python) as rig:
        await rig.start()
        (status,) = rig.fleet.status()
        assert (status.state, status.fit, status.device) == ("ready", "differs", "cpu")
        assert status.report is not None
        assert status.report["nodes"] == {"main": {"CPUExecutionProvider": 2}}
        (fault,) = status.faults
        assert fault.code == "engine_lost_gpu"
        text = message(fault.code, "en", **fault.facts).text
        cause = "no NVIDIA driver" if python == WITH_GPU else "is a build without"
        assert f"runs on the CPU: no {provider}: " in text and cause in text


@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
async def test_where_the_plan_requires_it_is_refused_with_the_cause(
    home: Places, tmp_path: Path, provider: str, python: str
) -> None:
    async with Rig(home, engine(tmp_path, "cuda:0", provider, "require"), python=python) as rig:
        await rig.start()
        (status,) = rig.fleet.status()
        assert (status.state, status.fit, status.pid) == ("failed", "refused", None)
        assert [fault.code for fault in status.faults] == ["engine_refused_by_plan", "engine_lost_gpu"]
        refused = message(status.faults[0].code, "en", **status.faults[0].facts)
        assert f"runs on the CPU: no {provider}: " in refused.text


async def test_the_cpu_where_it_was_asked_for_is_no_fault(home: Places, tmp_path: Path, python: str) -> None:
    async with Rig(home, engine(tmp_path, "cpu", "cuda", "require"), python=python) as rig:
        await rig.start()
        (status,) = rig.fleet.status()
        assert (status.state, status.fit, status.faults) == ("ready", "as_planned", ())
