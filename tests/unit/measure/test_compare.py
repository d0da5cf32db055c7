"""Who is quicker, on times made by hand and on seeded runs with the noise that real ones have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ondam.measure.compare import (
    Comparison,
    between,
    fails_more,
    paired,
    unpaired,
    within,
)

PAIRS = 24


def simulated(seed: int, ratio: float, pairs: int = PAIRS) -> list[tuple[float, float]]:
    """One run: B takes ``ratio`` times as long as A. Eight clips, four in ten of them slow (a second mode);
    5 % noise a turn, one turn of twenty in the other mode, one of twenty anything up to many times as long;
    a machine that gets 20 % slower meanwhile, and wanders."""
    chance = np.random.default_rng(seed)
    clips = 600 * np.exp(chance.normal(0, 0.15, 8)) * np.where(chance.random(8) < 0.4, 1.6, 1)
    machine = np.exp(np.linspace(0, 0.2, 2 * pairs) + np.cumsum(chance.normal(0, 0.01, 2 * pairs)))
    made = []
    for number in range(pairs):
        both = [0.0, 0.0]
        for place, side in enumerate((0, 1) if number % 2 == 0 else (1, 0)):
            ms = clips[number % 8] * machine[2 * number + place] * np.exp(chance.normal(0, 0.05))
            if chance.random() < 0.05:
                ms *= 1.6
            if chance.random() < 0.05:
                ms *= 1 + chance.pareto(1.5)
            both[side] = float(ms * (ratio if side else 1))
        made.append((both[0], both[1]))
    return made


def verdicts(ratio: float, runs: int = 20) -> list[str]:
    return [paired(simulated(seed, ratio)).verdict for seed in range(runs)]


def test_the_same_profile_twice_has_no_winner() -> None:
    assert verdicts(1.0).count("none") >= 19


def test_over_many_runs_chance_wins_no_more_often_than_it_is_said_to() -> None:
    told = verdicts(1.0, 600)
    assert 600 - told.count("none") <= 600 * 0.025


def test_a_true_difference_of_15_percent_is_found() -> None:
    assert verdicts(1.15).count("a") >= 19
    assert verdicts(1 / 1.15).count("b") >= 19
    assert not set(verdicts(1.15)) - {"a", "none"}, "and never the wrong way round"


def test_the_estimate_is_the_median_ratio_with_the_sign_tests_interval() -> None:
    # Ten pairs; with ten coins at most one against the others is rare enough, so one is left out at each end.
    made = paired([(100.0, 100.0 * ratio) for ratio in (1.0, 1.1, 1.1, 1.2, 1.2, 1.2, 1.2, 1.3, 1.3, 9.0)])
    assert made.as_json() == {
        "method": "pairs",
        "count": 10,
        "ratio": 1.2,
        "interval": [1.1, 1.3],
        "confidence": 0.975,
        "verdict": "a",
        "reason": "beyond_noise",
    }


def test_two_of_ten_the_other_way_round_are_noise() -> None:
    made = paired([(100.0, 120.0)] * 8 + [(100.0, 90.0)] * 2)
    assert (made.verdict, made.reason) == ("none", "within_noise")
    assert made.low == pytest.approx(0.9)


def test_what_is_sure_but_small_wins_nothing() -> None:
    made = paired([(600.0, 612.0)] * 24)
    assert (made.verdict, made.reason) == ("none", "too_small")


def test_few_pairs_say_nothing() -> None:
    assert paired([(100.0, 200.0)] * 9) == Comparison("pairs", 9, None, None, None, "none", "too_few")
    assert paired([]).reason == unpaired([], []).reason == "too_few"


def test_many_pairs_are_judged_as_quickly() -> None:
    made = paired([(100.0, 130.0), (100.0, 100.0), (100.0, 130.0)] * 1000)
    assert made.verdict == "a"
    assert made.ratio == pytest.approx(1.3)


def test_two_runs_are_held_against_each_other_without_pairs() -> None:
    spread = np.linspace(0.95, 1.05, 24)
    old, slower = [600 * x for x in spread], [720 * x for x in spread]
    assert unpaired(old, slower).verdict == "a"
    assert unpaired(slower, old).verdict == "b"
    assert unpaired(old, old).reason == "within_noise"
    assert unpaired(old, [x * 1.04 for x in old]).verdict == "none", "below what matters between two runs"


def turn(ms: float, *, clip: str = "a", settled: bool = True, outcome: str = "answered") -> dict[str, Any]:
    return {"clip": clip, "outcome": outcome, "first_audio_ms": ms, "answer_ms": 3 * ms, "settled": settled}


def test_unsettled_and_failed_turns_are_in_no_pair() -> None:
    ours = [turn(100)] * 12
    other = [turn(130)] * 10 + [turn(900, settled=False), turn(900, outcome="failed")]
    made = within(ours, other, "first_audio_ms")
    assert made.count == 10
    assert made.ratio == pytest.approx(1.3)


def test_runs_of_the_same_clips_in_another_order_are_paired_by_clip() -> None:
    lengths = {"a": 400.0, "b": 900.0, "c": 2000.0}

    def run(order: Sequence[str], ratio: float) -> list[dict[str, Any]]:
        return [turn(lengths[clip] * ratio, clip=clip) for clip in order]

    old, new = run("abc" * 4, 1.0), run("cab" * 4, 1.1)
    made = between(old, new, "first_audio_ms", by_clip=True)
    assert (made.verdict, made.count) == ("a", 12)
    assert made.ratio == pytest.approx(1.1)
    # Without pairs the clips differ more among themselves than the runs do.
    assert between(old, new, "first_audio_ms", by_clip=False).reason == "within_noise"


def test_more_failures_than_chance_are_noticed() -> None:
    assert fails_more((0, 24), (7, 24))
    assert not fails_more((0, 24), (2, 24))
    assert not fails_more((7, 24), (0, 24))
    assert not fails_more((0, 0), (3, 3))
    # By hand: all four of eight that failed are new; one of 70 ways to choose four.
    assert fails_more((0, 4), (4, 4)) is (1 / 70 < 0.025)
