from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ondam.places import Places
from ondam.planner import measured
from ondam.planner.arithmetic import sum_of
from ondam.planner.correction import FILE, extra_of, learned, read
from ondam.planner.plan import PlannedEngine

PLANNED = PlannedEngine("vllm", "llm", "big", Path("/m"), None, "cuda:1", 4, "ko")
ESTIMATE = sum_of(("weights", 32.6), ("kv", 0.16), ("extra", 4.0))


def test_what_was_held_beyond_weights_and_cache_takes_the_place_of_the_estimate() -> None:
    known = learned({}, PLANNED, 35.76)
    assert known == {"vllm/big/cuda": 35.76}
    # 35.76 + 0.1 − 32.76
    assert extra_of(ESTIMATE, known, "vllm", "big", "cuda") == pytest.approx(3.1)


def test_what_a_cache_was_given_beyond_its_need_is_no_part_of_the_next_sum() -> None:
    need = sum_of(("weights", 32.6), ("kv", 0.57), ("floor", 0.43), ("extra", 4.0))
    assert learned({}, replace(PLANNED, need=need), 37.6) == {"vllm/big/cuda": 37.17}


def test_without_a_measurement_the_estimate_stands() -> None:
    assert extra_of(ESTIMATE, {}, "vllm", "big", "cuda") is None
    assert extra_of(ESTIMATE, {"vllm/big/metal": 40.0}, "vllm", "big", "cuda") is None


def test_a_measurement_below_the_weights_makes_no_negative_workspace() -> None:
    assert extra_of(ESTIMATE, {"vllm/big/cuda": 3.0}, "vllm", "big", "cuda") == 0.0


def test_one_small_measurement_does_not_make_the_next_plan_too_small() -> None:
    known = learned({"vllm/big/cuda": 40.0, "other/x/cpu": 1.0}, PLANNED, 36.0)
    assert known == {"vllm/big/cuda": 38.0, "other/x/cpu": 1.0}
    assert learned(known, PLANNED, 39.0)["vllm/big/cuda"] == 39.0


@pytest.mark.parametrize("broken", [None, [], "x", {"a": "b"}, {"a": True}, {"a": -1}, {"a": float("nan")}])
def test_what_is_no_measurement_is_left_out(broken: object) -> None:
    assert read(broken) == {}


def test_measurements_are_kept_in_the_state_folder(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path, tmp_path / "state", tmp_path)
    assert measured.load(places) == {}
    measured.save(places, {"vllm/big/cuda": 35.76})
    assert measured.load(places) == {"vllm/big/cuda": 35.76}
    (tmp_path / "state" / FILE).write_text("{")
    assert measured.load(places) == {}
