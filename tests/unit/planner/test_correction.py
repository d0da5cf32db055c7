from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ondam.places import Places
from ondam.planner import measured
from ondam.planner.arithmetic import Need, sum_of
from ondam.planner.correction import FILE, extra_of, learned, read
from ondam.planner.plan import PlannedEngine

ESTIMATE = sum_of(("weights", 32.6), ("kv", 0.16), ("extra", 4.0))
PLANNED = PlannedEngine("vllm", "llm", "big", Path("/m"), None, "cuda:1", 4, "ko", need=ESTIMATE)


def test_what_was_held_beyond_weights_and_cache_takes_the_place_of_the_estimate() -> None:
    known = learned({}, PLANNED, 35.76)
    # 35.76 − 32.76
    assert known == {"vllm/big/cuda/extra": 3.0}
    assert extra_of(known, "vllm", "big", "cuda") == pytest.approx(3.1)


def test_what_was_measured_with_a_short_context_is_as_much_with_a_long_one() -> None:
    short = sum_of(("weights", 8.26), ("kv", 1.25), ("extra", 0.8))
    long = sum_of(("weights", 8.26), ("kv", 5.0), ("extra", 0.8))
    known = learned({}, replace(PLANNED, need=short), 10.41)
    # 10.41 − 9.51, and 14.16 − 13.26
    assert known == learned({}, replace(PLANNED, need=long), 14.16) == {"vllm/big/cuda/extra": 0.9}


def test_what_a_cache_was_given_beyond_its_need_and_further_cards_are_no_part_of_the_next_sum() -> None:
    need = sum_of(("weights", 32.6), ("kv", 0.57), ("floor", 0.43), ("extra", 4.0), ("cards", 0.5))
    assert learned({}, replace(PLANNED, need=need), 37.6) == {"vllm/big/cuda/extra": 3.5}


def test_without_a_measurement_the_estimate_stands() -> None:
    assert extra_of({}, "vllm", "big", "cuda") is None
    assert extra_of({"vllm/big/metal/extra": 4.0}, "vllm", "big", "cuda") is None


def test_a_measurement_below_the_weights_makes_no_negative_workspace() -> None:
    assert learned({}, PLANNED, 3.0) == {"vllm/big/cuda/extra": 0.0}


@pytest.mark.parametrize("need", [None, sum_of(("program", 0.51))])
def test_where_nothing_is_estimated_nothing_is_learned(need: Need | None) -> None:
    assert learned({}, replace(PLANNED, need=need), 3.0) == {}


def test_one_small_measurement_does_not_make_the_next_plan_too_small() -> None:
    known = learned({"vllm/big/cuda/extra": 8.0, "other/x/cpu/extra": 1.0}, PLANNED, 36.76)
    # 36.76 − 32.76 = 4, and (8 + 4) / 2
    assert known == {"vllm/big/cuda/extra": 6.0, "other/x/cpu/extra": 1.0}
    assert learned(known, PLANNED, 39.76)["vllm/big/cuda/extra"] == 7.0


@pytest.mark.parametrize("gib", [None, "b", True, -1, float("nan"), 1e5])
def test_what_is_no_measurement_is_left_out(gib: object) -> None:
    assert read({"a/extra": gib}) == {}


@pytest.mark.parametrize("broken", [None, [], "x"])
def test_what_is_no_object_holds_no_measurement(broken: object) -> None:
    assert read(broken) == {}


def test_what_an_older_version_kept_is_left_out() -> None:
    assert read({"vllm/big/cuda": 40.0, "vllm/big/cuda/extra": 3.0}) == {"vllm/big/cuda/extra": 3.0}


def test_measurements_are_kept_in_the_state_folder(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path, tmp_path / "state", tmp_path)
    assert measured.load(places) == {}
    measured.save(places, {"vllm/big/cuda/extra": 3.1})
    assert measured.load(places) == {"vllm/big/cuda/extra": 3.1}
    (tmp_path / "state" / FILE).write_text("{")
    assert measured.load(places) == {}
