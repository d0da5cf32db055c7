"""Opens Supertonic's four sessions and computes with each. Run by the engine's own Python; prints JSON last.

python -P sessions.py '{"model": …, "device": …, "threads": …, "cache": …, "outputs": …, "binding": …}'
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ondam_engines.kit.onnx_sessions import PROVIDERS, Opened, ProviderRefused, open_session, parse_device
from ondam_engines.supertonic import profiles
from ondam_engines.supertonic.model import Folder
from ondam_engines.supertonic.networks import NAMES

TIMES = 20


def main() -> None:
    """The whole of it."""
    given = json.loads(sys.argv[1])
    kind, card = parse_device(given["device"])
    model = Folder(Path(given["model"]))
    graphs, sound, style = model.graphs(), model.sound(), next(iter(model.voices().values()))
    before = used_mib(given["binding"], card) if kind != "cpu" else None
    held, sessions = [], {}
    for name in NAMES:
        options: dict[str, dict[str, object]] = {}
        if kind == "tensorrt":
            options["TensorrtExecutionProvider"] = {
                **profiles.tensorrt(name, sound.width, style),
                "trt_engine_cache_enable": 1,
                "trt_engine_cache_path": given["cache"],
                "trt_engine_cache_prefix": name,
                "trt_timing_cache_enable": 1,
                "trt_timing_cache_path": given["cache"],
                "trt_fp16_enable": 0,
            }
        how: dict[str, Any] = {"threads": given["threads"], "provider_options": options}
        shape = profiles.inputs(name, profiles.TYPICAL, sound.width, style)
        began = time.monotonic()
        try:
            opened = open_session(graphs[name], device=given["device"], **how)
            refused = ""
        except ProviderRefused as error:
            refused = str(error)
            opened = open_session(graphs[name], device=given["device"], fall_back=True, **how)
        held.append(opened.session)  # until the memory has been counted
        sessions[name] = {
            "refused": refused,
            "instead": {"device": opened.device, "why": opened.instead},
            "device": opened.device,
            "providers": opened.providers,
            "nodes": opened.nodes,
            "strayed": list(opened.strayed),
            "open_s": round(time.monotonic() - began, 3),
            **computed(opened, name, shape, kind, Path(given["outputs"])),
        }
    after = used_mib(given["binding"], card) if kind != "cpu" else None
    import onnxruntime

    print(
        json.dumps(
            {
                "asked": given["device"],
                "onnxruntime": onnxruntime.__version__,
                "available": onnxruntime.get_available_providers(),
                "providers_of": PROVIDERS,
                "sessions": sessions,
                "used_mib": [before, after],
            }
        )
    )


def computed(
    opened: Opened, name: str, shape: Any, kind: str, outputs: Path
) -> dict[str, float | bool | list[float] | None]:
    """Times of some runs, and how far the result is from the processor's."""
    # The same numbers for every provider.
    rng = np.random.default_rng(0)
    given = {part: filled(part, dims, rng) for part, dims in shape.items()}
    times = []
    for _ in range(1 + TIMES):
        began = time.monotonic()
        result = np.asarray(opened.session.run(None, given)[0])
        times.append((time.monotonic() - began) * 1000)
    file, off_by = outputs / f"{name}.npy", None
    if kind == "cpu":
        np.save(file, result)
    elif file.exists():
        off_by = float(np.abs(result - np.load(file)).max())
    return {
        "first_run_ms": round(times[0], 1),
        "run_ms": round(sorted(times[1:])[TIMES // 2], 2),
        "finite": bool(np.isfinite(result).all()),
        "off_by": off_by,
    }


def filled(part: str, dims: Any, rng: np.random.Generator) -> Any:
    """One input."""
    if part == "text_ids":
        return rng.integers(1, 64, dims)
    if part.endswith("mask"):
        return np.ones(dims, np.float32)
    if part in {"current_step", "total_step"}:
        return np.full(dims, {"current_step": 1, "total_step": 8}[part], np.float32)
    return rng.standard_normal(dims).astype(np.float32)


def used_mib(binding: str, card: int) -> int | None:
    """On the card, by everybody: asked with the planner's own module, which is a file that needs nothing."""
    try:
        import pynvml
    except ImportError:
        return None
    spec = importlib.util.spec_from_file_location("nvml", binding)
    assert spec is not None and spec.loader is not None
    nvml = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(nvml)
    cards = nvml.look(pynvml)["cards"]
    return cards[card]["used_mib"] if card < len(cards) else None


if __name__ == "__main__":
    main()
