from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.vllm_program import planned

from ondam_engines.kit.launch import Launch
from ondam_engines.vllm.command import Unusable, arguments, environment

SOCKET = Path("/run/e~.sock")
PLAIN: dict[str, Any] = {"architectures": ["Qwen3ForCausalLM"]}
FP8 = {**PLAIN, "quantization_config": {"quant_method": "fp8"}}


def given(device: str = "cuda:0", **options: Any) -> Launch:
    options = {"kv_cache_memory_bytes": 2**30, **options}
    return Launch(
        socket=Path("/run/e.sock"),
        report=Path("/run/e.json"),
        model=Path("/m"),
        model_id="m",
        device=device,
        threads=2,
        language="ko",
        options=planned(Path("/m"), device, **options).options,
        quantization="fp8",
    )


def after(command: list[str], flag: str) -> str | None:
    return command[command.index(flag) + 1] if flag in command else None


def test_the_cache_has_the_plans_bytes_and_never_a_share_of_the_card() -> None:
    command = arguments(given(), SOCKET, FP8)
    assert after(command, "--kv-cache-memory-bytes") == "1073741824"
    # The share is a condition of the start alone, and as small as it can be.
    assert after(command, "--gpu-memory-utilization") == "0.01"


def test_without_bytes_nothing_starts_on_a_card() -> None:
    with pytest.raises(Unusable, match="kv_cache_memory_bytes is 0"):
        arguments(given(kv_cache_memory_bytes=0), SOCKET, FP8)
    assert after(arguments(given("cpu", kv_cache_memory_bytes=0), SOCKET, FP8), "--kv-cache-memory-bytes")


def test_graphs_are_there_unless_somebody_looks_for_a_fault() -> None:
    assert "--enforce-eager" not in arguments(given(), SOCKET, FP8)
    assert "--enforce-eager" in arguments(given(cuda_graphs=False), SOCKET, FP8)


def test_a_prefix_is_computed_once_and_nothing_is_thought_aloud() -> None:
    command = arguments(given(), SOCKET, FP8)
    assert "--enable-prefix-caching" in command
    assert json.loads(after(command, "--default-chat-template-kwargs") or "") == {"enable_thinking": False}
    assert "--reasoning-parser" not in command
    assert "--trust-remote-code" not in command


@pytest.mark.parametrize(
    ("checkpoint", "planned_as", "option", "told"),
    [
        (FP8, "fp8", "auto", None),  # its own configuration says it
        ({"text_config": FP8}, "fp8", "auto", None),
        (PLAIN, "fp8", "auto", "fp8_per_tensor"),
        (PLAIN, "bf16", "auto", None),
        (PLAIN, "", "auto", None),
        (PLAIN, "fp8", "none", None),
        (PLAIN, "", "fp8_per_tensor", "fp8_per_tensor"),
    ],
)
def test_fp8_is_made_where_the_plan_counts_with_it_and_the_checkpoint_has_none(
    checkpoint: dict[str, Any], planned_as: str, option: str, told: str | None
) -> None:
    launch = replace(given(quantization=option), quantization=planned_as)
    assert after(arguments(launch, SOCKET, checkpoint), "--quantization") == told


def test_the_type_of_the_cache_is_told_where_the_plan_has_one() -> None:
    assert after(arguments(given(), SOCKET, FP8), "--kv-cache-dtype") is None
    assert after(arguments(given(kv_cache_dtype="fp8"), SOCKET, FP8), "--kv-cache-dtype") == "fp8"


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("off", None),
        ("mtp", {"method": "mtp", "num_speculative_tokens": 3}),
        ("ngram", {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}),
    ],
)
def test_guessing_ahead_is_a_setting(way: str, told: dict[str, Any] | None) -> None:
    command = arguments(given(speculation=way, speculation_tokens=3), SOCKET, FP8)
    config = after(command, "--speculative-config")
    assert (None if config is None else json.loads(config)) == told


@pytest.mark.parametrize(
    "options", [{"speculation": "eagle"}, {"speculation": "mtp", "speculation_tokens": 0}]
)
def test_a_way_of_guessing_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Unusable, match="speculation"):
        arguments(given(**options), SOCKET, FP8)


def test_no_setting_reaches_vllm_past_the_options_and_nothing_is_sent_home() -> None:
    env = environment(given(), {"VLLM_SERVER_DEV_MODE": "1", "VLLM_CONFIGURE_LOGGING": "0", "PATH": "/bin"})
    assert "VLLM_SERVER_DEV_MODE" not in env
    assert "VLLM_CONFIGURE_LOGGING" not in env
    assert env["PATH"] == "/bin"
    assert (env["VLLM_NO_USAGE_STATS"], env["DO_NOT_TRACK"], env["VLLM_HOST_IP"]) == ("1", "1", "127.0.0.1")


@pytest.mark.parametrize(
    ("device", "seen", "card"),
    [("cuda:0", None, "0"), ("cuda:1", None, "1"), ("cuda:1", "3,5", "5"), ("cuda:0", "GPU-abc", "GPU-abc")],
)
def test_the_card_is_the_plans_among_those_that_may_be_seen(device: str, seen: str | None, card: str) -> None:
    environ = {} if seen is None else {"CUDA_VISIBLE_DEVICES": seen}
    assert environment(given(device), environ)["CUDA_VISIBLE_DEVICES"] == card


def test_what_is_compiled_is_kept_in_the_engines_own_folder() -> None:
    env = environment(replace(given(), cache=Path("/c")), {"HOME": "/readonly"})
    assert {
        env[name].startswith("/c") for name in ("VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "XDG_CACHE_HOME")
    } == {True}
