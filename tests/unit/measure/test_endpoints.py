"""How endpoints are scored, on trials small enough to count by hand."""

from __future__ import annotations

import pytest

from ondam.measure.endpoints import Endpoint, Score, Trial, Wait, at_equal_wait, score


def test_endpoints_before_the_end_are_false_and_the_wait_is_until_the_first_one_after_it() -> None:
    trial = Trial(3000, (Endpoint(1200, 1500, 1800), Endpoint(3400, 3700), Endpoint(9000, 9100)))
    assert trial.false == (Endpoint(1200, 1500, 1800),)
    assert trial.last == Endpoint(3400, 3700)


def test_a_false_endpoint_does_no_harm_when_it_is_noticed_before_its_answer_sounds() -> None:
    trials = [
        # Taken back 300 ms before its answer would have sounded.
        Trial(3000, (Endpoint(1200, 1800, 1500), Endpoint(3300, 3600))),
        # Twice: the answer had sounded for 100 ms, then noticed only 2 s after the endpoint.
        Trial(6000, (Endpoint(1000, 1400, 1500), Endpoint(3000, 3100, 5000), Endpoint(6500, 6600))),
        # Never noticed, and nothing after the end.
        Trial(3000, (Endpoint(2900, 3200),)),
        Trial(2000, (Endpoint(2100, 2600),)),
    ]
    assert score(trials, take_back_ms=1500) == Score(
        utterances=4,
        cut=3,
        false=4,
        heard=3,
        late=2,
        # 300, 500 and 100: p90 lies eight tenths of the way from 300 to 500. Each 600 until the sound.
        wait=Wait(300.0, 300.0, 460.0),
        sound=Wait(600.0, 600.0, 600.0),
        unended=1,
    )


def test_without_trials_there_is_nothing_to_tell() -> None:
    nothing = Wait(None, None, None)
    assert score([], take_back_ms=1500) == Score(0, 0, 0, 0, 0, nothing, nothing, 0)


def test_at_an_equal_wait_the_curve_is_read_between_its_points_and_nowhere_else() -> None:
    curve = [(900.0, 10.0), (500.0, 50.0), (700.0, 20.0)]
    assert at_equal_wait(curve, 500) == 50
    assert at_equal_wait(curve, 600) == pytest.approx(35)
    assert at_equal_wait(curve, 850) == pytest.approx(12.5)
    assert at_equal_wait(curve, 901) is None
    assert at_equal_wait(curve, 499) is None
    assert at_equal_wait([], 500) is None
