from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ondam.errors import EngineError
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.report import LARGEST, differences, read_report

TRUE = {
    "schema": 1,
    "device": "cpu",
    "threads": 2,
    "weight_loads": 1,
    "model": {"id": "m", "path": "/m", "sha256": "a" * 64},
    "dtype": "int8_float32",
    "providers": {"main": ["CPUExecutionProvider"], "vad": ["cpu"], "llama.cpp": ["CPU"]},
}


def planned(device: str = "cpu", **options: Any) -> PlannedEngine:
    return PlannedEngine("ear", "stt", "m", Path("/m"), "a" * 64, device, 2, "en", options)


def found(plan: PlannedEngine, **changed: Any) -> list[object]:
    return [
        (fault.code, fault.facts.get("what"), fault.facts.get("got"))
        for fault in differences(plan, {**TRUE, **changed})
    ]


def test_what_was_planned_and_got_is_no_fault() -> None:
    assert found(planned(compute_type="int8")) == []


def test_a_gpu_engine_that_fell_back_is_told_for_every_session() -> None:
    on_gpu = {"a": ["CUDAExecutionProvider", "CPUExecutionProvider"], "b": ["CPUExecutionProvider"]}
    assert found(planned("cuda:0"), device="cuda:0", providers=on_gpu) == [
        ("engine_differs", "provider of b", "CPUExecutionProvider")
    ]


def test_the_device_counts_with_its_number() -> None:
    assert found(planned("cuda:1"), device="cuda:0", providers={}) == [("engine_differs", "device", "cuda:0")]


def test_a_compute_type_that_fell_back_is_told() -> None:
    assert found(planned(compute_type="int8_float16"), dtype="int8_float32") == [
        ("engine_differs", "compute_type", "int8_float32")
    ]


def test_options_left_to_the_engine_are_not_compared() -> None:
    assert found(planned(compute_type="auto", dtype="default", quantization="")) == []
    assert found(planned(quantization="fp8")) == [("engine_differs", "quantization", None)]


def test_an_engine_without_weights_must_not_have_loaded_any() -> None:
    voice = PlannedEngine("mouth", "tts", "mouth", None, None, "cpu", 2, "en")
    assert found(voice) == [("engine_weight_loads", None, None)]
    assert found(voice, weight_loads=0, model=None) == []


def test_threads_are_compared_where_there_is_something_to_compute() -> None:
    assert found(planned(), threads=1) == [("engine_differs", "threads", 1)]
    voice = PlannedEngine("mouth", "tts", "mouth", None, None, "cpu", 2, "en")
    assert found(voice, weight_loads=0, threads=1) == []
    assert found(voice, weight_loads=0, threads=3) == [("engine_differs", "threads", 3)]


@pytest.mark.parametrize("model", [{"sha256": "b" * 64}, "nonsense", None])
def test_other_weights_than_planned_are_told(model: object) -> None:
    (fault,) = differences(planned(), {**TRUE, "model": model})
    assert fault.code == "engine_wrong_model"


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b'{"schema": 2}', b"\xff", b"[" * 100_000, b" " * (LARGEST + 1)],
    ids=["empty", "cut", "list", "null", "schema", "bytes", "deep", "huge"],
)
def test_what_is_no_report_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(raw)
    with pytest.raises(EngineError) as raised:
        read_report(path, "ear")
    assert raised.value.code == "engine_report_broken"


def test_a_report_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(TRUE))
    assert read_report(path, "ear") == TRUE
