"""Who has to go when one more comes than there is room for. Pure.

Whoever holds most of the room makes it: first among users, then among one user's programs. So one client that
opens connections without end shuts nobody out but itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Peer(NamedTuple):
    """Who is at the other end of a connection."""

    user: int
    process: int


def who_goes(newcomer: Peer, present: Sequence[tuple[Peer, bool]]) -> int | None:
    """The place in ``present`` of whoever makes room for ``newcomer``; None: nobody, it is turned away.

    ``present``: who is in, those who came first in front, and whether each is idle. Nobody goes for one who
    would then hold as much: two who want everything would put each other out for ever.
    """
    users = Counter(peer.user for peer, _ in present)
    programs = Counter(peer for peer, _ in present)
    if not present:
        return None
    greedy = max(programs, key=lambda peer: (users[peer.user], programs[peer]))
    if greedy.user == newcomer.user:
        fair = programs[newcomer] + 1 < programs[greedy]
    else:
        fair = users[newcomer.user] + 1 < users[greedy.user]
    if not fair:
        return None
    theirs = [(not idle, number) for number, (peer, idle) in enumerate(present) if peer == greedy]
    return min(theirs)[1]
