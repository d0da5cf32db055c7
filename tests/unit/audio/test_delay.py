"""How late an echo is, found from both sides of the sound."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fakes.babble import babble, noise

from ondam.audio.delay import DelayEstimator
from ondam.types import HEARING_RATE_HZ, Samples

BLOCK = 160


def echoed(played: Samples, delay_ms: float, attenuation_db: float) -> Samples:
    """What a microphone in a quiet room hears of it; a negative delay: before it is said to be played."""
    shift = round(delay_ms * HEARING_RATE_HZ / 1000)
    moved = np.zeros(len(played))
    if shift >= 0:
        moved[shift:] = played[: len(played) - shift]
    else:
        moved[:shift] = played[-shift:]
    heard = moved * 10 ** (-attenuation_db / 20) + noise(len(played) / HEARING_RATE_HZ)
    return np.rint(heard).astype(np.int16)


def listen(estimator: DelayEstimator, heard: Samples, played: Samples) -> float | None:
    """Seconds until an echo is found, None when there is none; goes on to the end."""
    found = None
    for at in range(0, len(heard) - BLOCK + 1, BLOCK):
        estimator.observe(heard[at : at + BLOCK], played[at : at + BLOCK])
        if found is None and estimator.found:
            found = (at + BLOCK) / HEARING_RATE_HZ
    return found


@pytest.mark.parametrize("attenuation_db", [12, 30])
@pytest.mark.parametrize("delay_ms", [10, 80, 250, 600, 950])
def test_an_echo_is_found_to_the_millisecond_in_the_first_seconds(
    delay_ms: float, attenuation_db: float
) -> None:
    played = babble(6)
    estimator = DelayEstimator()
    after_s = listen(estimator, echoed(played, delay_ms, attenuation_db), played)
    assert after_s is not None and after_s <= 3.5
    assert estimator.found
    assert estimator.found.ms == pytest.approx(delay_ms, abs=1)
    assert not estimator.absent


def test_an_echo_that_seems_to_come_before_its_sound_is_found() -> None:
    played = babble(6)
    estimator = DelayEstimator()
    listen(estimator, echoed(played, -150, 12), played)
    assert estimator.found
    assert estimator.found.ms == pytest.approx(-150, abs=1)


def test_an_echo_ten_decibels_below_the_noise_of_the_room_is_found() -> None:
    played = babble(12)
    heard = echoed(played, 250, 40) + noise(12, dbfs=-50, seed=3)
    estimator = DelayEstimator()
    listen(estimator, heard, played)
    assert estimator.found
    assert estimator.found.ms == pytest.approx(250, abs=1)


def test_without_an_echo_there_is_none_after_four_seconds_and_no_verdict_before() -> None:
    played = babble(10)
    estimator = DelayEstimator()
    listen(estimator, noise(3.5), played[: 7 * HEARING_RATE_HZ // 2])
    assert not estimator.absent
    assert listen(estimator, noise(5, seed=5), played[: 5 * HEARING_RATE_HZ]) is None
    assert estimator.absent


@pytest.mark.parametrize("seed", range(10, 16))
def test_a_user_who_speaks_is_no_echo(seed: int) -> None:
    estimator = DelayEstimator()
    assert listen(estimator, babble(15, dbfs=-26, seed=seed), babble(15)) is None


def test_a_user_who_speaks_over_the_echo_does_not_move_it() -> None:
    played = babble(15)
    heard = echoed(played, 250, 30)
    heard[4 * HEARING_RATE_HZ :] += babble(11, dbfs=-26, seed=7)
    estimator = DelayEstimator()
    places = set()
    for at in range(0, len(heard), BLOCK):
        estimator.observe(heard[at : at + BLOCK], played[at : at + BLOCK])
        if estimator.found:
            places.add(round(estimator.found.ms))
    assert places <= {249, 250, 251}


def test_an_echo_that_moves_is_followed() -> None:
    played = babble(20)
    estimator = DelayEstimator()
    heard = np.concatenate(
        [
            echoed(played, 80, 20)[: 10 * HEARING_RATE_HZ],
            echoed(played, 380, 20)[10 * HEARING_RATE_HZ :],
        ]
    )
    listen(estimator, heard, played)
    assert estimator.found
    assert estimator.found.ms == pytest.approx(380, abs=1)


def test_an_echo_that_stays_away_is_forgotten() -> None:
    played = babble(20)
    estimator = DelayEstimator()
    heard = echoed(played, 80, 20)
    heard[6 * HEARING_RATE_HZ :] = noise(14)
    listen(estimator, heard, played)
    assert estimator.found is None
    assert estimator.absent


def test_while_nothing_is_played_it_does_not_look() -> None:
    estimator = DelayEstimator()
    silence = np.zeros(BLOCK, np.int16)
    looked = [estimator.observe(piece, silence) for piece in np.split(babble(5), 500)]
    assert not any(looked)
    assert estimator.hops == 0


def test_a_microphone_that_is_muted_hears_no_echo() -> None:
    estimator = DelayEstimator()
    assert listen(estimator, np.zeros(6 * HEARING_RATE_HZ, np.int16), babble(6)) is None
    assert estimator.absent
