"""TensorRT's engines on disk. They serve one model on one card with one driver and one set of libraries; for
anything else they are made anew, by ``ondam engines warm``, never while somebody waits."""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ondam_engines.kit import report
from ondam_engines.supertonic import profiles

MARK = "warmed.json"
"""Written last: without it the folder is half-made, and counts for nothing."""


class NotWarmed(Exception):
    """TensorRT would have to build its engines now, for minutes."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The engines for ``facts``, below ``cache``."""

    cache: Path
    facts: Mapping[str, str]
    """Whatever they depend on: hash of each graph, card, driver, versions, precision, shapes."""

    @property
    def folder(self) -> Path:
        """Where these engines are."""
        key = hashlib.sha256(json.dumps(dict(self.facts), sort_keys=True).encode()).hexdigest()
        return self.cache / key[:16]

    @property
    def made(self) -> bool:
        """Whether they are whole."""
        return (self.folder / MARK).is_file()

    def need(self) -> None:
        """Raises NotWarmed, saying what is different from the engines that are there."""
        if not self.made:
            raise NotWarmed(f"TensorRT is not prepared ({self._why()}): ondam engines warm supertonic")

    def mark(self) -> None:
        """They are whole."""
        beside = self.folder / f"{MARK}.new"
        beside.write_text(json.dumps(dict(self.facts), indent=1) + "\n", "utf-8")
        beside.replace(self.folder / MARK)

    def begin(self) -> None:
        """An empty folder, but for the timings of an earlier try: they only make the next one quicker."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MARK).unlink(missing_ok=True)

    def tensorrt(self) -> dict[str, str]:
        """The options of TensorRT's provider that say where they are."""
        return {
            "trt_engine_cache_enable": "1",
            "trt_engine_cache_path": str(self.folder),
            "trt_timing_cache_enable": "1",
            "trt_timing_cache_path": str(self.folder),
            "trt_fp16_enable": str(int(self.facts["dtype"] == "float16")),
        }

    def _why(self) -> str:
        marks = sorted(self.cache.glob(f"*/{MARK}"), key=lambda mark: mark.stat().st_mtime)
        if not marks:
            return "it never was"
        last: dict[str, str] = json.loads(marks[-1].read_text("utf-8"))
        changed = [name for name in self.facts if last.get(name) != self.facts[name]]
        return "other " + ", ".join(changed)


def facts(graphs: Mapping[str, Path], card: int, dtype: str) -> dict[str, str]:
    """What engines for these graphs on this card depend on."""
    found = {f"graph {name}": report.sha256(path) for name, path in graphs.items()}
    found |= card_facts(card)
    # TensorRT's wheel is loaded only later; the system's library is asked itself.
    found |= report.versions(["onnxruntime-gpu", "onnxruntime", "tensorrt-cu13-libs"])
    shapes = (profiles.SHORTEST, profiles.TYPICAL, profiles.LONGEST_SHAPE)
    return found | {"TensorRT": tensorrt_version(), "dtype": dtype, "shapes": repr(shapes)}


def card_facts(card: int) -> dict[str, str]:
    """Name, compute capability and driver of a card, from NVML."""
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(card)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        return {
            "card": str(nvml.nvmlDeviceGetName(handle)),
            "compute capability": f"{major}.{minor}",
            "driver": str(nvml.nvmlSystemGetDriverVersion()),
        }
    finally:
        nvml.nvmlShutdown()


def tensorrt_version() -> str:
    """Of the library that is loaded, or would be."""
    try:
        return str(ctypes.CDLL("libnvinfer.so.10").getInferLibVersion())
    except (OSError, AttributeError) as error:
        return f"unknown ({error})"
