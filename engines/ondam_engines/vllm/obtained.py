"""What vLLM got, from its own configuration, its metrics and its log. Pure.

The configuration is ``vllm_config`` of ``/server_info?config_format=json`` (0.32.0); recordings of real
runs are beside the tests. A field that is not there is None, which the daemon tells as "not told": nothing
is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ondam_engines.vllm.said import Said

GRAPH_MODES = {
    "0": "none",
    "1": "piecewise",
    "2": "full",
    "(2, 0)": "full_decode_only",
    "(2, 1)": "full_and_piecewise",
}
"""``CUDAGraphMode`` (vllm/config/compilation.py), by its value or by its name."""

EAGER = "eager"

TYPES = {"bfloat16": "bf16", "float16": "f16", "half": "f16", "float32": "f32", "float": "f32"}

NUMBER = re.compile(r"[0-9]{1,15}")

CACHE = re.compile(r"^vllm:cache_config_info\{(?P<labels>.*)\} ", re.MULTILINE)
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
"""Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/"""


@dataclass(frozen=True, slots=True)
class Obtained:
    """As the report names it (docs/engines.md)."""

    device: str
    """``cuda``, ``cpu``, …"""
    dtype: str | None
    quantization: str | None
    """None where the weights are as they were trained."""
    kv_dtype: str | None
    context_length: int | None
    cuda_graphs: bool | None
    """None on a device that has no such thing, and where it could not be found out."""
    graph_mode: str | None
    kv_blocks: int | None
    """How many blocks of the cache there are, of ``block_tokens`` tokens each."""
    block_tokens: int | None
    why: dict[str, str] = field(default_factory=dict)
    """Why there are no graphs, or others than were meant, in vLLM's own words."""


def obtained(info: Mapping[str, Any], metrics: str, said: Said) -> Obtained:
    """``info`` holds ``vllm_config``; ``metrics`` is the text of ``/metrics``."""
    config = _table(info, "vllm_config")
    model, cache = _table(config, "model_config"), _table(config, "cache_config")
    compilation = _table(config, "compilation_config")
    measured = cache_config(metrics)
    placed = _table(config, "device_config")
    device = str(placed.get("device_type") or placed.get("device") or "unknown").partition(":")[0]
    dtype = plain_type(model.get("dtype"))
    eager = model.get("enforce_eager") is True
    mode = EAGER if eager else graph_mode(compilation.get("cudagraph_mode"))
    graphs = _graphs(device, mode, said)
    if graphs is False:
        mode = EAGER
    elif device == "cpu" and mode != EAGER:
        mode = None  # compiled, and there are no graphs to be had
    elif graphs and said.fell_to is not None:
        # The configuration is the server's copy: what the engine core took from its own is not in it.
        mode = graph_mode(said.fell_to)
    kv_dtype = _text(measured.get("cache_dtype")) or _text(cache.get("cache_dtype"))
    return Obtained(
        device=device,
        dtype=dtype,
        quantization=_text(model.get("quantization")),
        # "auto" is the type that the model computes in.
        kv_dtype=dtype if kv_dtype in {None, "auto"} else plain_type(kv_dtype),
        context_length=_number(model.get("max_model_len")),
        cuda_graphs=graphs,
        graph_mode=mode,
        kv_blocks=_number(measured.get("num_gpu_blocks")) or _number(cache.get("num_gpu_blocks")),
        block_tokens=_number(measured.get("block_size")) or _number(cache.get("block_size")),
        why=_why(graphs, mode, said),
    )


def _why(graphs: bool | None, mode: str | None, said: Said) -> dict[str, str]:
    told = said.no_graphs or said.fallback
    if mode == EAGER and told:
        return {"cuda_graphs": told}
    return {"graph_mode": said.fallback} if graphs and said.fallback else {}


def _graphs(device: str, mode: str | None, said: Said) -> bool | None:
    """The configuration says what was meant; the log, what came of it."""
    if device == "cpu":
        return None
    if mode in {EAGER, "none"}:
        return False
    if said.captured:
        return True
    if said.no_graphs or said.fallback:
        return False
    # Neither captured nor refused in words that we know: the configuration counts, as far as we know its
    # words.
    return True if mode in GRAPH_MODES.values() else None


def graph_mode(value: object) -> str | None:
    """``2`` and ``"FULL"`` → ``full``, ``[2, 1]`` → ``full_and_piecewise``."""
    if value is None:
        return None
    if isinstance(value, list):
        value = tuple(value)
    name = str(value)
    return GRAPH_MODES.get(name, name.rpartition(".")[2].lower())


def plain_type(name: object) -> str | None:
    """``torch.bfloat16`` → ``bf16``; what has no shorter name keeps its own."""
    if name is None:
        return None
    plain = str(name).removeprefix("torch.")
    return TYPES.get(plain, plain)


def cache_config(metrics: str) -> Mapping[str, str]:
    """The labels of ``vllm:cache_config_info``; empty where it is not there."""
    found = CACHE.search(metrics)
    return dict(LABEL.findall(found["labels"])) if found else {}


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = table.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if NUMBER.fullmatch(value) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < 10**15 else None
