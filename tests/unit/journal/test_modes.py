"""Two modes are found where there are two, and chance makes none."""

from __future__ import annotations

import numpy as np
import pytest

from ondam.journal.modes import two_modes
from ondam.journal.steady import Steadiness, steady_from

RNG = np.random.default_rng


@pytest.mark.parametrize("count", [40, 100, 400])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "tail"])
def test_one_mode_with_whatever_tail_is_one_mode(kind: str, count: int) -> None:
    found = 0
    for seed in range(200):
        draw = RNG(seed)
        values = np.array([])
        match kind:
            case "normal":
                values = draw.normal(600, 90, count).clip(50)
            case "lognormal":
                values = draw.lognormal(6.4, 0.4, count)
            case "tail":
                values = 400 + draw.exponential(150, count)
        found += two_modes(list(values)) is not None
    assert found <= 4


@pytest.mark.parametrize("count", [40, 100])
def test_a_fifth_of_the_turns_at_twice_the_time_is_found(count: int) -> None:
    found = 0
    for seed in range(100):
        draw = RNG(seed)
        slow = draw.normal(1200, 120, count // 5)
        modes = two_modes([*draw.normal(600, 50, count - len(slow)), *slow])
        found += modes is not None and abs(modes[1].p50 - 1200) < 120 and abs(modes[1].share - 0.2) < 0.05
    assert found >= 90


def test_few_turns_or_all_alike_have_no_modes() -> None:
    assert two_modes([500.0] * 9 + [1000.0] * 10) is None
    assert two_modes([500.0] * 60) is None
    assert two_modes([500.0] * 30 + [530.0] * 30) is None, "a twentieth makes no difference to anybody"
    modes = two_modes([500.0] * 30 + [1000.0] * 30)
    assert modes is not None and [mode.p50 for mode in modes] == [500.0, 1000.0]


def test_a_median_that_stands_still_is_steady_from_the_first_turn() -> None:
    steadiness = Steadiness(5, 0.1)
    assert steady_from([600.0] * 10, steadiness) == 0
    assert steady_from([600.0] * 9, steadiness) is None
    assert steady_from([600.0, 650.0] * 10, steadiness) == 0
    assert steady_from([300.0] * 5 + [600.0] * 20, steadiness) == 10
    assert steady_from([100.0 * 1.05**n for n in range(40)], steadiness) is None
    assert steady_from([], Steadiness(0, 0.1)) == 0


def test_clips_of_different_length_are_no_drift() -> None:
    # They cost a window or two in one of ten lives, and never all.
    kept = sum(
        steady_from(list(RNG(seed).normal(600, 150, 40)), Steadiness(5, 0.1)) == 0 for seed in range(200)
    )
    assert kept >= 170
