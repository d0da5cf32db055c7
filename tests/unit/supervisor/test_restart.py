from __future__ import annotations

from ondam.supervisor.restart import (
    Again,
    Ending,
    GiveUp,
    Past,
    Policy,
    back_off,
    ended,
    ill,
    most_mib,
    started,
    unanswered,
)

POLICY = Policy(first_s=0.5, last_s=4.0, limit=6, window_s=300.0)


def life(past: Past, at: float, how: Ending = "died", ready_s: float = 0.0) -> Again | GiveUp:
    """Start at ``at``, end a second later."""
    return ended(POLICY, started(past, at), how, ready_s, at + 1)


def test_waits_double_up_to_the_last_and_the_limit_ends_them() -> None:
    past, at, waits = Past(), 0.0, []
    for _ in range(5):
        decision = life(past, at)
        assert isinstance(decision, Again)
        waits.append(decision.wait_s)
        past, at = decision.past, at + 10
    assert waits == [0.5, 1.0, 2.0, 4.0, 4.0]
    assert life(past, at) == GiveUp(6)


def test_starts_outside_the_window_are_forgotten() -> None:
    past, at = Past(), 0.0
    for _ in range(50):
        decision = life(past, at)
        assert isinstance(decision, Again) and decision.wait_s <= 4.0
        past, at = decision.past, at + 100


def test_a_time_of_health_resets_everything() -> None:
    past = Past(tuple(float(n) for n in range(5)), slow=1)
    assert life(past, 10.0, ready_s=10.0) == Again(0.5, Past())
    assert life(past, 10.0, ready_s=9.9) == GiveUp(6)


def test_an_engine_that_is_too_slow_twice_in_a_row_stays_down() -> None:
    decision = life(Past(), 0.0, "slow")
    assert isinstance(decision, Again) and decision.past.slow == 1
    assert isinstance(life(decision.past, 200.0, "slow"), GiveUp)
    between = life(decision.past, 200.0, "died")
    assert isinstance(between, Again) and between.past.slow == 0


def test_an_absurd_limit_overflows_nothing() -> None:
    policy = Policy(0.5, 30.0, 10**6, 1e9)
    decision = ended(policy, Past(tuple(float(n) for n in range(5000))), "died", 0.0, 5000.0)
    assert isinstance(decision, Again) and decision.wait_s == 30.0


def test_back_off_doubles_from_the_first_to_the_last() -> None:
    assert [back_off(0.5, 3.0, before) for before in (0, 1, 2, 3, 10**9)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_only_requests_that_were_never_answered_count_as_unanswered() -> None:
    assert [unanswered(1, code) for code in ("engine_silent", "llm_no_first_token", "llm_stalled")] == [
        2,
        2,
        2,
    ]
    assert [unanswered(1, code) for code in ("engine_refused", "engine_hung_up")] == [1, 1]


def test_a_machine_without_room_is_waited_for_without_end_and_counts_against_nobody() -> None:
    past, at, waits = Past(), 0.0, []
    for _ in range(40):
        decision = life(past, at, "short")
        assert isinstance(decision, Again)
        waits.append(decision.wait_s)
        past, at = decision.past, at + 1
    assert waits[:5] == [0.5, 1.0, 2.0, 4.0, 4.0] and set(waits[5:]) == {4.0}
    assert life(past, at) == Again(0.5, Past((at,)))


def test_answers_that_are_none_count_and_what_the_request_is_to_blame_for_does_not() -> None:
    assert [ill(2, code) for code in ("engine_broken_frame", "engine_refused", "llm_failed")] == [3, 3, 3]
    assert [ill(2, code) for code in ("llm_refused", "llm_context_full", "llm_stalled")] == [2, 2, 2]


def test_an_engine_may_take_twice_what_it_should_and_some_more() -> None:
    assert most_mib(ready_mib=300, needs_mib=500, headroom_mib=1024) == 2024
    assert most_mib(ready_mib=600, needs_mib=500, headroom_mib=1024) == 2224
    assert most_mib(ready_mib=600, needs_mib=500, headroom_mib=0) == float("inf")
