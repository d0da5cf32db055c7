from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ondam.planner import probe as module
from ondam.planner.probe import probe


def test_the_machine_is_seen() -> None:
    facts = probe()
    assert 1 <= facts.cores <= facts.logical_cores
    assert facts.memory_mib > 100
    assert facts.cpu and facts.machine == os.uname().machine


def test_a_containers_quota_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    (tmp_path / "memory.max").write_text(str(64 * 2**20))
    monkeypatch.setattr(module, "CGROUP", tmp_path)
    assert (probe().cores, probe().memory_mib) == (1, 64)


def test_no_quota_is_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = probe()
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    monkeypatch.setattr(module, "CGROUP", tmp_path)
    assert (probe().cores, probe().memory_mib) == (before.cores, before.memory_mib)


def test_flags_of_x86_and_arm_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("model name\t: Some CPU\nflags\t\t: fpu avx2\n\nmodel name\t: B\n")
    assert (probe().cpu, probe().cpu_flags) == ("Some CPU", frozenset({"fpu", "avx2"}))
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    assert probe().cpu_flags == {"fp", "asimd"}


@pytest.mark.parametrize(
    ("battery", "running_on_it"),
    [(None, False), ((80, 3600, True), False), ((80, 3600, False), True), ((80, -1, None), False)],
)
def test_only_a_battery_that_is_being_used_counts(
    monkeypatch: pytest.MonkeyPatch, battery: tuple[int, int, bool | None] | None, running_on_it: bool
) -> None:
    told = battery and SimpleNamespace(percent=battery[0], secsleft=battery[1], power_plugged=battery[2])
    monkeypatch.setattr("psutil.sensors_battery", lambda: told, raising=False)
    assert module.on_battery() is running_on_it
