"""Reads what an engine says it got. What it is compared with: ``comparison``."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Annotated, Any

import pydantic

from ondam.errors import EngineError

LARGEST = 1024 * 1024
"""Bytes. A report is about one kilobyte."""

SCHEMA = 1

Count = Annotated[int, pydantic.Field(ge=0, lt=2**53)]
"""What every reader of JSON can hold exactly."""

Mib = Annotated[float, pydantic.Field(ge=0, lt=2**53, allow_inf_nan=False)]


class _Weights(pydantic.BaseModel, strict=True):
    id: str | None = None
    path: str | None = None
    sha256: str | None = None


class _Report(pydantic.BaseModel, strict=True):
    """What every field is that is there: a number in quotes or one below zero would be compared with nothing.

    Which of them are not there is for the comparison to tell.
    """

    device: str | None = None
    threads: Count | None = None
    model: _Weights | None = None
    weight_loads: Count | None = None
    dtype: str | None = None
    quantization: str | None = None
    providers: dict[str, list[str]] | None = None
    nodes: dict[str, dict[str, Count]] | None = None
    cuda_graphs: bool | None = None
    graph_mode: str | None = None
    context_length: Count | None = None
    kv_dtype: str | None = None
    memory_mib: Mib | None = None
    gpu_memory_mib: Mib | None = None
    why: dict[str, str] | None = None
    versions: dict[str, str] | None = None
    network: str | None = None
    pid: Count | None = None


def read_report(path: Path, engine: str) -> dict[str, Any]:
    """The report at ``path``. Raises EngineError when it is missing or is no report. Never waits."""
    try:
        return _checked(json.loads(_bytes(path), parse_constant=_no_such_number))
    except OSError as error:
        reason = error.strerror or str(error)
    except RecursionError:
        reason = "nested too deep"
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))[:100]}: {first['msg']}"
    except ValueError as error:
        reason = str(error)[:200]
    raise EngineError("engine_report_broken", engine=engine, path=path, reason=reason)


def _bytes(path: Path) -> bytes:
    """Of a file, and of nothing else: opening a pipe would wait for somebody to write."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("no file")
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise ValueError(f"over {LARGEST} bytes")
    return raw


def _checked(report: object) -> dict[str, Any]:
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise ValueError(f"not schema {SCHEMA}")
    _Report.model_validate(report)
    # It goes on to clients as JSON: no number that JSON has not (1e999), no half of a character.
    json.dumps(report, allow_nan=False, ensure_ascii=False).encode()
    return report


def _no_such_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
