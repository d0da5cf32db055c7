from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ondam.journal.believed import Believed

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Clocks:
    """A wall clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.wall = NOON
        self.uptime = timedelta(days=3)

    def pass_(self, **time: float) -> None:
        self.wall += timedelta(**time)
        self.uptime += timedelta(**time)


def believed(clocks: Clocks) -> Believed:
    return Believed(lambda: clocks.wall, lambda: clocks.uptime)


def test_without_a_jump_it_is_the_machines_date_also_where_that_is_slewed() -> None:
    clocks = Clocks()
    date = believed(clocks)
    for _ in range(100):
        clocks.pass_(hours=1)
        clocks.wall += timedelta(seconds=1)
        assert date() == clocks.wall


def test_a_date_that_is_wrong_for_a_moment_is_not_believed() -> None:
    clocks = Clocks()
    date = believed(clocks)
    clocks.pass_(hours=2)
    clocks.wall += timedelta(days=400)
    assert date() == NOON + timedelta(hours=2)
    clocks.pass_(minutes=59)
    assert date() == NOON + timedelta(hours=2, minutes=59)
    clocks.wall -= timedelta(days=400)
    clocks.pass_(hours=5)
    assert date() == NOON + timedelta(hours=7, minutes=59)


def test_a_date_that_holds_for_an_hour_is_meant() -> None:
    clocks = Clocks()
    date = believed(clocks)
    clocks.wall += timedelta(days=60)  # the network's time, minutes after a start without a battery
    assert date() == NOON
    clocks.pass_(minutes=61)
    assert date() == clocks.wall == NOON + timedelta(days=60, minutes=61)


def test_a_clock_that_jumps_about_is_believed_when_it_has_come_to_rest() -> None:
    clocks = Clocks()
    date = believed(clocks)
    for days in (400, -30, 900):
        clocks.wall += timedelta(days=days)
        clocks.pass_(minutes=40)
        date()
    assert date() == NOON + timedelta(hours=2)
    clocks.pass_(minutes=60)  # since it was seen
    assert date() == clocks.wall
