from __future__ import annotations

import json
from pathlib import Path

import pytest

from ondam.errors import EngineError
from ondam.supervisor.report import LARGEST, read_report

TRUE = {"schema": 1, "device": "cpu", "threads": 2, "weight_loads": 1}


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b'{"schema": 2}', b"\xff", b"[" * 100_000, b" " * (LARGEST + 1)],
    ids=["empty", "cut", "list", "null", "schema", "bytes", "deep", "huge"],
)
def test_what_is_no_report_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(raw)
    with pytest.raises(EngineError) as raised:
        read_report(path, "ear")
    assert raised.value.code == "engine_report_broken"


def test_a_report_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(TRUE))
    assert read_report(path, "ear") == TRUE
