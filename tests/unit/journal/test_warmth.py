from __future__ import annotations

import pytest

from ondam.journal.conditions import Conditions
from ondam.journal.warmth import Population, Settling, Warmth, population

SETTLING = Settling(answers=10, seconds=30.0, idle_s=120.0)


@pytest.mark.parametrize(
    ("answers", "ready_s", "idle_s", "expected"),
    [
        (0, 0.0, None, "cold"),
        (9, 1000.0, 1.0, "cold"),
        (10, 29.9, 1.0, "cold"),
        (10, 30.0, 1.0, "settled"),
        (10, 30.0, 119.9, "settled"),
        (10, 30.0, 120.0, "after_idle"),
        (9, 3600.0, 3600.0, "cold"),  # what was never warm cannot cool
        (10, None, 1.0, "settled"),  # engines outside: nobody knows since when
    ],
)
def test_a_turn_belongs_where_it_began(
    answers: int, ready_s: float | None, idle_s: float | None, expected: Population
) -> None:
    assert population(Warmth(answers, ready_s, idle_s), SETTLING) == expected


def test_conditions_are_named_by_what_they_hold_and_by_nothing_else() -> None:
    one = Conditions.of({"threads": {"a": 1, "b": 2}, "cores": 2})
    assert one.name == Conditions.of({"cores": 2, "threads": {"b": 2, "a": 1}}).name
    assert one.name != Conditions.of({"cores": 4, "threads": {"a": 1, "b": 2}}).name
    assert len(one.name) == 12
