"""What real runs said of themselves (tests/fakes/recordings/vllm), and what the daemon says to it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.vllm_program import RECORDINGS, planned

from ondam.messages import message
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.comparison import differences, prices
from ondam_engines.vllm.obtained import Obtained, cache_config, graph_mode, obtained, plain_type
from ondam_engines.vllm.said import Said


def said(*lines: str) -> Said:
    heard = Said()
    for line in lines:
        heard.hear(line)
    return heard


def recorded(case: str) -> tuple[dict[str, Any], str, Said]:
    folder = RECORDINGS / case
    info = json.loads((folder / "server_info.json").read_bytes())
    log = (folder / "log.txt").read_text("utf-8", "replace").splitlines()
    return info, (folder / "metrics.txt").read_text(), said(*log)


def got(case: str) -> Obtained:
    return obtained(*recorded(case))


def report(found: Obtained, **more: object) -> dict[str, object]:
    return {
        "device": found.device,
        "threads": 2,
        "weight_loads": 1,
        "dtype": found.dtype,
        "quantization": found.quantization or found.dtype,
        "providers": {"vllm": [found.device]},
        "cuda_graphs": found.cuda_graphs,
        "graph_mode": found.graph_mode,
        "context_length": found.context_length,
        "kv_dtype": found.kv_dtype,
        "why": found.why,
        **more,
    }


def faults(plan: PlannedEngine, found: Obtained, **more: object) -> list[tuple[str, object]]:
    return [(fault.code, fault.facts["got"]) for fault in differences(plan, report(found, **more))]


MODEL = Path("/m")


def test_eager_is_seen_in_the_configuration_and_is_a_fault_with_its_cost() -> None:
    eager = got("eager")
    assert (eager.device, eager.graph_mode, eager.cuda_graphs) == ("cpu", "eager", None)
    assert eager.why["cuda_graphs"].startswith("Enforce eager set, disabling torch.compile, CUDAGraphs")
    (fault,) = differences(planned(MODEL), report(eager))
    assert fault.code == "engine_lost_graphs"
    told = {language: message(fault.code, language, **fault.facts) for language in ("en", "ko")}
    assert "several times slower" in told["en"].text and "몇 배 느려집니다" in told["ko"].text
    assert "Enforce eager set" in told["ko"].text
    assert faults(planned(MODEL, cuda_graphs=False), eager) == []


def test_without_eager_a_processor_compiles_and_has_no_graphs_to_lose() -> None:
    compiled = got("graphs")
    assert (compiled.graph_mode, compiled.cuda_graphs) == (None, None)
    assert faults(planned(MODEL), compiled) == []


def test_what_else_is_told_is_as_it_was_started() -> None:
    eager = got("eager")
    assert (eager.dtype, eager.quantization, eager.kv_dtype) == ("bf16", None, "bf16")
    assert (eager.context_length, eager.kv_blocks, eager.block_tokens) == (2048, 512, 128)
    assert recorded("eager")[2].loads == 1
    # 64 MiB / (2 layers × 2 KV heads × 64 × 2 (key and value) × 2 bytes × 128 tokens) = 512 blocks.
    assert 64 * 2**20 // (2 * 2 * 64 * 2 * 2 * 128) == 512


def test_a_cache_in_fp8_is_seen() -> None:
    assert got("kv-fp8").kv_dtype == "fp8"
    plan = planned(MODEL, cuda_graphs=False, kv_cache_dtype="fp8")
    assert faults(plan, got("kv-fp8")) == []


def test_a_model_that_guesses_ahead_is_loaded_once_all_the_same() -> None:
    info, _, log = recorded("ngram")
    assert info["vllm_config"]["speculative_config"]["method"] == "ngram"
    assert log.loads == 1


def on_a_card(mode: object, **changed: Any) -> tuple[dict[str, Any], str]:
    """Shape from documentation: a recorded configuration with what a card's has. No card is recorded."""
    info, metrics, _ = recorded("graphs")
    config = info["vllm_config"]
    config["device_config"] = {"device": "cuda"}
    config["compilation_config"]["cudagraph_mode"] = mode
    config["model_config"] |= changed
    return info, metrics


PREFIX = "(Worker pid=9) INFO 11-30 10:43:19 [gpu_model_runner.py:6582] "
CAPTURED = PREFIX + "Graph capturing finished in 4 secs, took 0.31 GiB"
SKIPPED = (
    PREFIX + "Skipping CUDA graph capture. To turn on CUDA graph capture, ensure `cudagraph_mode` was not"
    " manually set to `NONE`"
)


@pytest.mark.parametrize(
    ("mode", "line", "graphs", "name"),
    [
        ([2, 1], CAPTURED, True, "full_and_piecewise"),
        (1, CAPTURED, True, "piecewise"),
        ([2, 1], "", True, "full_and_piecewise"),  # a line that a later vLLM words otherwise
        ([2, 1], SKIPPED, False, "eager"),  # the worker gave up what the configuration still shows
        (0, SKIPPED, False, "eager"),
        (0, "", False, "eager"),
    ],
)
def test_graphs_on_a_card_are_what_was_captured(mode: object, line: str, graphs: bool, name: str) -> None:
    found = obtained(*on_a_card(mode), said(line))
    assert (found.device, found.cuda_graphs, found.graph_mode) == ("cuda", graphs, name)
    expected = [] if graphs else [("engine_lost_graphs", False)]
    assert faults(planned(MODEL, "cuda:0"), found, device="cuda:0") == expected


def test_lost_graphs_carry_vllms_own_words() -> None:
    found = obtained(*on_a_card([2, 1]), said(SKIPPED))
    assert found.why["cuda_graphs"].startswith("Skipping CUDA graph capture.")


FELL = PREFIX + "Overriding cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE for reliability."


def test_graphs_that_became_fewer_are_told_in_vllms_own_words() -> None:
    found = obtained(*on_a_card([2, 1]), said(FELL, CAPTURED))
    assert (found.cuda_graphs, found.graph_mode) == (True, "piecewise")
    assert list(found.why) == ["graph_mode"] and found.why["graph_mode"].startswith("Overriding cudagraph_")
    (fault,) = differences(planned(MODEL, "cuda:0"), report(found, device="cuda:0"))
    assert (fault.code, fault.facts["name"]) == ("engine_tells", "graph_mode")


def test_no_graphs_because_nobody_wanted_any_are_no_difference_and_have_their_price_told() -> None:
    plan = planned(MODEL, "cuda:0", cuda_graphs=False)
    found = obtained(*on_a_card(0, enforce_eager=True), said(SKIPPED))
    told = report(found, device="cuda:0")
    assert "cuda_graphs" in found.why and differences(plan, told) == ()
    (price,) = prices(plan, told)
    text = message(price.code, "en", **price.facts)
    assert "several times slower" in text.text and "cuda_graphs = true" in text.next
    assert prices(planned(MODEL, "cuda:0"), told) == ()


def test_a_card_that_is_not_there_is_told() -> None:
    assert ("engine_lost_gpu", "cpu") in faults(planned(MODEL, "cuda:0"), got("graphs"))


def test_fp8_is_compared_with_what_the_plan_counted_with() -> None:
    plan = replace(planned(MODEL, "cuda:0"), quantization="fp8")
    for name in ("fp8", "fp8_per_tensor"):
        found = obtained(*on_a_card([2, 1], quantization=name), said(CAPTURED))
        assert faults(plan, found, device="cuda:0") == []
    bf16 = obtained(*on_a_card([2, 1]), said(CAPTURED))
    assert faults(plan, bf16, device="cuda:0") == [("engine_differs_quantization", "bf16")]


def test_a_cache_of_another_type_than_asked_is_a_fault() -> None:
    assert faults(planned(MODEL, cuda_graphs=False, kv_cache_dtype="fp8"), got("eager")) == [
        ("engine_differs_kv", "bf16")
    ]


def test_a_shorter_context_than_asked_is_a_fault() -> None:
    plan = planned(MODEL, cuda_graphs=False, context_length=4096)
    assert faults(plan, got("eager")) == [("engine_differs_context", 2048)]


def test_what_is_not_there_is_not_guessed() -> None:
    found = obtained({}, "", Said())
    assert (found.device, found.dtype, found.kv_dtype, found.context_length) == ("unknown", None, None, None)
    assert (found.cuda_graphs, found.graph_mode) == (None, None)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0, "none"),
        (1, "piecewise"),
        (2, "full"),
        ([2, 0], "full_decode_only"),
        ([2, 1], "full_and_piecewise"),
        ("CUDAGraphMode.FULL_AND_PIECEWISE", "full_and_piecewise"),
        ("FULL", "full"),
        (None, None),
    ],
)
def test_a_graph_mode_has_one_name_however_it_is_written(value: object, name: str | None) -> None:
    assert graph_mode(value) == name


def test_types_have_one_name() -> None:
    assert [plain_type(name) for name in ("torch.bfloat16", "half", "fp8_e4m3", None)] == [
        "bf16",
        "f16",
        "fp8_e4m3",
        None,
    ]


def test_labels_of_a_metric_may_hold_quotes() -> None:
    labels = '{a="1",cache_dtype="fp8",b="say \\"no\\""}'
    text = f"# HELP vllm:cache_config_info x\nvllm:cache_config_info{labels} 1.0\n"
    assert cache_config(text) == {"a": "1", "cache_dtype": "fp8", "b": 'say \\"no\\"'}
    assert cache_config("process_cpu_seconds_total 1.0\n") == {}


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**400,
    float("nan"),
    "",
    "x",
    "²",
    "9" * 5000,
    [],
    [[1]],
    {},
    {"a": 1},
)


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("model_config", "dtype"),
        ("model_config", "enforce_eager"),
        ("model_config", "quantization"),
        ("model_config", "max_model_len"),
        ("compilation_config", "cudagraph_mode"),
        ("cache_config", "cache_dtype"),
        ("cache_config", "num_gpu_blocks"),
        ("device_config", "device_type"),
    ],
)
def test_a_value_of_another_kind_is_no_crash_and_no_agreement(table: str, key: str, value: Any) -> None:
    info, _, heard = recorded("graphs")
    info["vllm_config"][table][key] = value
    metrics = f'vllm:cache_config_info{{num_gpu_blocks="{value if isinstance(value, str) else 1}"}} 1\n'
    found = obtained(info, metrics, heard)
    for number in (found.context_length, found.kv_blocks):
        assert number is None or 0 <= number < 10**15


@pytest.mark.parametrize("mode", ["SUPER", 9, {"decode": "FULL"}, [7, 7], True])
def test_a_graph_mode_that_a_later_vllm_may_have_is_not_taken_for_graphs(mode: Any) -> None:
    info, metrics, _ = recorded("graphs")
    info["vllm_config"]["compilation_config"]["cudagraph_mode"] = mode
    info["vllm_config"]["device_config"]["device_type"] = "cuda"
    assert obtained(info, metrics, said()).cuda_graphs is None
    # Whatever it is called: that they were captured is what counts.
    assert obtained(info, metrics, said("Graph capturing finished in 3 secs")).cuda_graphs is True


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("model_config", "engine_differs_context"),
        ("cache_config", "engine_differs_kv"),
        ("compilation_config", "engine_lost_graphs"),
        ("device_config", "engine_differs_device"),
    ],
)
def test_a_table_that_a_later_vllm_calls_otherwise_is_told_as_a_difference(table: str, code: str) -> None:
    info, _, _ = recorded("kv-fp8")
    config = info["vllm_config"]
    config["device_config"]["device_type"] = "cuda"
    config["model_config"]["enforce_eager"] = False
    config["compilation_config"]["cudagraph_mode"] = "FULL_AND_PIECEWISE"
    plan = planned(MODEL, "cuda:0", kv_cache_dtype="fp8")

    def codes() -> list[str]:
        found = obtained(info, "", said())
        device = "cuda:0" if found.device == "cuda" else found.device
        return [fault for fault, _ in faults(plan, found, device=device)]

    assert codes() == []
    config[f"{table}_v2"] = config.pop(table)
    assert code in codes()
