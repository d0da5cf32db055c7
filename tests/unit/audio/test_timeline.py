from __future__ import annotations

from ondam.audio.timeline import LONGEST_MEMORY, Timeline

MS = 1_000_000


def test_blocks_that_follow_each_other_are_one_stretch_even_when_their_times_jitter() -> None:
    timeline = Timeline(1000)
    timeline.play(0, 10, 100 * MS)
    timeline.play(10, 10, 111 * MS)
    assert timeline.heard_at_ns(15, 200 * MS) == 115 * MS
    assert timeline.heard(200 * MS) == 20


def test_a_gap_begins_a_new_stretch_with_its_own_time() -> None:
    timeline = Timeline(1000)
    timeline.play(0, 10, 100 * MS)
    timeline.play(10, 10, 150 * MS)
    assert timeline.heard_at_ns(9, 200 * MS) == 109 * MS
    assert timeline.heard_at_ns(10, 200 * MS) == 150 * MS
    assert timeline.heard(130 * MS) == 10


def test_numbers_that_were_left_out_were_never_heard() -> None:
    timeline = Timeline(1000)
    timeline.play(0, 10, 100 * MS)
    timeline.play(50, 10, 110 * MS)
    assert timeline.heard_at_ns(20, 200 * MS) is None
    assert timeline.heard(200 * MS) == 20


def test_cutting_shortens_the_stretch_that_plays_and_drops_later_ones() -> None:
    timeline = Timeline(1000)
    timeline.play(0, 10, 100 * MS)
    timeline.play(10, 10, 150 * MS)
    timeline.cut(105 * MS)
    assert timeline.end_ns == 105 * MS
    assert timeline.heard(500 * MS) == 5


def test_memory_is_bounded_and_the_count_stays_right() -> None:
    timeline = Timeline(1000)
    for k in range(LONGEST_MEMORY + 50):
        timeline.play(k, 1, k * 10 * MS)
    assert timeline.heard(10**12 * MS) == LONGEST_MEMORY + 50
    assert timeline.heard_at_ns(0, 10**12) is None


def test_a_cut_tells_where_what_was_cut_begins() -> None:
    timeline = Timeline(1000)
    timeline.play(0, 10, 100 * MS)
    timeline.play(10, 10, 150 * MS)
    assert timeline.cut(160 * MS) is None
    assert timeline.cut(153 * MS) == 13
    assert timeline.cut(120 * MS) == 10
    assert timeline.cut(100 * MS) == 0
    assert timeline.cut(100 * MS) is None
