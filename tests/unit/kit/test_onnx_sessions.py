"""The real onnxruntime of the daemon (a build for the CPU), and a double of the one for CUDA.

The double falls back as onnxruntime-gpu 1.31 was seen to: without the library it hands over a session on the
CPU for CUDA, and raises for TensorRT.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fakes.tiny_network import MATMUL_RELU

from ondam_engines.kit import onnx_sessions
from ondam_engines.kit.onnx_sessions import ProviderRefused, open_session, parse_device

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(MATMUL_RELU)
    return path


def test_the_cpu_is_the_cpu_and_every_operator_is_there(model: Path) -> None:
    opened = open_session(model, device="cpu", threads=1)
    assert (opened.device, opened.providers, opened.instead) == ("cpu", [CPU], None)
    assert (opened.nodes, opened.loads) == ({CPU: 2}, 1)
    (y,) = opened.session.run(None, {"x": np.array([[1, 2, 3, 4]], np.float32)})
    assert y.tolist() == [[10, 10, 10, 10]]


@pytest.mark.parametrize("device", ["cuda:0", "tensorrt"])
def test_a_build_without_the_provider_is_refused_and_says_so(model: Path, device: str) -> None:
    with pytest.raises(ProviderRefused, match=r"build without (CUDA|Tensorrt)ExecutionProvider"):
        open_session(model, device=device, threads=1)


def test_where_it_may_fall_back_it_says_why(model: Path) -> None:
    opened = open_session(model, device="tensorrt:0", threads=1, fall_back=True)
    assert (opened.device, opened.providers) == ("cpu", [CPU])
    assert opened.instead is not None
    assert "TensorrtExecutionProvider" in opened.instead and "CUDAExecutionProvider" in opened.instead


def test_the_session_can_be_prepared(model: Path) -> None:
    seen: list[int] = []
    open_session(model, device="cpu", threads=3, prepare=lambda o: seen.append(o.intra_op_num_threads))
    assert seen == [3]


def test_a_missing_or_broken_model_is_no_question_of_the_device(model: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_session(model.with_name("CUDA.onnx"), device="cpu", threads=1)
    model.write_bytes(b"CUDA")
    with pytest.raises(Exception, match=r"(?i)protobuf") as caught:
        open_session(model, device="cpu", threads=1)
    assert not isinstance(caught.value, ProviderRefused)


@pytest.mark.parametrize("device", ["", "gpu", "cuda:x", "cuda:-1", "CUDA"])
def test_a_device_that_is_none_is_refused(device: str) -> None:
    with pytest.raises(ValueError, match="is no device"):
        parse_device(device)


def test_devices_have_numbers() -> None:
    assert [parse_device(d) for d in ("cpu", "cuda", "cuda:1", "tensorrt:2")] == [
        ("cpu", 0), ("cuda", 0), ("cuda", 1), ("tensorrt", 2)
    ]  # fmt: skip


@dataclass
class Gpu:
    """What a machine has, and what was asked of it."""

    works: tuple[str, ...] = (TENSORRT, CUDA)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {CUDA: ("MatMul", "Relu")})
    asked: list[tuple[list[tuple[str, dict[str, str]]], dict[str, str], int]] = field(default_factory=list)
    tells_nodes: bool = True

    def module(self) -> Any:
        gpu = self

        class SessionOptions:
            def __init__(self) -> None:
                self.entries: dict[str, str] = {}

            def add_session_config_entry(self, key: str, value: str) -> None:
                self.entries[key] = value

        class InferenceSession:
            def __init__(
                self,
                path: str,
                options: SessionOptions,
                *,
                providers: list[tuple[str, dict[str, str]]],
                enable_fallback: int,
            ) -> None:
                gpu.asked.append((providers, options.entries, enable_fallback))
                names = [name for name, _ in providers]
                if TENSORRT in names and TENSORRT not in gpu.works:
                    raise RuntimeError(
                        "Please install TensorRT libraries as mentioned in the requirements page"
                    )
                self._providers = [*(n for n in names if n in gpu.works), CPU] if names != [CPU] else [CPU]
                on_cpu = self._providers == [CPU] or CPU in gpu.places
                if on_cpu and options.entries.get("session.disable_cpu_ep_fallback") == "1":
                    raise RuntimeError("fallback to CPU EP has been explicitly disabled by the user.")

            def get_providers(self) -> list[str]:
                return self._providers

        def assignment(session: Any) -> list[Any]:
            places = {CPU: ("MatMul", "Relu")} if session.get_providers() == [CPU] else gpu.places
            return [
                SimpleNamespace(ep_name=provider, get_nodes=lambda kind=kind: [SimpleNamespace(op_type=kind)])
                for provider, kinds in places.items()
                for kind in kinds
            ]

        if self.tells_nodes:
            InferenceSession.get_provider_graph_assignment_info = assignment  # type: ignore[attr-defined]
        return SimpleNamespace(
            __file__="/nowhere/onnxruntime/__init__.py",
            __version__="1.31.1",
            cuda_version="13.0",
            get_available_providers=lambda: [TENSORRT, CUDA, CPU],
            SessionOptions=SessionOptions,
            InferenceSession=InferenceSession,
        )


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu()
    monkeypatch.setitem(sys.modules, "onnxruntime", gpu.module())
    monkeypatch.setattr(onnx_sessions, "driver_fault", lambda built_for: None)
    return gpu


def test_cuda_is_asked_for_alone_and_may_not_fall_back_later(gpu: Gpu, model: Path) -> None:
    opened = open_session(model, device="cuda:1", threads=1)
    ((providers, entries, enable_fallback),) = gpu.asked
    assert (providers, enable_fallback) == ([(CUDA, {"device_id": "1"})], 0)
    # Where each operator went is seen afterwards: refused at once, no model with a dynamic axis would open.
    assert entries == {"session.record_ep_graph_assignment_info": "1"}
    assert (opened.device, opened.providers, opened.nodes) == ("cuda:1", [CUDA, CPU], {CUDA: 2})


def test_tensorrt_has_cuda_behind_it_and_gets_its_options(gpu: Gpu, model: Path) -> None:
    gpu.places = {TENSORRT: ("MatMul",), CUDA: ("Relu",)}
    caches = {TENSORRT: {"trt_engine_cache_enable": 1}}
    opened = open_session(model, device="tensorrt", threads=1, provider_options=caches)
    assert gpu.asked[0][0] == [
        (TENSORRT, {"device_id": "0", "trt_engine_cache_enable": "1"}),
        (CUDA, {"device_id": "0"}),
    ]
    assert (opened.device, opened.nodes, opened.instead) == ("cuda:0", {TENSORRT: 1, CUDA: 1}, None)


def test_a_session_that_came_on_the_cpu_is_not_taken_for_cuda(gpu: Gpu, model: Path) -> None:
    gpu.works = ()
    with pytest.raises(ProviderRefused, match="no cuda: got CPUExecutionProvider"):
        open_session(model, device="cuda", threads=1)
    opened = open_session(model, device="cuda", threads=1, fall_back=True)
    assert (opened.device, opened.instead) == ("cpu", "no cuda: got CPUExecutionProvider")


def test_tensorrt_falls_to_cuda_before_the_cpu(gpu: Gpu, model: Path) -> None:
    gpu.works = (CUDA,)
    opened = open_session(model, device="tensorrt", threads=1, fall_back=True)
    assert (opened.device, opened.providers) == ("cuda:0", [CUDA, CPU])
    assert opened.instead is not None
    assert opened.instead.startswith("no tensorrt: Please install TensorRT libraries")
    assert opened.loads == 2


def test_tensorrt_that_took_no_operator_is_not_tensorrt(gpu: Gpu, model: Path) -> None:
    with pytest.raises(ProviderRefused, match=r"not one operator of model\.onnx runs on Tensorrt"):
        open_session(model, device="tensorrt", threads=1)


def test_shapes_may_be_computed_on_the_cpu_and_nothing_else(gpu: Gpu, model: Path) -> None:
    gpu.places = {CUDA: ("MatMul",), CPU: ("Shape", "Gather", "Concat")}
    assert open_session(model, device="cuda", threads=1).nodes == {CUDA: 1, CPU: 3}
    gpu.places = {CUDA: ("MatMul",), CPU: ("Shape", "Conv", "LSTM", "Conv")}
    with pytest.raises(ProviderRefused, match="the CPU would compute Conv ×2, LSTM ×1"):
        open_session(model, device="cuda", threads=1)
    opened = open_session(model, device="cuda", threads=1, fall_back=True)
    assert (opened.device, opened.strayed) == ("cuda:0", ("Conv ×2", "LSTM ×1"))
    assert opened.instead == "on the CPU: Conv ×2, LSTM ×1"


def test_a_session_for_a_cuda_graph_may_not_even_compute_shapes_there(gpu: Gpu, model: Path) -> None:
    gpu.places = {CUDA: ("MatMul",), CPU: ("Shape",)}
    with pytest.raises(ProviderRefused, match="explicitly disabled"):
        open_session(model, device="cuda", threads=1, every_node=True)


def test_an_onnxruntime_that_cannot_tell_where_operators_went_is_told_beforehand(
    gpu: Gpu, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu.tells_nodes = False
    monkeypatch.setitem(sys.modules, "onnxruntime", gpu.module())
    opened = open_session(model, device="cuda", threads=1)
    assert gpu.asked[0][1]["session.disable_cpu_ep_fallback"] == "1"
    assert opened.nodes == {}


class Driver:
    """``libcuda.so.1`` of a driver."""

    def __init__(self, version: int, status: int = 0) -> None:
        self.version, self.status = version, status

    def cuInit(self, _: int) -> int:
        return self.status

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = self.version
        return 0


def test_without_a_driver_there_is_neither_and_that_is_told_once(
    gpu: Gpu, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_sessions, "driver_fault", lambda built_for: "no NVIDIA driver")
    opened = open_session(model, device="tensorrt", threads=1, fall_back=True)
    assert (opened.device, opened.instead) == ("cpu", "no tensorrt: no NVIDIA driver")


def test_no_driver_at_all_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert onnx_sessions.driver_fault("13.0") == "no NVIDIA driver"


@pytest.mark.parametrize(
    ("driver", "built_for", "fault"),
    [
        (Driver(13000), "13.0", None),
        (Driver(13010), "12.8", None),
        (Driver(12040), "13.0", "the NVIDIA driver is for CUDA 12.4, CUDA 13 is needed"),
        (Driver(12040), "", None),
        (Driver(12040, status=100), "12.4", "the NVIDIA driver finds no card"),
        (Driver(12040, status=999), "12.4", "cuInit: 999"),
    ],
)
def test_the_driver_is_asked_whether_it_can(
    driver: Driver, built_for: str, fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    assert onnx_sessions.driver_fault(built_for) == fault
