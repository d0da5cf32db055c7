"""What engines are found to hold goes into the next plan's sums."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ondam.places import Places, places
from ondam.planner.arithmetic import sum_of
from ondam.planner.measured import Learning, held_gib, load
from ondam.planner.plan import Plan, PlannedEngine
from ondam.supervisor.status import Change, EngineStatus


def planned(device: str) -> PlannedEngine:
    need = sum_of(("weights", 2.0), ("extra", 1.0))
    return PlannedEngine("vllm", "llm", "m", Path("/m"), None, device, threads=1, language="en", need=need)


def status(device: str, **more: Any) -> EngineStatus:
    return replace(EngineStatus("vllm", "llm", "ready", "unix:///x", device=device, rss_mib=2048.0), **more)


def test_on_a_card_what_counts_is_the_cards_memory_and_on_the_processor_the_resident_one() -> None:
    assert held_gib(status("cpu")) == 2.0
    assert held_gib(status("cuda:0", report={"gpu_memory_mib": 5120})) == 5.0
    assert held_gib(status("cuda:0", report={"gpu_memory_mib": None})) is None
    assert held_gib(status("cuda:0")) is None


def test_an_engine_that_becomes_ready_is_written_down_and_found_again(house: Places) -> None:
    learning = Learning(house, lambda: Plan((planned("cuda:0"),)))
    learning(Change(status("cuda:0", state="loading", report={"gpu_memory_mib": 9000})))
    assert load(house) == {}
    learning(Change(status("cuda:0", report={"gpu_memory_mib": 5120})))
    assert load(house) == {"vllm/m/cuda/extra": 3.0}, "5 less 2 of weights"
    learning(Change(status("cuda:0", report={"gpu_memory_mib": 3072})))
    assert load(house) == {"vllm/m/cuda/extra": 2.0}, "the larger of the last two's mean and the last"


def test_an_engine_that_got_another_device_teaches_nothing(house: Places) -> None:
    Learning(house, lambda: Plan((planned("cuda:0"),)))(Change(status("cpu")))
    Learning(house, lambda: Plan(()))(Change(status("cpu")))
    assert load(house) == {}


def test_a_state_folder_that_cannot_be_written_is_logged_and_ends_nothing(
    house: Places, caplog: pytest.LogCaptureFixture
) -> None:
    house.state.parent.mkdir(parents=True, exist_ok=True)
    house.state.write_text("a file where the folder belongs")
    Learning(house, lambda: Plan((planned("cpu"),)))(Change(status("cpu")))
    assert "what vllm holds is not kept" in caplog.text


@pytest.mark.parametrize("written", ['["no object"]', "{", "", "[" * 100_000, "9" * 5000, '{"a": 1e999}'])
def test_a_broken_file_means_estimates(house: Places, written: str) -> None:
    house.state.mkdir(parents=True)
    (house.state / "measured-memory.json").write_text(written)
    assert load(house) == {}


@pytest.fixture
def house(tmp_path: Path) -> Places:
    return places({"ONDAM_HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/tmp"})
