from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ondam_engines.kit import onnx_sessions
from ondam_engines.supertonic import prepared as module
from ondam_engines.supertonic.prepared import Prepared, Way, card_facts, way

FACTS = {"card": "H200", "driver": "580.65", "dtype": "float32"}


def made(cache: Path, facts: dict[str, str]) -> Prepared:
    prepared = Prepared(cache, facts)
    prepared.begin()
    prepared.mark()
    return prepared


def test_what_was_never_prepared_is_told_so_with_what_to_type(tmp_path: Path) -> None:
    told = Prepared(tmp_path / "none", FACTS).lacking()
    assert told == "TensorRT is not prepared (it never was): ondam engines warm supertonic"


def test_what_was_prepared_serves_the_same_facts_in_any_order(tmp_path: Path) -> None:
    first = made(tmp_path, FACTS)
    again = Prepared(tmp_path, dict(reversed(FACTS.items())))
    assert (again.lacking(), again.folder) == (None, first.folder)


def test_another_driver_needs_another_preparation_and_is_named(tmp_path: Path) -> None:
    made(tmp_path, FACTS)
    assert "(other driver)" in (Prepared(tmp_path, FACTS | {"driver": "590.1"}).lacking() or "")


def test_half_made_counts_for_nothing(tmp_path: Path) -> None:
    prepared = made(tmp_path, FACTS)
    prepared.begin()
    assert not prepared.made


def test_only_float16_asks_tensorrt_for_it(tmp_path: Path) -> None:
    options = Prepared(tmp_path, FACTS).tensorrt()
    assert options["trt_fp16_enable"] == "0"
    assert options["trt_engine_cache_path"] == options["trt_timing_cache_path"]
    assert Prepared(tmp_path, FACTS | {"dtype": "float16"}).tensorrt()["trt_fp16_enable"] == "1"


@pytest.fixture
def tensorrt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build and a driver for it, and its library."""
    monkeypatch.setattr(module, "why_not", lambda kind: None)
    monkeypatch.setattr(module, "lacks_tensorrt", lambda: None)


def test_tensorrt_is_used_where_its_engines_are_made(tmp_path: Path, tensorrt: None) -> None:
    prepared = made(tmp_path, FACTS)
    assert way("tensorrt:1", lambda card: prepared) == Way("tensorrt:1", prepared)
    assert way("cuda:1", lambda card: prepared) == Way("cuda:1")


def test_without_its_engines_the_same_card_computes_by_cuda_and_why_is_told(
    tmp_path: Path, tensorrt: None
) -> None:
    assert way("tensorrt:1", lambda card: Prepared(tmp_path, FACTS | {"card": str(card)})) == Way(
        "cuda:1",
        instead="no tensorrt: TensorRT is not prepared (it never was): ondam engines warm supertonic",
    )


def test_without_its_library_nothing_is_looked_for(tensorrt: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str, mode: int = 0) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(module, "lacks_tensorrt", onnx_sessions.lacks_tensorrt)
    monkeypatch.setattr(ctypes, "CDLL", nowhere)
    found = way("tensorrt:0", lambda card: pytest.fail("nothing can be prepared"))
    assert found == Way("cuda:0", instead="no tensorrt: libnvinfer.so.10: cannot open shared object file")


def test_what_the_opening_finds_by_itself_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "why_not", lambda kind: "no NVIDIA driver")
    assert way("tensorrt:0", lambda card: pytest.fail("there is no card")) == Way("tensorrt:0")


class Cuda:
    """``libcuda.so.1`` of a process that may see the second card of the machine alone."""

    def cuInit(self, _: int) -> int:
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:
        device._obj.value = 1
        return 0 if number == 0 else 101

    def cuDeviceGetName(self, name: Any, length: int, device: Any) -> int:
        name.value = [b"NVIDIA L4", b"NVIDIA H200"][device.value]
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        value._obj.value = [{75: 8, 76: 9}, {75: 9, 76: 0}][device.value][attribute]
        return 0


def test_a_card_is_the_one_that_cuda_counts_and_not_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = SimpleNamespace(
        nvmlInit=lambda: None, nvmlShutdown=lambda: None, nvmlSystemGetDriverVersion=lambda: "580.65"
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Cuda())
    assert card_facts(0) == {"card": "NVIDIA H200", "compute capability": "9.0", "driver": "580.65"}
    with pytest.raises(OSError, match="of card 1: status 101"):
        card_facts(1)
