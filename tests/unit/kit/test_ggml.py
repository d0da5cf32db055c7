from __future__ import annotations

import pytest

from ondam_engines.kit.ggml import computes_on


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("cpu", ["CPU"]),
        ("cuda:0", ["CUDA0", "CPU"]),
        ("cuda:1", ["CUDA0", "CUDA1", "BLAS", "CPU"]),
        ("cuda", ["CUDA0", "CUDA1", "CPU"]),
        ("vulkan:0", ["Vulkan0", "CPU"]),
        ("metal", ["MTL0", "BLAS", "CPU"]),
        ("metal", ["Metal", "CPU"]),
    ],
)
def test_the_device_that_was_asked_for_is_one_that_ggml_found(wanted: str, found: list[str]) -> None:
    assert computes_on(wanted, found) == (wanted, {})


@pytest.mark.parametrize(
    ("wanted", "found", "got", "why"),
    [
        ("cuda:0", ["CPU"], "cpu", "llama.cpp was compiled without cuda, or finds no such card"),
        ("metal", ["BLAS", "CPU"], "cpu", "llama.cpp was compiled without metal, or finds no such card"),
        ("cuda:1", ["CUDA0", "CPU"], "cuda:0", "llama.cpp finds CUDA0"),
        ("cuda:0", ["Vulkan0", "CPU"], "vulkan:0", "llama.cpp finds Vulkan0"),
        ("tpu", ["CPU"], "cpu", "llama.cpp was compiled without tpu, or finds no such card"),
    ],
)
def test_another_device_is_named_with_what_there_is(
    wanted: str, found: list[str], got: str, why: str
) -> None:
    assert computes_on(wanted, found) == (got, {"device": why})
