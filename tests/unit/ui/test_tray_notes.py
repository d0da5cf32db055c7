"""When a fault is told, and when it is not told again."""

from __future__ import annotations

from ondam_ui.tray.notes import AGAIN_S, BETWEEN_S, Told, tell, waits


def test_a_fault_is_told_once_and_goes_with_the_fault() -> None:
    told, lines = tell(Told(), ("deaf",), 0.0)
    assert lines == ("deaf",)
    told, lines = tell(told, ("deaf",), 1.0)
    assert lines is None
    told, lines = tell(told, (), 2.0)
    assert lines == ()
    assert tell(told, (), 3.0)[1] is None


def test_one_that_comes_and_goes_is_told_once_in_ten_minutes() -> None:
    told, _ = tell(Told(), ("deaf",), 0.0)
    told, _ = tell(told, (), 20.0)
    told, lines = tell(told, ("deaf",), 40.0)
    assert lines is None
    assert waits(told, ("deaf",), 40.0) == AGAIN_S - 40
    assert tell(told, ("deaf",), AGAIN_S)[1] == ("deaf",)


def test_faults_that_come_together_are_told_in_one_go() -> None:
    told, _ = tell(Told(), ("a",), 0.0)
    told, lines = tell(told, ("a", "b"), 1.0)
    assert lines is None
    told, lines = tell(told, ("a", "b", "c"), 2.0)
    assert lines is None
    assert waits(told, ("a", "b", "c"), 2.0) == BETWEEN_S - 2
    told, lines = tell(told, ("a", "b", "c"), BETWEEN_S)
    assert lines == ("a", "b", "c")
    assert waits(told, ("a", "b", "c"), BETWEEN_S) is None
    assert tell(told, ("b",), BETWEEN_S + 1)[1] == ("b",)
