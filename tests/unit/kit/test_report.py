from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime
from pathlib import Path

import pytest

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
        "nodes": {},
        "cuda_graphs": None,
        "graph_mode": None,
        "context_length": None,
        "kv_dtype": None,
        "gpu_memory_mib": None,
        "why": {},
        "versions": {},
        "network": None,
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


SMI = """#!/bin/sh
[ "$*" = "--query-compute-apps=pid,used_gpu_memory --format=csv,noheader,nounits" ] || exit 9
printf '17, 512\\n4711, 2048\\n17, 1024\\n18, [N/A]\\n'
"""
"""Two processes, one of them on two cards, and one whose memory the driver does not tell."""


def test_memory_on_all_cards_is_what_the_driver_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    tool.write_text(SMI, encoding="utf-8")
    tool.chmod(0o755)
    assert [report.gpu_mib(pid) for pid in (17, 4711, 18, 19)] == [1536, 2048, None, None]
    tool.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    assert report.gpu_mib(17) is None


def test_without_a_driver_nobody_knows_what_a_card_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert report.gpu_mib() is None


def test_versions_leave_out_what_is_not_installed() -> None:
    assert report.versions(["wyoming", "no-such-package"]).keys() == {"wyoming"}
