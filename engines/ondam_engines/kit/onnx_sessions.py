"""Opens onnxruntime sessions on the device that was asked for, and says what each of them really got.

onnxruntime falls back by itself, and quietly: asked for CUDA or TensorRT where a library, the driver or the
card is missing, it prints a line and computes on the CPU; also later, in the middle of ``run``. Here nothing
falls back unless the caller says ``fall_back=True``, and then ``Opened.instead`` tells why.

onnxruntime is imported when a session is opened: only engines that carry it use this module.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from ondam_engines.kit.loads import Loads

Kind = Literal["cpu", "cuda", "tensorrt"]

PROVIDERS: Mapping[Kind, tuple[str, ...]] = {
    "cpu": ("CPUExecutionProvider",),
    "cuda": ("CUDAExecutionProvider",),
    # What TensorRT has no layer for runs on the same card.
    "tensorrt": ("TensorrtExecutionProvider", "CUDAExecutionProvider"),
}
"""What is asked for, in this order and nothing else. onnxruntime adds the CPU to all of them by itself."""

LESS: Mapping[Kind, tuple[Kind, ...]] = {"cpu": (), "cuda": ("cpu",), "tensorrt": ("cuda", "cpu")}
"""What is tried instead, where the caller allows it."""

CPU = "CPUExecutionProvider"

SHAPE_ARITHMETIC = frozenset(
    {
        *("Shape", "Size", "Gather", "GatherND", "GatherElements", "ScatterND", "Slice", "Concat", "Split"),
        *("Squeeze", "Unsqueeze", "Reshape", "Flatten", "Expand", "Tile", "Transpose", "Identity"),
        *("Constant", "ConstantOfShape", "Range", "NonZero", "Cast", "Where", "If", "Loop"),
        *("Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs", "Sign", "Min", "Max", "Clip"),
        *("Floor", "Ceil", "Round", "ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin", "CumSum"),
        *("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Not"),
    }
)
"""Operators that onnxruntime puts on the CPU by design (``GetCpuPreferredNodes``): they compute shapes from
shapes, a few whole numbers, and would only be copied back and forth. Anything else there is a fallback."""

NVINFER = "libnvinfer.so.10"
"""TensorRT, of the major version that onnxruntime-gpu links."""

CUDA_ERROR_NO_DEVICE = 100
"""Of ``cuInit``: a driver without a card that it can use (or one hidden by ``CUDA_VISIBLE_DEVICES``)."""


class ProviderRefused(Exception):
    """The device that was asked for cannot be had; the text says why."""


class Session(Protocol):
    """The part of ``onnxruntime.InferenceSession`` that engines use."""

    def run(self, outputs: Any, inputs: Any, run_options: Any = None) -> list[Any]:
        """Compute."""

    def get_providers(self) -> list[str]:
        """What it has, first choice first."""

    def get_inputs(self) -> list[Any]:
        """Names, types and shapes."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session and the truth about it."""

    session: Session
    device: str
    """``cpu`` or ``cuda:N``: where it computes. TensorRT is a way of computing on ``cuda:N``."""
    providers: list[str]
    """``get_providers()``. Goes into ``report.providers`` under the session's name."""
    nodes: dict[str, int] = field(default_factory=dict)
    """Provider to how many operators of the graph it computes; empty where this onnxruntime cannot tell.
    Goes into ``report.nodes`` under the session's name."""
    strayed: tuple[str, ...] = ()
    """Kinds of operators that compute on the CPU of a session that is not to. Empty unless ``fall_back``."""
    instead: str | None = None
    """Why it is not what was asked for, else None. Goes into ``report.why`` under the session's name."""
    loads: int = 1
    """How often the file was read for it: once for each device that was tried."""


def open_session(
    path: Path,
    *,
    device: str,
    threads: int,
    fall_back: bool = False,
    every_node: bool = False,
    prepare: Callable[[Any], None] | None = None,
    provider_options: Mapping[str, Mapping[str, object]] | None = None,
) -> Opened:
    """The model at ``path`` on ``device``: ``cpu``, ``cuda``, ``cuda:N``, ``tensorrt`` or ``tensorrt:N``.

    ``fall_back``: where the device cannot be had, take the next best (TensorRT, CUDA, CPU) and tell in
    ``instead``; for engines, whose report the daemon judges. ``every_node``: refuse even shape arithmetic on
    the CPU, as a session needs whose whole run is captured in a CUDA graph. ``prepare`` is given the
    ``SessionOptions``. ``provider_options``: provider name to its options (caches, shape profiles).

    Raises ProviderRefused; ValueError on a device that is none; FileNotFoundError; onnxruntime's own error on
    a broken model.
    """
    kind, card = parse_device(device)
    if not path.is_file():
        raise FileNotFoundError(path)
    whys: list[str] = []
    loads = Loads()
    for candidate in (kind, *(LESS[kind] if fall_back else ())):
        opening = _Opening(path, candidate, card, threads, every_node, prepare, provider_options or {})
        try:
            opened = opening.open(loads, keep_strays=fall_back)
        except ProviderRefused as error:
            why = str(error)
            # Without a driver there is neither: told once.
            if not whys or why.partition(": ")[2] != whys[-1].partition(": ")[2]:
                whys.append(why)
            continue
        told = [*whys, *([f"on the CPU: {', '.join(opened.strayed)}"] if opened.strayed else [])]
        return replace(opened, instead="; ".join(told) or None, loads=loads.count)
    raise ProviderRefused("; ".join(whys))


def parse_device(device: str) -> tuple[Kind, int]:
    """``cuda:1`` → (``cuda``, 1). Raises ValueError."""
    name, _, number = device.partition(":")
    for kind in PROVIDERS:
        if name == kind and (not number or number.isdecimal()):
            return kind, int(number or 0)
    raise ValueError(f"{device!r} is no device; known are cpu, cuda:N and tensorrt:N")


def why_not(kind: Kind) -> str | None:
    """Why ``kind`` cannot be had here, as far as can be told without opening a session, else None."""
    if kind == "cpu":
        return None
    onnxruntime = importlib.import_module("onnxruntime")
    wanted = PROVIDERS[kind][0]
    if wanted not in onnxruntime.get_available_providers():
        return f"onnxruntime {onnxruntime.__version__} is a build without {wanted}"
    return driver_fault(str(getattr(onnxruntime, "cuda_version", "") or ""))


def lacks_tensorrt() -> str | None:
    """Why the loader cannot have TensorRT's library, else None. Loads what comes with wheels on the way."""
    _load_libraries(importlib.import_module("onnxruntime"), "tensorrt")
    try:
        ctypes.CDLL(NVINFER)
    except OSError as error:
        return str(error)
    return None


def driver_fault(built_for: str) -> str | None:
    """What is wrong with the NVIDIA driver for a program built for CUDA ``built_for`` ("13.0"), or None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return "no NVIDIA driver" if "No such file" in str(error) else f"no NVIDIA driver ({error})"
    status = driver.cuInit(0)
    if status != 0:
        return "the NVIDIA driver finds no card" if status == CUDA_ERROR_NO_DEVICE else f"cuInit: {status}"
    version = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    # 12040 is CUDA 12.4. A driver serves every program of its major version and below.
    major, minor = version.value // 1000, version.value % 1000 // 10
    needed = built_for.partition(".")[0]
    if needed.isdecimal() and major < int(needed):
        return f"the NVIDIA driver is for CUDA {major}.{minor}, CUDA {needed} is needed"
    return None


@dataclass(frozen=True, slots=True)
class _Opening:
    path: Path
    kind: Kind
    card: int
    threads: int
    every_node: bool
    prepare: Callable[[Any], None] | None
    provider_options: Mapping[str, Mapping[str, object]]

    def open(self, loads: Loads, *, keep_strays: bool) -> Opened:
        onnxruntime = importlib.import_module("onnxruntime")
        if (why := why_not(self.kind)) is not None:
            raise ProviderRefused(f"no {self.kind}: {why}")
        if self.kind != "cpu":
            _load_libraries(onnxruntime, self.kind)
        tells_nodes = hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        if self.prepare is not None:
            self.prepare(options)
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        if self.kind != "cpu" and (self.every_node or not tells_nodes):
            # Where each operator went cannot be seen afterwards, or none may be there. Not otherwise: it
            # refuses nearly every model with a dynamic axis, whose shapes are computed on the CPU by design.
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        try:
            # enable_fallback=0: else it opens the session anew on the CPU, now and whenever a run fails.
            session = loads.counted(onnxruntime.InferenceSession)(
                str(self.path), options, providers=self._providers(), enable_fallback=0
            )
        except Exception as error:
            if self.kind == "cpu" or not _is_about_providers(str(error)):
                raise
            raise ProviderRefused(f"no {self.kind}: {self._cause(onnxruntime) or _line(error)}") from error
        return self._judged(onnxruntime, session, tells_nodes=tells_nodes, keep_strays=keep_strays)

    def _providers(self) -> list[tuple[str, dict[str, str]]]:
        found = []
        for name in PROVIDERS[self.kind]:
            own = {} if self.kind == "cpu" else {"device_id": str(self.card)}
            given = {key: str(value) for key, value in self.provider_options.get(name, {}).items()}
            found.append((name, {**own, **given}))
        return found

    def _judged(self, onnxruntime: Any, session: Any, *, tells_nodes: bool, keep_strays: bool) -> Opened:
        wanted, providers = PROVIDERS[self.kind][0], list(session.get_providers())
        if providers[0] != wanted:
            # Asked for CUDA with a library missing, onnxruntime hands over a session on the CPU all the same.
            cause = self._cause(onnxruntime) or f"got {', '.join(providers)}"
            raise ProviderRefused(f"no {self.kind}: {cause}")
        device = "cpu" if self.kind == "cpu" else f"cuda:{self.card}"
        operators = _assigned(session) if tells_nodes else {}
        nodes = {provider: len(kinds) for provider, kinds in operators.items()}
        if self.kind == "cpu":
            return Opened(session, device, providers, nodes)
        if nodes and wanted not in nodes:
            raise ProviderRefused(f"no {self.kind}: not one operator of {self.path.name} runs on {wanted}")
        strays = Counter(kind for kind in operators.get(CPU, ()) if kind not in SHAPE_ARITHMETIC)
        strayed = tuple(f"{kind} ×{count}" for kind, count in sorted(strays.items()))
        if strayed and not keep_strays:
            raise ProviderRefused(f"of {self.path.name} the CPU would compute {', '.join(strayed)}")
        return Opened(session, device, providers, nodes, strayed)

    def _cause(self, onnxruntime: Any) -> str | None:
        """Which shared library of the provider is missing; onnxruntime tells that to stderr alone."""
        folder = Path(onnxruntime.__file__).parent / "capi"
        name = PROVIDERS[self.kind][0].removesuffix("ExecutionProvider").lower()
        for library in ("shared", name):
            file = folder / f"libonnxruntime_providers_{library}.so"
            if not file.exists():
                continue
            try:
                # Only after a failure: loaded before onnxruntime does, it would lack what that prepares.
                ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                return str(error)
        return None


def _assigned(session: Any) -> dict[str, list[str]]:
    """Provider to the kinds of operators that it computes."""
    found: dict[str, list[str]] = {}
    for subgraph in session.get_provider_graph_assignment_info():
        found.setdefault(subgraph.ep_name, []).extend(node.op_type for node in subgraph.get_nodes())
    return found


def _load_libraries(onnxruntime: Any, kind: Kind) -> None:
    """Load CUDA, cuDNN and TensorRT where wheels put them, which is no place the loader looks at."""
    if hasattr(onnxruntime, "preload_dlls"):
        # It prints what it does not find; the opening tells that in better words.
        with contextlib.redirect_stdout(None):
            onnxruntime.preload_dlls(directory="")
    if kind != "tensorrt":
        return
    # Not from a wheel: the system's loader finds it, or the opening tells.
    with contextlib.suppress(ImportError):
        _load_all(map(Path, importlib.import_module("tensorrt_libs").__path__))


def _load_all(folders: Iterable[Path]) -> None:
    for folder in folders:
        # In this order: each needs the one before.
        for pattern in ("libnvinfer.so.*", "libnvinfer_plugin.so.*", "libnvonnxparser.so.*"):
            for file in sorted(folder.glob(pattern)):
                with contextlib.suppress(OSError):  # the opening that follows tells which one is missing
                    ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)


def _is_about_providers(text: str) -> bool:
    signs = ("TensorRT", "CUDA", "CPU EP", "ExecutionProvider", "cudnn", "CUDNN", "cublas", "CUBLAS")
    return any(sign in text for sign in signs)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
