"""The canceller, and the measure of what it does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.fakes.babble import babble, noise
from tests.unit.audio.test_delay import echoed

from ondam.audio.echo import LAG, EchoCanceller, EchoMeter, level_db
from ondam.types import HEARING_RATE_HZ, Samples

BLOCK = 160


def cleaned(heard: Samples, played: Samples) -> Samples:
    canceller = EchoCanceller()
    pieces = zip(np.split(heard, len(heard) // BLOCK), np.split(played, len(played) // BLOCK), strict=True)
    return np.concatenate([canceller.cancel(one, other) for one, other in pieces])


def block(dbfs: float) -> Samples:
    """A square wave of that power."""
    return np.full(BLOCK, 32768 * 10 ** (dbfs / 20)).astype(np.int16) * np.array([1, -1] * 80, np.int16)


@pytest.mark.parametrize("delay_ms", [10, 25, 80, 120])
def test_the_echo_is_twenty_decibels_quieter_after_a_second(delay_ms: float) -> None:
    played = babble(4)
    heard = echoed(played, delay_ms, 12)
    after = cleaned(heard, played)
    assert level_db(heard[HEARING_RATE_HZ:]) - level_db(after[HEARING_RATE_HZ:]) >= 20


def test_what_comes_out_is_eight_milliseconds_late() -> None:
    heard = np.zeros(HEARING_RATE_HZ, np.int16)
    heard[8000:8020] = 8000
    loud = np.flatnonzero(np.abs(cleaned(heard, np.zeros_like(heard)).astype(int)) > 4000)
    assert loud[0] == 8000 + LAG


def test_a_user_stays_as_loud_when_nothing_is_played() -> None:
    heard = babble(3, dbfs=-30)
    after = cleaned(heard, np.zeros_like(heard))
    assert level_db(after) == pytest.approx(level_db(heard), abs=1.5)


def test_it_is_loaded_only_when_it_is_used() -> None:
    code = "import sys, ondam.audio.duplex; print('pywebrtc_audio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_levels_are_decibels_of_full_scale() -> None:
    assert level_db(block(-20)) == pytest.approx(-20, abs=0.01)
    assert level_db(np.zeros(BLOCK, np.int16)) == -90


def after_a_pause(meter: EchoMeter) -> EchoMeter:
    """It has heard the noise of the room: -70 dBFS."""
    for _ in range(50):
        meter.observe(block(-70), block(-70), -90)
    return meter


def test_cancellation_is_the_level_before_over_the_level_after() -> None:
    meter = after_a_pause(EchoMeter())
    for _ in range(150):
        meter.observe(block(-32), block(-57), -20)
    assert meter.floor_db == pytest.approx(-70, abs=0.5)
    assert meter.gain_db == pytest.approx(-12, abs=0.5)
    assert meter.erle_db == pytest.approx(25, abs=0.5)
    assert meter.left_db == pytest.approx(13, abs=0.5)
    assert meter.audible
    assert meter.expected_db == pytest.approx(-57, abs=0.5)


def test_nothing_is_known_before_a_second_of_echo() -> None:
    meter = after_a_pause(EchoMeter())
    for _ in range(99):
        meter.observe(block(-32), block(-57), -20)
    assert (meter.audible, meter.gain_db, meter.erle_db, meter.expected_db) == (None, None, None, None)


def test_a_user_who_speaks_over_the_echo_spoils_no_measure() -> None:
    meter = after_a_pause(EchoMeter())
    for _ in range(150):
        meter.observe(block(-42), block(-65), -20)
    told = [meter.observe(block(-25), block(-25), -20) for _ in range(150)]
    assert meter.erle_db == pytest.approx(23, abs=0.5)
    assert not any(told[10:])


def test_an_echo_below_the_rooms_noise_is_not_audible() -> None:
    meter = after_a_pause(EchoMeter())
    for _ in range(150):
        meter.observe(block(-69), block(-70), -20)
    assert meter.audible is False
    assert meter.erle_db is None


def test_quiet_passages_count_for_nothing() -> None:
    meter = after_a_pause(EchoMeter())
    assert not any(meter.observe(block(-70), block(-70), -60) for _ in range(200))
    assert meter.gain_db is None


def test_another_way_of_the_echo_is_measured_from_the_start() -> None:
    meter = after_a_pause(EchoMeter())
    for _ in range(150):
        meter.observe(block(-32), block(-57), -20)
    meter.forget()
    assert (meter.audible, meter.gain_db, meter.erle_db) == (None, None, None)


def test_noise_alone_is_no_echo() -> None:
    meter = EchoMeter()
    for piece in np.split(noise(3), 300):
        meter.observe(piece, piece, -20)
    assert meter.audible is False
