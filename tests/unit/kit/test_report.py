from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime
from pathlib import Path

from ondam_engines.kit import report


def test_a_report_holds_every_field_of_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    weights = report.Weights("base", "/models/base/model.bin", "00" * 32)
    report.Report("whisper", "cpu", 2, weights, 1, dtype="int8").write(path)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found.pop("memory_mib") > 0
    assert datetime.fromisoformat(found.pop("started_at")).utcoffset() is not None
    assert found == {
        "schema": 1,
        "engine": "whisper",
        "pid": os.getpid(),
        "model": {"id": "base", "path": "/models/base/model.bin", "sha256": "00" * 32},
        "weight_loads": 1,
        "device": "cpu",
        "dtype": "int8",
        "quantization": None,
        "threads": 2,
        "providers": {},
        "cuda_graphs": None,
        "context_length": None,
        "versions": {},
    }


def test_a_report_replaces_the_one_before_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    report.Report("espeak", "cpu", 1).write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text(encoding="utf-8"))["model"] is None


def test_the_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"abc" * 1_000_000)
    assert report.sha256(path) == hashlib.sha256(b"abc" * 1_000_000).hexdigest()


def test_memory_is_between_what_python_and_what_a_test_run_needs() -> None:
    assert 5 < report.rss_mib() < 4_096
    assert report.rss_mib(os.getpid()) > 5


def test_versions_leave_out_what_is_not_installed() -> None:
    assert report.versions(["wyoming", "no-such-package"]).keys() == {"wyoming"}
