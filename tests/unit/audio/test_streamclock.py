from __future__ import annotations

from ondam.audio.streamclock import StreamClock

MS = 1_000_000


def feed(
    clock: StreamClock, blocks: range, *, offset_ms: int = 500, late_ms: int = 0, report_ms: int = 30
) -> None:
    """10 ms blocks whose callbacks come at ``offset_ms`` and that are heard ``report_ms`` later."""
    for k in blocks:
        due = (k * 10 + offset_ms) * MS
        clock.observe(k * 10 * MS, due + report_ms * MS, due + late_ms * MS)


def test_reports_that_jitter_are_averaged() -> None:
    clock = StreamClock()
    for k in range(200):
        feed(clock, range(k, k + 1), report_ms=38 if k % 2 else 22)
    assert abs(clock.at_ns(3000 * MS) - 3530 * MS) < MS // 10


def test_callbacks_that_come_late_do_not_move_the_clock() -> None:
    clock = StreamClock()
    feed(clock, range(100))
    for k in range(100, 150):
        feed(clock, range(k, k + 1), late_ms=(k * 7) % 30)
    assert clock.at_ns(0) == 530 * MS


def test_the_first_reports_are_forgotten_once_there_are_more() -> None:
    clock = StreamClock()
    feed(clock, range(24), report_ms=10)
    assert clock.at_ns(0) == 510 * MS
    feed(clock, range(24, 25))
    assert clock.at_ns(0) == 530 * MS


def test_callbacks_that_fill_the_buffer_before_time_goes_by_do_not_count() -> None:
    clock = StreamClock()
    feed(clock, range(3), late_ms=-30)
    feed(clock, range(3, 60))
    assert clock.at_ns(0) == 530 * MS


def test_a_clock_that_drifts_is_followed() -> None:
    clock = StreamClock()
    for k in range(60_000):  # ten minutes at 100 parts in a million: 60 ms
        clock.observe(k * 10 * MS, k * 10 * MS + k * 1_000, k * 10 * MS + k * 1_000)
    assert abs(clock.at_ns(600_000 * MS) - 600_060 * MS) < MS


def test_a_stream_that_fell_behind_a_little_is_followed() -> None:
    clock = StreamClock()
    feed(clock, range(200))
    feed(clock, range(200, 1300), offset_ms=520)
    assert abs(clock.at_ns(0) - 550 * MS) < 2 * MS


def test_one_wild_callback_is_ignored() -> None:
    clock = StreamClock()
    feed(clock, range(100))
    feed(clock, range(100, 101), offset_ms=1200)
    assert clock.at_ns(0) == 530 * MS


def test_after_sound_was_lost_the_clock_is_set_anew_within_five_callbacks() -> None:
    clock = StreamClock()
    feed(clock, range(100))
    feed(clock, range(100, 105), offset_ms=800)
    assert clock.at_ns(0) == 830 * MS


def test_a_gap_moves_the_clock_at_once_and_keeps_the_distance_to_the_converter() -> None:
    clock = StreamClock()
    feed(clock, range(200))
    clock.gap()
    feed(clock, range(200, 203), offset_ms=515, late_ms=-30, report_ms=99)  # the buffer fills
    feed(clock, range(203, 230), offset_ms=515)
    assert clock.at_ns(0) == 545 * MS
