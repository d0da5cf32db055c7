from __future__ import annotations

from ondam.audio.backoff import Backoff

S = 1_000_000_000


def test_waits_double_up_to_the_last_and_never_end() -> None:
    backoff = Backoff(first_s=0.25, last_s=4.0)
    assert [backoff.failed(0) for _ in range(7)] == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_a_device_that_proved_itself_starts_over() -> None:
    backoff = Backoff(first_s=0.25, last_s=4.0, proven_s=3.0)
    for _ in range(4):
        backoff.failed(0)
    backoff.worked(10 * S)
    backoff.worked(12 * S)
    assert backoff.failed(13 * S) == 0.25


def test_a_device_that_dies_at_once_again_and_again_does_not() -> None:
    backoff = Backoff(first_s=0.25, last_s=4.0, proven_s=3.0)
    waits = []
    for second in range(5):
        backoff.worked(second * S)
        waits.append(backoff.failed((second + 1) * S))
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0]
