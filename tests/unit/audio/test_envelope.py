from __future__ import annotations

import pytest

from ondam.audio.envelope import Envelope

MS = 1_000_000
LONG_AGO = 10**18
"""A clock's reading that a float cannot hold to the millisecond."""


def gains(envelope: Envelope, at_ms: int, count: int) -> list[float]:
    """At 1 kHz a sample lasts a millisecond."""
    return [round(float(gain), 3) for gain in envelope.gains(LONG_AGO + at_ms * MS, count)]


def test_a_ramp_takes_ten_milliseconds_and_its_last_sample_has_the_new_gain() -> None:
    envelope = Envelope(1000, LONG_AGO)
    envelope.ramp(LONG_AGO + 5 * MS, 0.1)
    assert gains(envelope, 3, 14) == [1, 1, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1]


def test_a_ramp_begins_where_the_one_before_it_has_got_to() -> None:
    envelope = Envelope(1000, LONG_AGO)
    envelope.ramp(LONG_AGO, 0.1)
    envelope.ramp(LONG_AGO + 4 * MS, 0.6)
    assert gains(envelope, 3, 4) == [0.7, 0.6, 0.6, 0.6]
    envelope.ramp(LONG_AGO + 20 * MS, 0.6 + 0.09)
    assert gains(envelope, 20, 3) == [0.6, 0.61, 0.62]


def test_a_jump_takes_no_time_and_leaves_what_was_before_it() -> None:
    envelope = Envelope(1000, LONG_AGO)
    envelope.ramp(LONG_AGO, 0)
    envelope.jump(LONG_AGO + 10 * MS, 1)
    assert gains(envelope, 8, 4) == [0.111, 0, 1, 1]


@pytest.mark.parametrize("at_ms", [-1, 3, 9, 30])
def test_what_is_over_can_be_forgotten(at_ms: int) -> None:
    envelope, whole = Envelope(1000, LONG_AGO), Envelope(1000, LONG_AGO)
    for each in (envelope, whole):
        each.ramp(LONG_AGO, 0.1)
    envelope.forget_before(LONG_AGO + at_ms * MS)
    assert gains(envelope, at_ms, 40) == gains(whole, at_ms, 40)
