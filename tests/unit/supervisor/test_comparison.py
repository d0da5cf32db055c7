from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ondam.messages import Phrase, message
from ondam.planner.arithmetic import sum_of
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.comparison import differences, worse

TRUE = {
    "schema": 1,
    "device": "cpu",
    "threads": 2,
    "weight_loads": 1,
    "model": {"id": "m", "path": "/m", "sha256": "a" * 64},
    "dtype": "int8_float32",
    "providers": {"main": ["CPUExecutionProvider"], "vad": ["cpu"], "llama.cpp": ["CPU"]},
}


NOTHING = Phrase("differs_nothing")


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
        ("engine_differs_provider", "provider of b", "CPUExecutionProvider")
    ]


def test_the_device_counts_with_its_number() -> None:
    assert found(planned("cuda:1"), device="cuda:0", providers={}) == [
        ("engine_differs_device", "device", "cuda:0")
    ]


def test_a_compute_type_that_fell_back_is_told() -> None:
    assert found(planned(compute_type="int8_float16"), dtype="int8_float32") == [
        ("engine_differs_dtype", "compute_type", "int8_float32")
    ]


def test_options_left_to_the_engine_are_not_compared() -> None:
    assert found(planned(compute_type="auto", dtype="default", quantization="")) == []
    assert found(planned(quantization="fp8")) == [("engine_differs_quantization", "quantization", NOTHING)]


def test_an_engine_without_weights_must_not_have_loaded_any() -> None:
    voice = PlannedEngine("mouth", "tts", "mouth", None, None, "cpu", 2, "en")
    assert found(voice) == [("engine_weight_loads", "weight_loads", 1)]
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


GPU = "cuda:0"
ON_GPU = {"device": GPU, "providers": {}}


def test_fields_that_an_older_engine_does_not_write_are_no_fault() -> None:
    assert found(planned(GPU), **ON_GPU) == []


def test_a_device_without_a_number_is_the_first() -> None:
    assert found(planned("cuda"), **ON_GPU) == []


def test_sessions_on_the_cpu_are_one_fault_when_the_whole_engine_is() -> None:
    providers = {"a": ["CPUExecutionProvider"], "b": ["CPUExecutionProvider"]}
    why = {"a": "no cuda: no driver", "b": "no cuda: no driver"}
    (fault,) = differences(planned(GPU), {**TRUE, "providers": providers, "why": why})
    assert fault.code == "engine_lost_gpu"
    assert message(fault.code, "en", **fault.facts).text == (
        "The engine ear was to run on the graphics card (cuda:0) and runs on the CPU: no cuda: no driver. "
        "There it is many times slower."
    )
    assert "(엔진의 설명: no cuda: no driver)" in message(fault.code, "ko", **fault.facts).text


def test_the_provider_that_was_asked_for_by_name_counts_on_a_card_alone() -> None:
    on_cuda = {"a": ["CUDAExecutionProvider", "CPUExecutionProvider"]}
    on_tensorrt = {"a": ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]}
    asked = planned(GPU, provider="tensorrt")
    assert found(asked, device=GPU, providers=on_tensorrt) == []
    assert found(asked, device=GPU, providers=on_cuda) == [
        ("engine_differs_provider", "provider of a", "CUDAExecutionProvider")
    ]
    assert found(planned(GPU, provider="auto"), device=GPU, providers=on_cuda) == []
    assert found(planned("cpu", provider="tensorrt")) == []


def test_operators_that_compute_shapes_on_the_cpu_are_no_fault_until_they_are_most() -> None:
    session = {"a": ["CUDAExecutionProvider"]}

    def nodes(**counts: int) -> list[object]:
        named = {f"{name}ExecutionProvider": count for name, count in counts.items()}
        return found(planned(GPU), device=GPU, providers=session, nodes={"a": named})

    assert nodes(CUDA=50, CPU=50) == []
    assert nodes(CUDA=49, CPU=51) == [("engine_differs_nodes", "nodes of a", "CPUExecutionProvider")]
    assert nodes(CPU=3) == [("engine_differs_nodes", "nodes of a", "CPUExecutionProvider")]


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ("fp8", "fp8_e4m3"), ("fp8", "fp8_per_tensor"), ("bf16", "torch.bfloat16"), ("float16", "half"),
        ("q4_k_m", "Q4_K - Medium"), ("q4_1", "Q4_1"), ("int8", "int8_float32"),
    ],
)  # fmt: skip
def test_two_names_of_one_type_agree(wanted: str, got: str) -> None:
    assert found(planned(dtype=wanted), dtype=got) == []


@pytest.mark.parametrize(
    ("wanted", "got"), [("fp8_e5m2", "fp8"), ("q4_k_m", "Q4_K - Small"), ("bf16", "f16")]
)
def test_two_types_do_not(wanted: str, got: str) -> None:
    assert found(planned(dtype=wanted), dtype=got) == [("engine_differs_dtype", "dtype", got)]


def test_the_quantisation_of_the_planned_model_is_compared() -> None:
    fp8, whole = (replace(planned(), quantization=name) for name in ("fp8", "bf16"))
    assert found(fp8, quantization="fp8") == []
    assert found(fp8, quantization=None) == [("engine_differs_quantization", "quantization", NOTHING)]
    assert [found(whole, quantization=name) for name in (None, "none", "float16")] == [[], [], []]
    assert found(whole, quantization="q4_1") == [("engine_differs_quantization", "quantization", "q4_1")]
    # CTranslate2 converts what it loads: what counts is the type that was asked for.
    assert found(replace(planned(compute_type="int8"), quantization="bf16"), quantization="int8") == []


def test_the_cache_of_llama_cpp_is_told_in_its_own_field_or_as_its_type() -> None:
    assert found(planned(cache_type="q8_0"), dtype="q8_0") == []
    assert found(planned(cache_type="q8_0"), dtype="f16", kv_dtype="q8_0") == []
    assert found(planned(cache_type="q8_0"), dtype="f16") == [("engine_differs_kv", "kv_dtype", "f16")]


def test_a_cache_that_was_planned_in_fp8_and_is_not_is_told() -> None:
    fp8 = planned(kv_cache_dtype="fp8")
    assert [found(fp8, kv_dtype=got) for got in ("fp8", "fp8_e4m3")] == [[], []]
    assert found(fp8, kv_dtype="bf16") == [("engine_differs_kv", "kv_dtype", "bf16")]
    assert found(fp8, kv_dtype=None) == [("engine_differs_kv", "kv_dtype", NOTHING)]
    # Left open, as on a card that has no FP8.
    assert found(planned(kv_cache_dtype="auto"), kv_dtype="bf16") == []


def test_a_context_may_be_longer_and_not_shorter() -> None:
    asked = planned(context_length=4096)
    assert [found(asked, context_length=tokens) for tokens in (4096, 4352)] == [[], []]
    assert found(asked, context_length=4095) == [("engine_differs_context", "context_length", 4095)]
    assert found(asked, context_length=None) == [("engine_differs_context", "context_length", NOTHING)]
    assert found(planned(context_length=0), context_length=None) == []


def test_graphs_are_a_matter_of_cards() -> None:
    asked = planned(cuda_graphs=True)
    assert found(asked, cuda_graphs=None) == []
    assert found(asked, cuda_graphs=False) == [("engine_lost_graphs", "cuda_graphs", False)]
    gpu = planned(GPU, enforce_eager=False)
    assert found(gpu, **ON_GPU, cuda_graphs=True) == []
    assert found(gpu, **ON_GPU, cuda_graphs=None) == [("engine_lost_graphs", "cuda_graphs", NOTHING)]
    assert found(planned(GPU, enforce_eager=True), **ON_GPU, cuda_graphs=False) == []


@pytest.mark.parametrize(
    ("gib", "mib", "got"),
    [
        (4.0, 4608, None),  # 4.5 GiB: half a GiB is allowed
        (4.0, 4660, "4.6 GiB"),
        (40.0, 43_008, None),  # 42 GiB: a twentieth is allowed
        (40.0, 43_100, "42.1 GiB"),
        (0.0, 43_100, None),  # not planned
        (40.0, None, None),  # the driver does not tell
    ],
)
def test_memory_on_the_card_is_within_its_share(gib: float, mib: int | None, got: str | None) -> None:
    told = [] if got is None else [("engine_differs_memory", "gpu_memory", got)]
    assert found(replace(planned(GPU), memory_gib=gib), **ON_GPU, gpu_memory_mib=mib) == told


def test_weights_that_are_not_on_the_card_are_missed() -> None:
    plan = replace(planned(GPU), memory_gib=12.0, need=sum_of(("weights", 10.0), ("kv", 2.0)))
    assert found(plan, **ON_GPU, gpu_memory_mib=9216) == []
    assert found(plan, **ON_GPU, gpu_memory_mib=9215) == [("engine_not_on_card", "gpu_memory", "9.0 GiB")]


def lost(before: dict[str, Any], now: dict[str, Any]) -> list[object]:
    told = worse(planned(GPU), {**TRUE, **ON_GPU, **before}, {**TRUE, **ON_GPU, **now})
    return [(fault.facts["what"], fault.facts["wanted"], fault.facts["got"]) for fault in told]


def test_a_later_life_may_not_be_worse_and_may_be_better() -> None:
    two, one = {"context_length": 8192, "cuda_graphs": True}, {"context_length": 4096, "cuda_graphs": False}
    assert lost(two, one) == [("cuda_graphs", True, False), ("context_length", 8192, 4096)]
    assert lost(one, two) == lost(two, two) == []
    assert lost({"kv_dtype": "fp8"}, {"kv_dtype": "bf16"}) == [("kv_dtype", "fp8", "bf16")]


def test_what_differs_from_the_plan_is_not_told_twice() -> None:
    on_card, on_cpu = (
        {"providers": {"a": ["CUDAExecutionProvider"]}},
        {"providers": {"a": ["CPUExecutionProvider"]}},
    )
    assert lost(on_card, on_cpu) == []
    assert lost(on_card, {"device": "cpu", **on_cpu}) == []


def test_a_reason_beside_which_nothing_differs_is_told() -> None:
    (fault,) = differences(planned(), {**TRUE, "why": {"main": "on the CPU: Conv ×2"}})
    assert (fault.code, fault.facts["name"]) == ("engine_tells", "main")


@pytest.mark.parametrize("nonsense", [None, 3, "x", [], {"a": 3}, {"a": None}, {"a": {"x": 0}}])
def test_nonsense_in_a_report_is_no_crash(nonsense: Any) -> None:
    for key in ("providers", "nodes", "why", "model", "gpu_memory_mib", "context_length", "dtype", "device"):
        differences(planned(GPU, context_length=1), {**TRUE, key: nonsense})
        worse(planned(GPU), {**TRUE, key: nonsense}, TRUE)
        worse(planned(GPU), TRUE, {**TRUE, key: nonsense})


@pytest.mark.parametrize(
    "name", ["", "DnnlExecutionProvider", "XnnpackExecutionProvider", "unknown", "VitisAI"]
)
def test_a_provider_that_is_no_nvidias_is_not_taken_for_the_card(name: str) -> None:
    (fault,) = differences(planned(GPU), {**TRUE, "device": GPU, "providers": {"a": [name]}})
    assert (fault.code, fault.facts["got"]) == ("engine_differs_provider", name)


@pytest.mark.parametrize(
    "name", ["CUDA0", "cuda:1", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider"]
)
def test_every_name_of_nvidias_is_the_card(name: str) -> None:
    assert found(planned(GPU), device=GPU, providers={"a": [name]}) == []


@pytest.mark.parametrize("mib", [-1, 10**400, float("nan"), float("inf"), float("-inf")])
def test_memory_that_is_none_is_told(mib: float) -> None:
    (fault,) = differences(planned(GPU), {**TRUE, **ON_GPU, "gpu_memory_mib": mib})
    assert (fault.code, fault.facts["what"]) == ("engine_differs_memory", "gpu_memory")


def test_memory_with_a_fraction_is_compared_too() -> None:
    plan = replace(planned(GPU), memory_gib=4.0)
    assert found(plan, **ON_GPU, gpu_memory_mib=8192.5) == [
        ("engine_differs_memory", "gpu_memory", "8.0 GiB")
    ]


@pytest.mark.parametrize(
    "counts", [{"CUDA": "7"}, {"CUDA": None, "CPU": [1]}, {"CUDA": -3, "CPU": 3}, {"": 0}]
)
def test_counts_that_are_none_are_no_crash(counts: Any) -> None:
    session = {"a": ["CUDAExecutionProvider"]}
    assert found(planned(GPU), device=GPU, providers=session, nodes={"a": counts}) == []


def test_what_lies_in_the_main_memory_is_no_share_of_the_card() -> None:
    # 17 GiB in all, of which 14 are experts beside the processor: the card holds 3.
    plan = replace(planned(GPU), memory_gib=17.0, need=sum_of(("weights", 3.0)))
    assert found(plan, **ON_GPU, gpu_memory_mib=3072) == []
    assert found(plan, **ON_GPU, gpu_memory_mib=8192) == [("engine_differs_memory", "gpu_memory", "8.0 GiB")]
