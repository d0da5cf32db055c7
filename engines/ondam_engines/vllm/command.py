"""From a launch to vLLM's command line and environment. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ondam_engines.kit.launch import Launch

UNDECIDED = ("", "auto", "default")
"""Values of an option that leave the choice to the checkpoint."""

ONLINE_FP8 = "fp8_per_tensor"
"""What makes FP8 of BF16 weights while they are loaded."""

CPU_KV_BYTES = 256 * 1024 * 1024
"""For tests: on a processor there is no card to share, and vLLM would take its share of the main memory."""

NO_SHARE = "0.01"
"""vLLM refuses to start unless this part of the card is free, also where the cache's size is given in bytes
and the part means nothing else. What must be free was counted by the plan."""

SPECULATION = ("off", "ngram", "mtp")

LOOKUP_MAX = 4
"""Tokens that must repeat before ngram guesses what followed them last time, at most."""


class Unusable(Exception):
    """Options that cannot be meant. The text says which, and what to do."""


def arguments(given: Launch, socket: Path, checkpoint: Mapping[str, Any]) -> list[str]:
    """After ``vllm``. ``checkpoint`` is the model's ``config.json``. Raises Unusable."""
    options = given.options
    found = [
        *("serve", str(given.model)),
        *("--served-model-name", given.model_id),
        *("--uds", str(socket)),
        *("--middleware", "ondam_engines.vllm.doors.Doors"),
        *("--max-model-len", str(options["context_length"])),
        *("--max-num-seqs", str(options["parallel"])),
        *("--kv-cache-memory-bytes", str(kv_bytes(given))),
        *("--gpu-memory-utilization", NO_SHARE),
        "--enable-prefix-caching",
        # The usage says what came from the cache.
        "--enable-prompt-tokens-details",
        # Other tools on this machine use the same server, and do not say that nothing is to be thought aloud.
        *("--default-chat-template-kwargs", '{"enable_thinking": false}'),
        # Code from a checkpoint is never run: that is vLLM's default, and there is no option for it here.
        "--disable-fastapi-docs",
        # A line per request, and the daemon asks for its health every few seconds.
        "--disable-uvicorn-access-log",
    ]
    for option, flag in {
        "kv_cache_dtype": "--kv-cache-dtype",
        "dtype": "--dtype",
        "reasoning_parser": "--reasoning-parser",
        "chat_template": "--chat-template",
    }.items():
        if options[option] not in UNDECIDED:
            found += [flag, str(options[option])]
    if (made := quantization(given, checkpoint)) is not None:
        found += ["--quantization", made]
    if not options["cuda_graphs"]:
        found.append("--enforce-eager")
    if (guess := speculation(options)) is not None:
        found += ["--speculative-config", json.dumps(guess)]
    return found


def kv_bytes(given: Launch) -> int:
    """Of the key/value cache. Raises Unusable where neither the plan nor the user gave it."""
    size: int = given.options["kv_cache_memory_bytes"]
    if size > 0:
        return size
    if given.device == "cpu":
        return CPU_KV_BYTES
    raise Unusable(
        "kv_cache_memory_bytes is 0: the plan knows no size for this model, and vLLM by itself would take"
        " nine tenths of the card. Set kv_cache_memory_bytes in [engines.vllm], 1073741824 for one GiB"
    )


def quantization(given: Launch, checkpoint: Mapping[str, Any]) -> str | None:
    """What vLLM has to be told: nothing where the checkpoint is quantised, its own configuration says how."""
    wanted = str(given.options["quantization"])
    if wanted == "none" or (wanted in UNDECIDED and quantized(checkpoint)):
        return None
    if wanted not in UNDECIDED:
        return wanted
    return ONLINE_FP8 if given.quantization.lower().startswith("fp8") else None


def quantized(checkpoint: Mapping[str, Any]) -> bool:
    """Whether ``config.json`` says how its weights are quantised."""
    inner = checkpoint.get("text_config")
    return any(
        isinstance(table, Mapping) and (table.get("quantization_config") or table.get("compression_config"))
        for table in (checkpoint, inner)
    )


def speculation(options: Mapping[str, Any]) -> dict[str, object] | None:
    """vLLM's ``--speculative-config``. Raises Unusable for a way that is none."""
    way, tokens = options["speculation"], options["speculation_tokens"]
    if way not in SPECULATION:
        raise Unusable(f"speculation must be one of {', '.join(SPECULATION)}, not {way!r}")
    if way == "off":
        return None
    if not isinstance(tokens, int) or tokens < 1:
        raise Unusable(f"speculation_tokens must be 1 or more, not {tokens!r}")
    found: dict[str, object] = {"method": way, "num_speculative_tokens": tokens}
    return {**found, "prompt_lookup_max": LOOKUP_MAX} if way == "ngram" else found


def environment(given: Launch, environ: Mapping[str, str], **own: str) -> dict[str, str]:
    """Of vLLM's process: ours, without what would change its mind, and no word to the outside.

    ``own``: variables that belong to this launch.
    """
    # Every VLLM_ variable is a setting. The user's own are kept out: what is asked for stands in the options.
    found = {name: text for name, text in environ.items() if not name.startswith("VLLM_")}
    found |= {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_DO_NOT_TRACK": "1",
        "DO_NOT_TRACK": "1",
        # Else it asks the routing table which address leads to the internet.
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_LOOPBACK_IP": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "NO_COLOR": "1",
    }
    if given.cache is not None:
        # Compiled kernels and graphs: kept for the next start, and HOME need not be writable.
        cache = str(given.cache)
        found |= {
            "XDG_CACHE_HOME": cache,
            "XDG_CONFIG_HOME": f"{cache}/config",
            "VLLM_CACHE_ROOT": f"{cache}/vllm",
            "VLLM_CONFIG_ROOT": f"{cache}/config/vllm",
            "TRITON_CACHE_DIR": f"{cache}/triton",
            "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
            "FLASHINFER_WORKSPACE_BASE": cache,
            "CUDA_CACHE_PATH": f"{cache}/cuda",
        }
    kind, _, number = given.device.partition(":")
    if kind == "cuda" and number:
        # vLLM has no option for which card. Counted by bus, as the plan does.
        found["CUDA_VISIBLE_DEVICES"] = card(number, environ)
    return found | own


def card(number: str, environ: Mapping[str, str]) -> str:
    """The name of the card ``number``, among those that this process may see."""
    seen = [each.strip() for each in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()]
    index = int(number)
    return seen[index] if index < len(seen) else number
