from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.unit.planner.fake_nvml import GIB, FakeCard, FakeNvml

from ondam.messages import catalog
from ondam.planner.nvml import look

NOT_SUPPORTED, NO_PERMISSION, LOST = 3, 4, 15


def test_a_card_is_told_in_full() -> None:
    nvml = FakeNvml([FakeCard(used=20 * GIB, compute={7: 12 * GIB}, graphics={8: 8 * GIB})])
    seen = look(nvml)
    assert (seen["driver"], seen["reason"], nvml.shut) == ("580.65.06", "", 1)
    assert seen["cards"] == [
        {
            "name": "NVIDIA H200",
            "uuid": "GPU-aa",
            "compute_capability": "9.0",
            "total_mib": 140 * 1024,
            "free_mib": 119 * 1024,
            "used_mib": 20 * 1024,
            "bandwidth_gb_s": 4916.7,
            "processes": [{"pid": 7, "mib": 12 * 1024}, {"pid": 8, "mib": 8 * 1024}],
        }
    ]


@pytest.mark.parametrize(
    ("bits", "mhz", "gb_s"),
    # RTX 4090, RTX 3090, A100 80 GB, RTX 2070: as their data sheets say.
    [(384, 10_501, 1008.1), (384, 9751, 936.1), (5120, 1593, 2039.0), (256, 7001, 448.1)],
)
def test_bandwidth_is_that_of_the_data_sheet(bits: int, mhz: int, gb_s: float) -> None:
    (card,) = look(FakeNvml([FakeCard(bus_bits=bits, memory_mhz=mhz)]))["cards"]
    assert card["bandwidth_gb_s"] == gb_s


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (12, "gpu_library_missing"),
        (9, "gpu_no_driver"),
        (18, "gpu_driver_mismatch"),
        (4, "gpu_no_permission"),
        (999, "gpu_driver_fails"),
    ],
)
def test_a_driver_that_cannot_be_asked_is_a_told_reason(error: int, reason: str) -> None:
    seen = look(FakeNvml([FakeCard()], init_fails=error))
    assert (seen["cards"], seen["reason"]) == ([], reason)
    assert reason in catalog()


def test_a_list_of_processes_that_is_closed_to_us_is_none_and_the_rest_is_told() -> None:
    closed = {"GetComputeRunningProcesses": NO_PERMISSION, "GetGraphicsRunningProcesses": NO_PERMISSION}
    (card,) = look(FakeNvml([FakeCard(used=GIB, fails=closed)]))["cards"]
    assert (card["processes"], card["used_mib"]) == (None, 1024)


def test_one_list_of_two_is_better_than_none() -> None:
    card = FakeCard(compute={7: GIB}, fails={"GetGraphicsRunningProcesses": NOT_SUPPORTED})
    assert look(FakeNvml([card]))["cards"][0]["processes"] == [{"pid": 7, "mib": 1024}]


def test_a_process_that_computes_and_draws_counts_once() -> None:
    card = FakeCard(compute={7: 2 * GIB}, graphics={7: 2 * GIB, 8: None})
    assert look(FakeNvml([card]))["cards"][0]["processes"] == [
        {"pid": 7, "mib": 2048},
        {"pid": 8, "mib": None},
    ]


def test_a_card_without_memory_of_its_own_says_so() -> None:
    fails = {"GetMemoryInfo": NOT_SUPPORTED, "GetMemoryBusWidth": NOT_SUPPORTED}
    (card,) = look(FakeNvml([FakeCard("NVIDIA GB10", capability=(12, 1), fails=fails)]))["cards"]
    assert (card["total_mib"], card["free_mib"], card["used_mib"]) == (None, None, None)
    assert (card["bandwidth_gb_s"], card["compute_capability"]) == (None, "12.1")


def test_a_card_that_is_cut_in_slices_is_its_slices() -> None:
    cut = FakeCard(
        "NVIDIA H100",
        slices=[
            FakeCard("NVIDIA H100 MIG 3g.40gb", uuid="MIG-1", total=40 * GIB, reserved=0, used=GIB),
            None,
            FakeCard("NVIDIA H100 MIG 1g.10gb", uuid="MIG-2", total=10 * GIB, reserved=0),
        ],
    )
    cards = look(FakeNvml([cut, FakeCard("NVIDIA L4")]))["cards"]
    assert [(c["name"], c["total_mib"], c["bandwidth_gb_s"]) for c in cards[:2]] == [
        ("NVIDIA H100 MIG 3g.40gb", 40 * 1024, None),
        ("NVIDIA H100 MIG 1g.10gb", 10 * 1024, None),
    ]
    assert [c["name"] for c in cards[2:]] == ["NVIDIA L4"]


def test_a_lost_card_leaves_the_others() -> None:
    cards = [FakeCard(fails={"GetHandleByIndex": LOST}), FakeCard("NVIDIA L4", uuid="GPU-b")]
    seen = look(FakeNvml(cards))
    assert [card["name"] for card in seen["cards"]] == ["NVIDIA L4"]
    assert (seen["reason"], seen["detail"]) == ("gpu_card_failed", "0: GPU is lost")


def test_an_old_driver_without_the_newer_memory_call_is_asked_the_older_one() -> None:
    (card,) = look(FakeNvml([FakeCard(used=GIB)], has_v2=False))["cards"]
    # It counts what the driver keeps for itself as used.
    assert (card["total_mib"], card["used_mib"]) == (140 * 1024, 2048)


def test_old_bindings_answer_in_bytes() -> None:
    seen = look(FakeNvml([FakeCard(b"Tesla T4")], driver=b"470.82.01"))
    assert (seen["driver"], seen["cards"][0]["name"]) == ("470.82.01", "Tesla T4")


def test_the_real_bindings_answer_with_or_without_a_driver() -> None:
    asked = [sys.executable, "-P", "-m", "ondam.planner.nvml"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    seen = json.loads(done.stdout)
    assert seen["reason"] in {"", *(code for code in catalog() if code.startswith("gpu_"))}
    assert bool(seen["cards"]) or seen["reason"]
