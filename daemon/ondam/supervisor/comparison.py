"""Compares what was asked for with what an engine got: with the plan, and with its own life before. Pure.

Every difference is a fault whose facts are ``engine``, ``what``, ``wanted``, ``got`` and ``why`` (what the
engine itself says about it, or nothing). What a plan leaves open may be anything, but may not get worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ondam.messages import Phrase
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.status import Fault, in_words

CPU = "cpu"
"""How every name of the processor begins: CPUExecutionProvider (onnxruntime), CPU (llama.cpp), cpu."""

ON_CUDA = ("cuda", "tensorrt", "nvtensorrt")
"""How the names of all begin that compute on NVIDIA's cards."""

ON_PROCESSOR = (CPU, "dnnl", "xnnpack", "acl", "armnn", "azure", "none", "unknown")
"""onnxruntime's other ways of not computing on a card, and what says nothing."""

MEMORY_TOLERANCE = 0.05
MEMORY_TOLERANCE_GIB = 0.5
"""How far an engine may be over its share of a card: the larger of both. Allocators round up, and the CUDA
context, which grows with the driver, is a few hundred MiB."""

UNBELIEVABLE_MIB = 2**40
"""No machine has so much: what is told is no memory."""

WEIGHTS_ON_CARD = 0.9
"""Part of its weights that an engine must hold on its card at the least. Below, they are somewhere else."""

UNDECIDED = (None, "", "auto", "default")
"""Values of an option that leave the choice to the engine."""

NOT_QUANTIZED = ("bf16", "f16", "f32", "none")

KV_OPTIONS = ("kv_dtype", "kv_cache_dtype", "cache_type")
CONTEXT_OPTIONS = ("context_length", "max_model_len")
"""What engines call the same thing. Options with these names are compared wherever an engine has them."""

SAME = {
    **dict.fromkeys(("bfloat16", "bf16"), "bf16"),
    **dict.fromkeys(("float16", "fp16", "half", "f16"), "f16"),
    **dict.fromkeys(("float32", "fp32", "float", "f32"), "f32"),
}


def differences(planned: PlannedEngine, report: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Everything that is not as planned."""
    return tuple(_Comparison(planned, report).faults())


def worse(planned: PlannedEngine, before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Fault, ...]:
    """What an engine had in an earlier life and has lost; beside what ``differences`` tells already."""
    told = {fault.facts.get("what") for fault in differences(planned, now)}
    compared = _Comparison(planned, now)
    found = []
    for what, had, has in _lost(before, now):
        if what not in told and not (what.startswith("provider") and "device" in told):
            found.append(compared.fault("engine_worse", what, had, has, name=in_words(what)))
            told.add(what)
    return tuple(found)


def prices(planned: PlannedEngine, report: Mapping[str, Any]) -> tuple[Fault, ...]:
    """What was asked for and makes answers slow: no difference, and told as long as it is so."""
    compared = _Comparison(planned, report)
    off = planned.options.get("cuda_graphs") is False and report.get("cuda_graphs") is False
    if not (off and compared.on_gpu):
        return ()
    return (Fault("engine_graphs_off", {"engine": planned.engine}),)


class _Comparison:
    """One report beside one plan."""

    def __init__(self, planned: PlannedEngine, report: Mapping[str, Any]) -> None:
        self.planned = planned
        self.report = report
        why = report.get("why")
        self.why: Mapping[str, Any] = why if isinstance(why, Mapping) else {}
        self.on_gpu = not planned.device.lower().startswith(CPU)

    def faults(self) -> Iterator[Fault]:
        found = [
            *self._device(),
            *self._weights(),
            *self._threads(),
            *self._types(),
            *self._graphs(),
            *self._context(),
            *self._memory(),
        ]
        yield from found
        yield from self._untold(found)

    def fault(self, code: str, what: str, wanted: object, got: object, **more: object) -> Fault:
        facts = {
            "engine": self.planned.engine,
            "what": what,
            "wanted": wanted,
            "got": Phrase("differs_nothing") if got is None else got,
            "why": self._because(what),
        }
        return Fault(code, {**facts, **more})

    def _because(self, what: str) -> Phrase | str:
        keys = [what.partition(" of ")[2] or what]
        if what == "device":
            keys += list(self.why)  # a session's own reason is that of the whole engine
        for key in keys:
            if self.why.get(key):
                return Phrase("differs_why", why=str(self.why[key])[:300])
        return ""

    def _device(self) -> Iterator[Fault]:
        wanted, got = self.planned.device, self.report.get("device")
        fell = self.on_gpu and str(got).lower().startswith(CPU)
        if _card(got) != _card(wanted):
            yield self.fault("engine_lost_gpu" if fell else "engine_differs_device", "device", wanted, got)
        providers, nodes = self.report.get("providers"), self.report.get("nodes")
        counted = nodes if isinstance(nodes, Mapping) else {}
        for session, offered in providers.items() if isinstance(providers, Mapping) else ():
            first = offered[0] if isinstance(offered, list) and offered else None
            wanted = self._provider()
            if not _computes(first, wanted):
                if not (fell and _computes(first, CPU)):  # told with the device
                    yield self.fault(
                        "engine_differs_provider", f"provider of {session}", wanted, first, session=session
                    )
            elif self.on_gpu:
                yield from self._nodes(session, wanted, counted.get(session))

    def _provider(self) -> str:
        """The provider that the plan names, else the device, which any but the CPU's may serve."""
        named = self.planned.options.get("provider")
        return self.planned.device if named in UNDECIDED or not self.on_gpu else str(named)

    def _nodes(self, session: str, wanted: str, counts: object) -> Iterator[Fault]:
        if not isinstance(counts, Mapping):
            return
        counts = {provider: count for provider, count in counts.items() if isinstance(count, int)}
        of = sum(counts.values())
        if of <= 0:
            return
        there = sum(count for provider, count in counts.items() if _computes(provider, wanted))
        on_cpu = sum(count for provider, count in counts.items() if _computes(provider, CPU))
        # The shapes of a graph with dynamic axes are computed on the CPU by design; not most of the graph.
        if there == 0 or on_cpu * 2 > of:
            most = max(counts, key=lambda provider: counts[provider])
            facts = {"session": session, "count": of - there if there == 0 else on_cpu, "of": of}
            yield self.fault("engine_differs_nodes", f"nodes of {session}", wanted, most, **facts)

    def _weights(self) -> Iterator[Fault]:
        planned, report = self.planned, self.report
        loads, expected = report.get("weight_loads"), 0 if planned.model_path is None else 1
        if loads != expected:
            code = "engine_loads_untold" if loads is None else "engine_weight_loads"
            yield self.fault(code, "weight_loads", expected, loads, loads=loads, expected=expected)
        model = report.get("model")
        found = model.get("sha256") if isinstance(model, Mapping) else None
        if planned.model_sha256 is not None and found != planned.model_sha256:
            facts = {"model": planned.model, "found": found}
            yield self.fault("engine_wrong_model", "model", planned.model_sha256, found, **facts)

    def _threads(self) -> Iterator[Fault]:
        planned, threads = self.planned, self.report.get("threads")
        # A voice without weights computes on one thread however many it is given.
        free = planned.model_path is None and threads == 1
        if threads is not None and threads != planned.threads and not free:
            yield self.fault("engine_differs", "threads", planned.threads, threads)

    def _types(self) -> Iterator[Fault]:
        report, options = self.report, self.planned.options
        for option in ("dtype", "compute_type"):
            wanted = options.get(option)
            # CTranslate2 makes int8 into int8_float32 or int8_float16 as the device has it: that was meant.
            if wanted not in UNDECIDED and not _agree(wanted, report.get("dtype")):
                yield self.fault("engine_differs_dtype", option, wanted, report.get("dtype"))
        wanted = options.get("quantization")
        if wanted in UNDECIDED and options.get("compute_type") in UNDECIDED:
            # Not of engines that convert the weights while they load them, as CTranslate2 does.
            wanted = self.planned.quantization
        if wanted not in UNDECIDED and not _quantized_as(wanted, report.get("quantization")):
            yield self.fault(
                "engine_differs_quantization", "quantization", wanted, report.get("quantization")
            )
        for option in KV_OPTIONS:
            # llama.cpp's engines put the cache's type where others have that of the computation.
            got = report.get("kv_dtype") or (report.get("dtype") if option == "cache_type" else None)
            if options.get(option) not in UNDECIDED and not _agree(options[option], got):
                yield self.fault("engine_differs_kv", "kv_dtype", options[option], got)

    def _graphs(self) -> Iterator[Fault]:
        options, graphs, mode = (
            self.planned.options,
            self.report.get("cuda_graphs"),
            self.report.get("graph_mode"),
        )
        asked = options.get("cuda_graphs") is True or options.get("enforce_eager") is False
        # Without a card there are none to be had: null, and no fault.
        lost = graphs is False or mode == "eager" or (graphs is None and self.on_gpu)
        if asked and lost:
            yield self.fault("engine_lost_graphs", "cuda_graphs", True, graphs)
        elif options.get("cuda_graphs") is False and graphs:
            yield self.fault("engine_differs_graphs", "cuda_graphs", False, graphs)
        elif options.get("graph_mode") not in UNDECIDED and not _agree(options["graph_mode"], mode):
            yield self.fault("engine_differs_graphs", "graph_mode", options["graph_mode"], mode)

    def _context(self) -> Iterator[Fault]:
        got = self.report.get("context_length")
        for option in CONTEXT_OPTIONS:
            wanted = self.planned.options.get(option)
            # Engines round up to whole blocks; 0 is "as the model has it".
            if isinstance(wanted, int) and wanted > 0 and (not isinstance(got, int) or got < wanted):
                yield self.fault("engine_differs_context", "context_length", wanted, got)

    def _memory(self) -> Iterator[Fault]:
        planned, got_mib = self.planned, self.report.get("gpu_memory_mib")
        if not self.on_gpu or not isinstance(got_mib, int | float) or _card(self.report.get("device")) == CPU:
            return  # null: the driver does not tell, in a container for instance
        if not 0 <= got_mib < UNBELIEVABLE_MIB:
            facts = ("gpu_memory", _gib(planned.memory_gib), f"{str(got_mib)[:20]} MiB")
            yield self.fault("engine_differs_memory", *facts)
            return
        got, share = got_mib / 1024, planned.memory_gib
        if planned.need is not None:
            # Without the layers that lie in the main memory.
            share = planned.need.gib
        if share and got > share + max(share * MEMORY_TOLERANCE, MEMORY_TOLERANCE_GIB):
            yield self.fault("engine_differs_memory", "gpu_memory", _gib(share), _gib(got))
            return
        weights = planned.need.of("weights") if planned.need is not None else 0.0
        if got_mib == 0 or got < weights * WEIGHTS_ON_CARD:
            yield self.fault("engine_not_on_card", "gpu_memory", _gib(weights or share), _gib(got))

    def _untold(self, found: list[Fault]) -> Iterator[Fault]:
        """What the engine says is not as asked, and nothing above has shown."""
        known = {str(fault.facts["what"]).rpartition(" of ")[2] for fault in found}
        # With the device lost, what each session says of it is told already.
        sessions = self.report.get("providers")
        if "device" in known and isinstance(sessions, Mapping):
            known |= set(sessions)
        if self.planned.options.get("cuda_graphs") is False:
            known.add("cuda_graphs")  # none were asked for
        for what, why in self.why.items():
            if what not in known and why:
                facts = {"name": what, "why": str(why)[:300]}
                yield self.fault(
                    "engine_tells", what, self.planned.device, self.report.get("device"), **facts
                )


def _lost(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """What, what it was, what it is."""
    if _rank(now.get("device")) < _rank(before.get("device")):
        yield "device", before.get("device"), now.get("device")
    had, has = before.get("providers"), now.get("providers")
    later_by_session = has if isinstance(has, Mapping) else {}
    for session, offered in had.items() if isinstance(had, Mapping) else ():
        first, later = _first(offered), _first(later_by_session.get(session))
        if _rank(later) < _rank(first):
            yield f"provider of {session}", first, later
    if before.get("cuda_graphs") and not now.get("cuda_graphs"):
        yield "cuda_graphs", True, now.get("cuda_graphs")
    for what in ("dtype", "quantization", "kv_dtype", "graph_mode"):
        if before.get(what) not in UNDECIDED and now.get(what) != before.get(what):
            yield what, before.get(what), now.get(what)
    context, later = before.get("context_length"), now.get("context_length")
    if isinstance(context, int) and (not isinstance(later, int) or later < context):
        yield "context_length", context, later


def _first(offered: object) -> object:
    return offered[0] if isinstance(offered, list) and offered else None


def _rank(device: object) -> int:
    """Of a device or a provider: nothing, the CPU, a card, a card with TensorRT."""
    name = str(device or "").lower()
    if not name:
        return 0
    if name.startswith(CPU):
        return 1
    return 3 if name.startswith("tensorrt") else 2


def _card(device: object) -> str:
    """``cuda`` is ``cuda:0``."""
    name = str(device).lower()
    return name if name.startswith(CPU) or ":" in name else f"{name}:0"


def _computes(provider: object, wanted: str) -> bool:
    """Whether ``provider`` is what ``wanted`` names: a device (any but the CPU's serves it) or a provider."""
    if provider is None:
        return False
    name, wish = str(provider).lower(), wanted.lower().removesuffix("executionprovider")
    if wish.startswith(CPU):
        return name.startswith(CPU)
    kind, _, number = wish.partition(":")
    if kind in {"tensorrt", "coreml", "openvino", "migraphx"} or wish == "cuda":
        return name.startswith(kind)
    if kind == "cuda" and number:
        return name.startswith(ON_CUDA)
    return bool(name) and not name.startswith(ON_PROCESSOR)


def _type(name: object) -> str:
    """One spelling: ``torch.bfloat16`` → ``bf16``, ``Q4_K - Medium`` → ``q4_k_m``."""
    plain = str(name).lower().removeprefix("torch.")
    plain = re.sub(r" - (small|medium|large)\b", lambda size: f"_{size[1][0]}", plain)
    plain = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    return SAME.get(plain, plain)


def _agree(wanted: object, got: object) -> bool:
    """Whether ``got`` is ``wanted`` or a kind of it: ``fp8_e4m3`` is an ``fp8``."""
    if got is None:
        return False
    wish, has = _type(wanted), _type(got)
    return has == wish or has.startswith(f"{wish}_")


def _quantized_as(wanted: object, got: object) -> bool:
    """As ``_agree``; weights that are not quantised may be reported as such, by their type or not at all."""
    if _type(wanted) in NOT_QUANTIZED:
        return got in UNDECIDED or _type(got) in NOT_QUANTIZED
    return _agree(wanted, got)


def _gib(gib: float) -> str:
    return f"{gib:.1f} GiB"
