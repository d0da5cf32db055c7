"""Reads what an engine says it got. What it is compared with: ``comparison``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ondam.errors import EngineError

LARGEST = 1024 * 1024
"""Bytes. A report is about one kilobyte."""

SCHEMA = 1


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
