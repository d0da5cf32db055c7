"""What was played, asked for by time."""

from __future__ import annotations

import numpy as np

from ondam.audio.played import KEPT, Played, sample_at
from ondam.types import Samples

MS = 1_000_000
START = 10**12
FIRST = 16_000_000
"""The sample at ``START``: a thousand seconds at 16 kHz."""


def ramp(count: int, first: int = 1) -> Samples:
    return np.arange(first, first + count).astype(np.int16)


def test_samples_are_numbered_by_the_clock() -> None:
    assert sample_at(START) == FIRST
    assert sample_at(START + 10 * MS) == FIRST + 160


def test_what_was_played_is_where_it_sounded_and_silence_around_it() -> None:
    played = Played()
    assert played.add(START, ramp(160), 16_000) == FIRST
    assert played.at(FIRST - 2, 5).tolist() == [0, 0, 1, 2, 3]
    assert played.at(FIRST + 158, 4).tolist() == [159, 160, 0, 0]


def test_nothing_is_silence() -> None:
    assert played_nothing().at(FIRST, 3).tolist() == [0, 0, 0]


def played_nothing() -> Played:
    return Played()


def test_pieces_whose_stamps_wander_are_one_sound() -> None:
    played = Played()
    played.add(START, ramp(160), 16_000)
    assert played.add(START + 15 * MS, ramp(160, 161), 16_000) == FIRST + 160
    assert played.add(START + 14 * MS, ramp(160, 321), 16_000) == FIRST + 320
    assert played.at(FIRST, 480).tolist() == ramp(480).tolist()


def test_a_break_is_silence_as_long_as_the_stamps_say() -> None:
    played = Played()
    played.add(START, ramp(160), 16_000)
    assert played.add(START + 110 * MS, ramp(160), 16_000) == FIRST + 1760
    assert not played.at(FIRST + 160, 1600).any()
    assert played.at(FIRST + 1760, 160).tolist() == ramp(160).tolist()


def test_other_rates_are_at_the_same_times() -> None:
    played = Played()
    click = np.zeros(4800, np.int16)
    click[2400:2430] = 20_000
    played.add(START, click, 48_000)
    heard = played.at(FIRST, 1600)
    assert 800 <= int(np.argmax(heard)) <= 810


def test_a_device_of_another_rate_goes_on_where_it_says() -> None:
    played = Played()
    played.add(START, ramp(160), 16_000)
    assert played.add(START + 10 * MS, ramp(320), 32_000) == FIRST + 160


def test_the_ring_holds_four_seconds_and_no_older_sound() -> None:
    played = Played()
    for second in range(6):
        played.add(START + second * 1000 * MS, np.full(16_000, second + 1, np.int16), 16_000)
    assert played.at(FIRST + 6 * 16_000 - KEPT - 2, 4).tolist() == [0, 0, 3, 3]
    assert played.at(FIRST, 3).tolist() == [0, 0, 0]


def test_after_a_long_pause_nothing_of_before_is_left() -> None:
    played = Played()
    played.add(START, np.full(16_000, 7, np.int16), 16_000)
    played.add(START + 60_000 * MS, ramp(160), 16_000)
    assert not played.at(FIRST + 56 * 16_000 + 160, 4 * 16_000 - 160).any()
