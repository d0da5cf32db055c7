from __future__ import annotations

from ondam.control.crowd import Peer, who_goes

ANNA, BORA = 1000, 1001


def in_order(*peers: Peer) -> list[tuple[Peer, bool]]:
    return [(peer, False) for peer in peers]


def test_the_program_that_holds_most_makes_room() -> None:
    present = in_order(Peer(ANNA, 1), *[Peer(ANNA, 2)] * 2)
    assert who_goes(Peer(ANNA, 3), present) == 1
    assert who_goes(Peer(ANNA, 1), present) is None, "it would hold two, of two"
    assert who_goes(Peer(ANNA, 2), present) is None


def test_what_is_idle_goes_before_what_is_not() -> None:
    program = Peer(ANNA, 2)
    present = [(Peer(ANNA, 1), True), (program, False), (program, True), (program, True)]
    assert who_goes(Peer(ANNA, 3), present) == 2


def test_a_user_with_many_programs_shuts_no_other_user_out() -> None:
    present = in_order(Peer(BORA, 7), *(Peer(ANNA, number) for number in range(10, 20)))
    assert who_goes(Peer(BORA, 8), present) == 1
    assert who_goes(Peer(ANNA, 20), present) is None


def test_two_who_want_everything_come_to_rest_at_half_each() -> None:
    present = in_order(*[Peer(ANNA, 1)] * 6)
    moved = 0
    while (goes := who_goes(Peer(BORA, 2), present)) is not None:
        present = [*present[:goes], *present[goes + 1 :], (Peer(BORA, 2), False)]
        moved += 1
    assert moved == 3
    assert who_goes(Peer(ANNA, 1), present) is None


def test_nobody_goes_where_nobody_is() -> None:
    assert who_goes(Peer(ANNA, 1), []) is None
