"""Compares what an engine says it got with what the plan asked for. A difference is never silent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ondam.errors import EngineError
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.status import Fault

LARGEST = 1024 * 1024
"""Bytes. A report is about one kilobyte."""

SCHEMA = 1

CPU = "cpu"
"""How every name of the processor begins: CPUExecutionProvider (onnxruntime), CPU (llama.cpp), cpu."""

PLANNED_IN_OPTIONS = ("dtype", "quantization", "cuda_graphs")
"""Options that, where an engine has them and they are set, must come back in its report by that name."""

UNDECIDED = (None, "", "auto", "default")


def read_report(path: Path, engine: str) -> dict[str, Any]:
    """The report at ``path``. Raises EngineError when it is missing or is no report."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise EngineError("engine_report_broken", engine=engine, path=path, reason=error.strerror) from error
    if len(raw) > LARGEST:
        raise EngineError("engine_report_broken", engine=engine, path=path, reason=f"over {LARGEST} bytes")
    try:
        report = json.loads(raw)
    except ValueError as error:
        raise EngineError("engine_report_broken", engine=engine, path=path, reason=error) from error
    except RecursionError as error:
        raise EngineError(
            "engine_report_broken", engine=engine, path=path, reason="nested too deep"
        ) from error
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise EngineError("engine_report_broken", engine=engine, path=path, reason=f"not schema {SCHEMA}")
    return report


def differences(planned: PlannedEngine, report: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Everything that is not as planned."""
    return tuple(_differences(planned, report))


def _differences(planned: PlannedEngine, report: Mapping[str, Any]) -> Iterator[Fault]:
    def differs(what: str, wanted: object, got: object) -> Fault:
        facts = {"engine": planned.engine, "what": what, "wanted": wanted, "got": got}
        return Fault("engine_differs", facts)

    if (device := report.get("device")) != planned.device:
        yield differs("device", planned.device, device)
    yield from _weights(planned, report)
    providers = report.get("providers")
    for session, offered in providers.items() if isinstance(providers, Mapping) else ():
        first = offered[0] if isinstance(offered, list) and offered else None
        if str(first).lower().startswith(CPU) != planned.device.startswith(CPU):
            yield differs(f"provider of {session}", planned.device, first)
    threads = report.get("threads")
    # A voice without weights computes on one thread however many it is given.
    if (
        threads is not None
        and threads != planned.threads
        and not (planned.model_path is None and threads == 1)
    ):
        yield differs("threads", planned.threads, threads)
    for name in PLANNED_IN_OPTIONS:
        wanted = planned.options.get(name)
        if wanted not in UNDECIDED and report.get(name) != wanted:
            yield differs(name, wanted, report.get(name))
    # CTranslate2 makes int8 into int8_float32 or int8_float16 as the device has it, which is what was meant.
    compute = planned.options.get("compute_type")
    if compute not in UNDECIDED and not str(report.get("dtype")).startswith(str(compute)):
        yield differs("compute_type", compute, report.get("dtype"))


def _weights(planned: PlannedEngine, report: Mapping[str, Any]) -> Iterator[Fault]:
    loads, expected = report.get("weight_loads"), 0 if planned.model_path is None else 1
    if loads != expected:
        facts = {"engine": planned.engine, "loads": loads, "expected": expected}
        yield Fault("engine_weight_loads", facts)
    model = report.get("model")
    found = model.get("sha256") if isinstance(model, Mapping) else None
    if planned.model_sha256 is not None and found != planned.model_sha256:
        yield Fault(
            "engine_wrong_model",
            {
                "engine": planned.engine,
                "model": planned.model,
                "wanted": planned.model_sha256,
                "found": found,
            },
        )
