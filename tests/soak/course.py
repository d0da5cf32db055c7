"""What a soak is made of, drawn from a seed alone: which turns, and what befalls which of them. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ondam.types import Stage

ROUND = 20
"""Turns between two looks at what the daemon takes: it is looked at when all is quiet and well."""

ROUNDS = 20
"""At least so many looks where there are turns enough: a line through fewer says nothing."""

LEAST_ROUND = 4
"""Turns that go on side by side; a shorter round would only wait."""

KINDS: Mapping[str, Mapping[str, float]] = {
    # Not every turn needs an answer aloud, and on fakes a question of one second is a whole one.
    "stub": {"ask": 44, "shown": 14, "say": 8, "wav": 18, "barge": 4, "stop": 4, "leave": 4, "noise": 4},
    "real": {"ask": 30, "shown": 5, "say": 5, "wav": 45, "barge": 5, "stop": 4, "leave": 3, "noise": 3},
}
"""How often each kind of turn comes, in parts of the whole.

``ask`` typed, answered aloud · ``shown`` typed, answered in writing · ``say`` a text read aloud · ``wav`` a
spoken question in a conversation of its own · ``barge`` one into whose answer the user speaks · ``stop``
silence is wished for in the middle · ``leave`` whoever asked goes away · ``noise`` a sound that is no speech.
"""

ALONE = frozenset({"ask", "shown", "say", "stop"})
"""Kinds that share the one conversation of the daemon's own devices: one at a time."""

ENGINE_FAULTS = ("kill", "freeze", "pause", "term", "engine_garbage")
STUB_FAULTS = ("deaf", "slow", "lie_garbage", "lie_half", "lie_nothing", "exit_0")
DAEMON_FAULTS = ("suspend", "control_garbage", "crowd", "descriptors", "journal_locked")
DISK_FAULTS = ("disk_full",)
SOUND_FAULTS = ("speaker_gone", "microphone_gone", "sound_killed", "sound_hung")

STAGES: tuple[Stage, ...] = ("stt", "llm", "tts")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: ``after_s`` after its turn began, for ``lasts_s`` where it has a length."""

    kind: str
    stage: Stage
    after_s: float
    lasts_s: float


@dataclass(frozen=True, slots=True)
class Planned:
    """One turn of the course, and what befalls it."""

    number: int
    kind: str
    fault: Fault | None


def course(
    name: str, turns: int, faults: int, seed: int, *, disk: bool = True, sound: bool = True
) -> list[Planned]:
    """``turns`` turns with ``faults`` of them hit. The same for the same arguments, on every machine.

    The first and the last round are left in peace: what is measured begins and ends in them.
    """
    draw = random.Random(f"{name} {turns} {faults} {seed}")
    weights = KINDS[name]
    kinds = draw.choices(list(weights), list(weights.values()), k=turns)
    calm = round_of(turns)
    hit = set(draw.sample(range(calm, turns - calm), min(faults, max(0, turns - 2 * calm))))
    known = [*ENGINE_FAULTS, *DAEMON_FAULTS]
    known += STUB_FAULTS if name == "stub" else ()
    known += DISK_FAULTS if disk else ()
    known += SOUND_FAULTS if sound else ()
    # Each kind comes as often as any other: a kind that is left out tests nothing.
    bag = _shuffled_for_ever(known, draw)
    return [
        Planned(number, kind, _fault(next(bag), draw) if number in hit else None)
        for number, kind in enumerate(kinds)
    ]


def _fault(kind: str, draw: random.Random) -> Fault:
    return Fault(
        kind, draw.choice(STAGES), round(draw.uniform(0.0, 1.2), 3), round(draw.uniform(0.3, 1.5), 3)
    )


def _shuffled_for_ever(known: Sequence[str], draw: random.Random) -> Iterator[str]:
    while True:
        yield from draw.sample(known, len(known))


def round_of(turns: int) -> int:
    """How many turns there are in a round."""
    return max(1, min(LEAST_ROUND, turns // 8), min(ROUND, turns // ROUNDS))


def rounds(planned: Sequence[Planned]) -> Iterator[Sequence[Planned]]:
    """The course in pieces."""
    step = round_of(len(planned))
    for first in range(0, len(planned), step):
        yield planned[first : first + step]
