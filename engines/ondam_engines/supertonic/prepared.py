"""TensorRT's engines on disk. They serve one model on one card with one driver and one set of libraries; for
anything else they are made anew, by ``ondam engines warm``, never while somebody waits."""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ondam_engines.kit import report
from ondam_engines.kit.onnx_sessions import NVINFER, lacks_tensorrt, parse_device, why_not
from ondam_engines.supertonic import profiles

WARM = "ondam engines warm supertonic"

MARK = "warmed.json"
"""Written last: without it the folder is half-made, and counts for nothing."""

LONGEST_NAME = 256

CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
"""``CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…`` of cuda.h."""


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

    def lacking(self) -> str | None:
        """Why they cannot be used, with what to type; None where they are whole."""
        return None if self.made else f"TensorRT is not prepared ({self._why()}): {WARM}"

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


@dataclass(frozen=True, slots=True)
class Way:
    """How the sessions are opened."""

    device: str
    prepared: Prepared | None = None
    """TensorRT's engines, where it is used."""
    instead: str | None = None
    """Why it is not the one that was asked for. What the opening itself finds is told by that."""


def way(device: str, prepare: Callable[[int], Prepared]) -> Way:
    """TensorRT where its engines are made; else CUDA on the same card, and why: the daemon judges.

    ``device`` as ``open_session`` takes it. ``prepare`` is given the card's number.
    """
    kind, card = parse_device(device)
    if kind != "tensorrt" or why_not(kind) is not None:
        return Way(device)
    lacking = lacks_tensorrt()
    prepared = prepare(card) if lacking is None else None
    if prepared is not None:
        lacking = prepared.lacking()
    return Way(device, prepared) if lacking is None else Way(f"cuda:{card}", None, f"no tensorrt: {lacking}")


def facts(graphs: Mapping[str, Path], card: int, dtype: str) -> dict[str, str]:
    """What engines for these graphs on this card depend on."""
    found = {f"graph {name}": report.sha256(path) for name, path in graphs.items()}
    found |= card_facts(card)
    # TensorRT's wheel is loaded only later; the system's library is asked itself.
    found |= report.versions(["onnxruntime-gpu", "onnxruntime", "tensorrt-cu13-libs"])
    shapes = (profiles.SHORTEST, profiles.TYPICAL, profiles.LONGEST_SHAPE)
    return found | {"TensorRT": tensorrt_version(), "dtype": dtype, "shapes": repr(shapes)}


def card_facts(card: int) -> dict[str, str]:
    """Name, compute capability and driver of a card. Raises OSError where CUDA has no such card."""
    # Not from NVML, which counts the cards that CUDA_VISIBLE_DEVICES hides too.
    cuda = ctypes.CDLL("libcuda.so.1")
    device, name = ctypes.c_int(), ctypes.create_string_buffer(LONGEST_NAME)
    major, minor = ctypes.c_int(), ctypes.c_int()
    for status in (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), card),
        cuda.cuDeviceGetName(name, LONGEST_NAME, device),
        cuda.cuDeviceGetAttribute(ctypes.byref(major), CAPABILITY_MAJOR, device),
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), CAPABILITY_MINOR, device),
    ):
        if status != 0:
            raise OSError(f"CUDA tells nothing of card {card}: status {status}")
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    try:
        driver = str(nvml.nvmlSystemGetDriverVersion())
    finally:
        nvml.nvmlShutdown()
    return {
        "card": name.value.decode(),
        "compute capability": f"{major.value}.{minor.value}",
        "driver": driver,
    }


def tensorrt_version() -> str:
    """Of the library that is loaded, or would be."""
    try:
        return str(ctypes.CDLL(NVINFER).getInferLibVersion())
    except (OSError, AttributeError) as error:
        return f"unknown ({error})"
