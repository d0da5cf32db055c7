from __future__ import annotations

from typing import Any

import pytest

from ondam.measure.scaling import Limit, Load, limit, turns_per_min, waited_ms

BUDGET_MS = 800.0


def load(sessions: int, per_min: float, p50: float = 600, p95: float = 700, failed: int = 0) -> Load:
    return Load(sessions, per_min, p50, p95, failed)


def test_what_doubles_with_its_sessions_has_no_end_yet() -> None:
    assert limit([load(1, 6), load(2, 12), load(4, 24)], budget_ms=BUDGET_MS) == Limit(4, None, None)


def test_it_stops_where_half_of_the_answers_are_late() -> None:
    loads = [load(1, 6), load(2, 12, p50=800), load(4, 24, p50=801), load(8, 10)]
    assert limit(loads, budget_ms=BUDGET_MS) == Limit(2, 4, "over_budget")


def test_it_stops_where_a_turn_fails_or_none_is_heard() -> None:
    assert limit([load(1, 6, failed=1)], budget_ms=BUDGET_MS) == Limit(None, 1, "failed")
    assert limit([Load(1, None, None, None, 0)], budget_ms=BUDGET_MS).reason == "failed"


@pytest.mark.parametrize(
    ("sessions", "per_min", "p95", "stops"),
    [
        (2, 6.5, 701, True),  # twice the sessions, 8 % more turns, later
        (2, 6.7, 900, False),  # 12 %
        (2, 6.5, 700, False),  # as soon as before: nothing waits
        (3, 7.0, 900, True),  # three times as many: 20 % would be worth it
    ],
)
def test_it_stops_where_more_sessions_only_wait(
    sessions: int, per_min: float, p95: float, stops: bool
) -> None:
    found = limit([load(1, 6.0), load(sessions, per_min, p95=p95)], budget_ms=BUDGET_MS)
    assert found == (Limit(1, sessions, "throughput") if stops else Limit(sessions, None, None))


def test_a_request_waits_for_what_its_engine_did_not_compute() -> None:
    turn: dict[str, Any] = {
        "marks_ms": {
            "stt_sent": -100.0,
            "stt_final": 250.0,
            "llm_sent": 250.0,
            "llm_first_token": 300.0,
            "tts_sent": 400.0,
        },
        "engine_ms": {"stt": 150.0, "llm_first_token": 60.0},
    }
    assert waited_ms(turn, "stt") == 200
    assert waited_ms(turn, "llm") == 0  # clocks of two processes
    assert waited_ms(turn, "tts") is None


def test_throughput_is_that_of_sessions_which_never_rest() -> None:
    # Four sessions, each 10 s from one turn to the next: 24 a minute, of which three in four were answered.
    assert turns_per_min(4, [8.0, 12.0, 10.0, 10.0], answered=4) == 24
    assert turns_per_min(4, [8.0, 12.0, 10.0, 10.0], answered=3) == 18
    assert turns_per_min(4, [], answered=0) is None
