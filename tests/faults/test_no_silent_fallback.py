"""An engine that lies about each thing it was asked for: seen at its start and after every restart.

The engine is a real process on a real socket; what it says is compared by the daemon's own supervisor.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.engine.rig import Rig, planned, settings, until

from ondam.messages import message
from ondam.places import Places
from ondam.planner.plan import OutsideEngine, Plan, PlannedEngine, Policy
from ondam.supervisor import keeper
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.status import EngineStatus

GPU = "cuda:0"

ON_GPU: dict[str, Any] = {
    "providers": {"main": ["CUDAExecutionProvider", "CPUExecutionProvider"]},
    "nodes": {"main": {"CUDAExecutionProvider": 90, "CPUExecutionProvider": 10}},
    "dtype": "bfloat16",
    "quantization": "fp8",
    "kv_dtype": "fp8_e4m3",
    "cuda_graphs": True,
    "graph_mode": "full_and_piecewise",
    "context_length": 8192,
    "gpu_memory_mib": 10 * 1024,
}
"""The truth, where everything that ``ASKED`` asks for was had."""

ASKED: dict[str, Any] = {
    "dtype": "bf16",
    "kv_dtype": "fp8",
    "cuda_graphs": True,
    "context_length": 8192,
}


@dataclass(frozen=True)
class Lie:
    report: dict[str, Any]
    """Laid over the truth."""
    code: str
    says: str
    """A part of the sentence that a person reads."""
    asked: dict[str, Any] = dataclasses.field(default_factory=dict)


LIES = {
    "device": Lie(
        {"device": "cpu", "providers": {"main": ["CPUExecutionProvider"]}, "why": {"main": "no driver"}},
        "engine_lost_gpu",
        "was to run on the graphics card (cuda:0) and runs on the CPU: no driver",
    ),
    "another card": Lie({"device": "cuda:1"}, "engine_differs_device", "on cuda:0 and runs on cuda:1"),
    "no device": Lie({"device": None}, "engine_differs_device", "runs on nothing that it reports"),
    "provider": Lie(
        {"providers": {"main": ["CUDAExecutionProvider"], "vocoder": ["CPUExecutionProvider"]}},
        "engine_differs_provider",
        "vocoder was to be computed by cuda:0 and is computed by CPUExecutionProvider",
    ),
    "no provider": Lie({"providers": {"main": []}}, "engine_differs_provider", "by nothing that it reports"),
    "a provider that nobody knows": Lie(
        {"providers": {"main": ["QuantumExecutionProvider"]}},
        "engine_differs_provider",
        "is computed by QuantumExecutionProvider",
    ),
    "memory in quotes": Lie({"gpu_memory_mib": "1"}, "engine_report_broken", "gpu_memory_mib: Input"),
    "memory that is no number": Lie({"gpu_memory_mib": float("nan")}, "engine_report_broken", "NaN is no"),
    "memory below zero": Lie({"gpu_memory_mib": -1}, "engine_report_broken", "gpu_memory_mib: Input"),
    "loads below zero": Lie({"weight_loads": -1}, "engine_report_broken", "weight_loads: Input should be"),
    "no TensorRT": Lie(
        {"why": {"main": "no tensorrt: libnvinfer.so.10: cannot open shared object file"}},
        "engine_differs_provider",
        "by tensorrt and is computed by CUDAExecutionProvider: no tensorrt: libnvinfer.so.10",
        {"provider": "tensorrt"},
    ),
    "nodes": Lie(
        {"nodes": {"main": {"CUDAExecutionProvider": 40, "CPUExecutionProvider": 60}}},
        "engine_differs_nodes",
        "60 of the 100 operators of main are not computed by cuda:0; most by CPUExecutionProvider",
    ),
    "strays": Lie(
        {"why": {"main": "on the CPU: LSTM ×2"}}, "engine_tells", "not as asked (main): on the CPU: LSTM ×2"
    ),
    "dtype": Lie({"dtype": "float32"}, "engine_differs_dtype", "compute in bf16 and computes in float32"),
    "quantization": Lie({"quantization": None}, "engine_differs_quantization", "fp8 and are nothing that"),
    "graphs": Lie(
        {"cuda_graphs": False, "graph_mode": "eager", "why": {"cuda_graphs": "enforce_eager"}},
        "engine_lost_graphs",
        "without the CUDA graphs that were asked for: enforce_eager: every token pays",
    ),
    "eager under another name": Lie({"graph_mode": "eager"}, "engine_lost_graphs", "without the CUDA graphs"),
    "graphs untold": Lie({"cuda_graphs": None}, "engine_lost_graphs", "without the CUDA graphs"),
    "graph mode": Lie(
        {"graph_mode": "piecewise"},
        "engine_differs_graphs",
        "piecewise instead of full",
        {"graph_mode": "full"},
    ),
    "kv": Lie({"kv_dtype": "bf16"}, "engine_differs_kv", "cache of the engine llm was to be fp8 and is bf16"),
    "context": Lie({"context_length": 4096}, "engine_differs_context", "8192 tokens of context and holds 4"),
    "memory": Lie({"gpu_memory_mib": 10_800}, "engine_differs_memory", "10.5 GiB on the graphics card; 10.0"),
    "no memory": Lie({"gpu_memory_mib": 0}, "engine_not_on_card", "holds only 0.0 GiB there"),
    "loads": Lie({"weight_loads": 2}, "engine_weight_loads", "loaded weights 2 times instead of 1"),
    "loads untold": Lie({"weight_loads": None}, "engine_loads_untold", "how often it loaded weights"),
    "model": Lie({"model": {"sha256": "f" * 64}}, "engine_wrong_model", "loaded other weights"),
    "threads": Lie({"threads": 8}, "engine_differs", "threads should be 1 and is 8"),
    "schema": Lie({"schema": 9}, "engine_report_broken", "not schema 1"),
}  # fmt: skip


def asked(tmp_path: Path, policy: Policy, lie: Lie | None = None, **options: Any) -> PlannedEngine:
    weights = tmp_path / "weights"
    weights.touch()
    wishes = {**ASKED, **(lie.asked if lie else {}), **options}
    on_card: dict[str, Any] = {"device": GPU, "quantization": "fp8", "memory_gib": 10.0}
    return planned("llm", policy=policy, model=weights, sha256="0" * 64, **on_card, **wishes)


def only(rig: Rig) -> EngineStatus:
    (status,) = rig.fleet.status()
    return status


def codes(status: EngineStatus) -> list[str]:
    return [fault.code for fault in status.faults]


@pytest.mark.parametrize("policy", ["warn", "require"])
async def test_an_engine_that_got_what_was_asked_serves(home: Places, tmp_path: Path, policy: Policy) -> None:
    async with Rig(home, asked(tmp_path, policy, report=ON_GPU)) as rig:
        await rig.start()
        assert (only(rig).state, codes(only(rig)), only(rig).fit) == ("ready", [], "as_planned")


async def test_a_price_that_was_asked_for_is_shown_and_never_refused(home: Places, tmp_path: Path) -> None:
    eager = {**ON_GPU, "cuda_graphs": False, "graph_mode": "eager", "why": {"cuda_graphs": "eager mode"}}
    async with Rig(home, asked(tmp_path, "require", report=eager, cuda_graphs=False)) as rig:
        await rig.start()
        status = only(rig)
        assert (status.state, codes(status), status.fit) == ("ready", ["engine_graphs_off"], "as_planned")


@pytest.mark.parametrize("name", LIES)
async def test_a_lie_is_shown_where_the_plan_warns(home: Places, tmp_path: Path, name: str) -> None:
    lie = LIES[name]
    async with Rig(home, asked(tmp_path, "warn", lie, report={**ON_GPU, **lie.report})) as rig:
        await rig.start()
        status = only(rig)
        assert (status.state, codes(status), status.fit) == ("ready", [lie.code], "differs")
        assert rig.told == [lie.code]
        (fault,) = status.faults
        assert {"engine", "what", "wanted", "got", "why"} <= fault.facts.keys()
        english, korean = (message(fault.code, language, **fault.facts) for language in ("en", "ko"))
        assert lie.says in english.text
        assert english.next and korean.next and "{" not in korean.text + korean.next
        assert english.text in (home.logs / "engine-llm.log").read_text()


@pytest.mark.parametrize("name", LIES)
async def test_a_lie_is_refused_where_the_plan_requires(home: Places, tmp_path: Path, name: str) -> None:
    lie = LIES[name]
    async with Rig(home, asked(tmp_path, "require", lie, report={**ON_GPU, **lie.report})) as rig:
        await rig.start()
        status = only(rig)
        assert (status.state, status.pid, status.restarts, status.fit) == ("failed", None, 0, "refused")
        assert codes(status) == ["engine_refused_by_plan", lie.code]
        assert rig.fleet.engine("llm") is None
        told = message(status.faults[0].code, "en", **status.faults[0].facts)
        assert lie.says in told.text
        assert "ondam engines restart llm" in told.next


@pytest.mark.parametrize(
    "name", ["device", "no TensorRT", "graphs", "kv", "context", "memory", "loads", "quantization"]
)
async def test_what_is_lost_in_a_restart_is_seen_and_its_return_too(
    home: Places, tmp_path: Path, name: str
) -> None:
    lie = LIES[name]
    truth = {**ON_GPU, "providers": {"main": ["TensorrtExecutionProvider", "CUDAExecutionProvider"]}}
    truth["nodes"] = {}
    worse = {**ON_GPU, **lie.report, "nodes": {}}
    engine = asked(tmp_path, "warn", lie, reports=[truth, worse, truth], lives=str(tmp_path / "lives"))
    async with Rig(home, engine) as rig:
        await rig.start()
        assert codes(only(rig)) == []
        await killed(rig)
        assert (codes(only(rig))[0], only(rig).fit) == (lie.code, "differs")
        await killed(rig)
        assert (codes(only(rig)), only(rig).fit) == ([], "as_planned")
    assert rig.told.count(lie.code) == 1


async def test_a_gpu_that_is_lost_in_a_restart_is_refused_and_taken_again_when_it_is_back(
    home: Places, tmp_path: Path
) -> None:
    reports = [ON_GPU, {**ON_GPU, **LIES["device"].report}, ON_GPU]
    engine = asked(tmp_path, "require", reports=reports, lives=str(tmp_path / "lives"))
    async with Rig(home, engine) as rig:
        await rig.start()
        assert only(rig).state == "ready"
        os.kill(pid(rig), signal.SIGKILL)
        await until(lambda: only(rig).state == "failed")
        assert codes(only(rig)) == ["engine_refused_by_plan", "engine_lost_gpu"]
        assert rig.fleet.engine("llm") is None
        await rig.fleet.restart("llm")
        await until(lambda: only(rig).state == "ready")
        assert (codes(only(rig)), only(rig).fit) == ([], "as_planned")


TENSORRT = "TensorrtExecutionProvider"


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ({"providers": {"main": [TENSORRT]}}, {}, f"provider of main was {TENSORRT} and is CUDAExec"),
        ({"cuda_graphs": True}, {"cuda_graphs": False}, "CUDA graphs was True and is False"),
        ({"quantization": "fp8"}, {}, "quantisation was fp8 and is nothing that it reports"),
        ({"context_length": 8192}, {"context_length": 2048}, "context length was 8192 and is 2048"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["warn", "require"])
async def test_what_the_plan_leaves_open_may_not_get_worse_either(
    home: Places, tmp_path: Path, before: dict[str, Any], after: dict[str, Any], says: str, policy: Policy
) -> None:
    sessions = {"providers": {"main": ["CUDAExecutionProvider"]}}
    engine = planned(
        "llm", policy=policy, device=GPU, reports=[{**sessions, **before}, {**sessions, **after}],
        lives=str(tmp_path / "lives"),
    )  # fmt: skip
    async with Rig(home, engine) as rig:
        await rig.start()
        assert codes(only(rig)) == []
        os.kill(pid(rig), signal.SIGKILL)
        await until(lambda: "engine_worse" in codes(only(rig)) and only(rig).state in {"ready", "failed"})
        assert only(rig).state == ("ready" if policy == "warn" else "failed")
        fault = only(rig).faults[-1]
        assert says in message(fault.code, "en", **fault.facts).text
        # Started by a person, it is measured by its plan alone.
        await rig.fleet.restart("llm")
        await until(lambda: only(rig).state == "ready" and codes(only(rig)) == [])


@pytest.mark.parametrize("policy", ["warn", "require"])
async def test_an_engine_that_reports_nothing(
    home: Places, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "REPORT_WITHIN_S", 0.1)
    async with Rig(home, planned("tts", policy=policy, no_report=True)) as rig:
        await rig.start()
        status = only(rig)
        if policy == "warn":
            assert (status.state, codes(status), status.fit) == (
                "ready",
                ["engine_reports_nothing"],
                "unreported",
            )
        else:
            assert (status.state, status.fit) == ("failed", "refused")
            assert codes(status) == ["engine_refused_by_plan", "engine_reports_nothing"]


async def test_a_report_that_comes_late_ends_the_fault(home: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "REPORT_WITHIN_S", 0.1)
    async with Rig(home, planned("tts", no_report=True)) as rig:
        await rig.start()
        assert only(rig).fit == "unreported"
        report = {
            "schema": 1,
            "device": "cpu",
            "threads": 1,
            "weight_loads": 0,
            "model": None,
            "providers": {},
        }
        home.engine_report("tts").write_text(json.dumps(report))
        await until(lambda: (codes(only(rig)), only(rig).fit) == ([], "as_planned"))


async def test_a_server_by_address_is_used_and_marked_where_the_plan_warns_and_not_where_it_requires(
    home: Places,
) -> None:
    addresses = {"warn": f"unix://{home.runtime}/a.sock", "require": f"unix://{home.runtime}/b.sock"}
    fleet = Fleet(home, settings(), {})
    told: list[str] = []
    fleet.subscribe(lambda change: told.append(change.fault.code) if change.fault else None)
    outside = tuple(OutsideEngine("stt", address, policy=policy) for policy, address in addresses.items())  # type: ignore[arg-type]
    fleet.launch(Plan((), outside))
    try:
        await until(lambda: "engine_unreported_refused" in told)
        warned, refused = fleet.status()
        assert (warned.fit, refused.fit, refused.state) == ("unreported", "refused", "failed")
        assert "engine_unreported_refused" in codes(refused)
    finally:
        await fleet.stop()


def pid(rig: Rig) -> int:
    found = only(rig).pid
    assert found is not None
    return found


async def killed(rig: Rig) -> None:
    """The engine dies, and is back."""
    restarts = only(rig).restarts
    os.kill(pid(rig), signal.SIGKILL)
    await until(lambda: only(rig).restarts > restarts and only(rig).state == "ready")
