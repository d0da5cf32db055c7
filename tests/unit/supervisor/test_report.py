from __future__ import annotations

import json
import os
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


@pytest.mark.parametrize(
    "more",
    [
        '"gpu_memory_mib": NaN',
        '"gpu_memory_mib": 1e999',
        '"gpu_memory_mib": "81920"',
        '"gpu_memory_mib": -1',
        f'"gpu_memory_mib": {"9" * 400}',
        f'"memory_mib": {"9" * 5000}',
        '"weight_loads": -1',
        '"weight_loads": "1"',
        '"weight_loads": true',
        '"threads": 1.5',
        '"device": ["cuda:0"]',
        '"device": "\\ud800"',
        '"providers": {"a": "CUDAExecutionProvider"}',
        '"providers": {"a": [null]}',
        '"nodes": {"a": {"CUDAExecutionProvider": "7"}}',
        '"nodes": {"a": {"CUDAExecutionProvider": -7}}',
        '"cuda_graphs": "yes"',
        '"why": {"device": 3}',
        '"model": "whisper"',
        '"what nobody reads": Infinity',
        '"what nobody reads": "\\udc00"',
    ],
)
def test_a_field_that_is_of_another_kind_is_told_and_not_passed_over(tmp_path: Path, more: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(TRUE)[:-1] + f", {more}}}")
    with pytest.raises(EngineError) as raised:
        read_report(path, "ear")
    assert raised.value.code == "engine_report_broken"
    assert str(raised.value.facts["reason"]).encode()


def test_memory_may_have_a_fraction_and_every_field_may_be_null(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    report = {**TRUE, "gpu_memory_mib": 81920.5, **dict.fromkeys(("model", "providers", "why", "nodes"))}
    path.write_text(json.dumps(report))
    assert read_report(path, "ear") == report


@pytest.mark.timeout(10)
def test_a_pipe_in_place_of_the_report_holds_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    os.mkfifo(path)
    with pytest.raises(EngineError) as raised:
        read_report(path, "ear")
    assert raised.value.facts["reason"] == "no file"


@pytest.mark.timeout(10)
@pytest.mark.parametrize("target", ["report.json", "nobody", "/dev/zero", "."])
def test_a_link_that_leads_to_no_report_is_no_report(tmp_path: Path, target: str) -> None:
    path = tmp_path / "report.json"
    path.symlink_to(target)
    with pytest.raises(EngineError) as raised:
        read_report(path, "ear")
    assert raised.value.code == "engine_report_broken"
