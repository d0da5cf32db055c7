from __future__ import annotations

from ondam.audio.streamclock import StreamClock

MS = 1_000_000


def test_jitter_is_averaged_out() -> None:
    clock = StreamClock()
    for k in range(200):
        clock.observe(k * 10 * MS, 500 * MS + k * 10 * MS + (8 if k % 2 else -8) * MS)
    assert abs(clock.at_ns(3000 * MS) - 3500 * MS) < MS // 2


def test_a_bad_first_report_soon_loses_its_weight() -> None:
    clock = StreamClock()
    clock.observe(0, 500 * MS - 20 * MS)
    for k in range(1, 20):
        clock.observe(k * 10 * MS, 500 * MS + k * 10 * MS)
    assert clock.at_ns(0) == 500 * MS - MS  # one of twenty


def test_a_clock_that_drifts_is_followed() -> None:
    clock = StreamClock()
    for k in range(60_000):  # ten minutes at 100 parts in a million: 60 ms
        clock.observe(k * 10 * MS, k * 10 * MS + k * 1_000)
    assert abs(clock.at_ns(600_000 * MS) - 600_060 * MS) < MS


def test_one_wild_report_is_ignored() -> None:
    clock = StreamClock()
    for k in range(100):
        clock.observe(k * 10 * MS, k * 10 * MS)
    clock.observe(1000 * MS, 1700 * MS)
    assert clock.at_ns(1000 * MS) == 1000 * MS


def test_after_sound_was_lost_the_clock_is_set_anew_within_five_reports() -> None:
    clock = StreamClock()
    for k in range(100):
        clock.observe(k * 10 * MS, k * 10 * MS)
    for k in range(100, 105):
        clock.observe(k * 10 * MS, k * 10 * MS + 300 * MS)
    assert clock.at_ns(0) == 300 * MS
