"""Which language model, recognizer and voice go onto the cards together. Pure.

A ladder is made without looking at how much memory there is, each rung no smaller than the one below in
anything: the smallest language model alone, then beside a good recognizer, then larger ones. The machine gets
the highest rung that fits. So more memory never means a smaller model, and what is refused is refused by one
sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ondam.planner.arithmetic import Need, Spill, over_cards, spill
from ondam.planner.candidates import Candidate
from ondam.planner.rooms import Room

FIRST_EARS_GIB = 3.0
"""What a recognizer may take beside the smallest language model: Whisper large-v3-turbo takes 2.51."""

SPEECH_SHARE = 1 / 3
"""Of the language model's memory that a larger recognizer, or a voice that wants a card, may take: each is
waited for in every turn, but an answer is only as good as the language model."""


@dataclass(frozen=True, slots=True)
class Rung:
    """What goes onto the cards together."""

    llm: Candidate | None = None
    stt: Candidate | None = None
    tts: Candidate | None = None

    @property
    def speech(self) -> tuple[Candidate, ...]:
        """Recognizer and voice, as far as they are there."""
        return tuple(found for found in (self.stt, self.tts) if found is not None)


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate in its room."""

    candidate: Candidate
    rooms: tuple[Room, ...]
    """More than one where its layers are laid over them."""
    need: Need
    """On its device."""
    spill: Spill | None = None

    @property
    def device(self) -> str:
        """As the engine is told: ``cuda:0``; ``cuda`` where it lies over all cards."""
        return self.rooms[0].device if len(self.rooms) == 1 else self.rooms[0].kind

    @property
    def gib(self) -> float:
        """In all memories."""
        return round(self.need.gib + (self.spill.in_memory_gib if self.spill else 0.0), 2)


@dataclass(frozen=True, slots=True)
class Fit:
    """A rung that fits, and what it leaves."""

    placed: tuple[Placed, ...]
    left: Mapping[str, float]
    """GiB by device."""


def ladder(
    llms: Sequence[Candidate], stts: Sequence[Candidate], ttss: Sequence[Candidate]
) -> tuple[Rung, ...]:
    """From the lowest rung up. Each sorted by quality, the best last; ``ttss``: voices that want a card.

    The lowest holds only what can run nowhere else and was asked for by name.
    """
    ears, brains, voice = pruned(stts), pruned(llms), ttss[-1] if ttss else None
    # Of what was named the smallest will do as the lowest rung; the next ones offer more.
    base = Rung(None, _named(ears[0] if ears else None), _named(voice))
    rungs = [base]
    if not brains:
        rungs += [Rung(None, stt, base.tts) for stt in ears]
        return (*rungs, Rung(None, ears[-1] if ears else None, voice))
    if base.stt is None:
        rungs.append(Rung(brains[0], None, base.tts))
    tts, heard = base.tts, None
    for llm in brains:
        share = max(FIRST_EARS_GIB, llm.need.gib * SPEECH_SHARE)
        able = [n for n, stt in enumerate(ears) if stt.fixed or stt.need.gib <= share]
        # The first recognizer is a good one: a worse one saves less than it costs to hear badly.
        first = max(able, default=0) if heard is None else heard
        steps = ears[first : max(able) + 1] if able else [None]
        rungs += [Rung(llm, stt, tts) for stt in steps]
        heard = max(able, default=heard)
        if (
            tts is None
            and voice is not None
            and (voice.fixed or voice.need.gib <= llm.need.gib * SPEECH_SHARE)
        ):
            tts = voice
            rungs.append(Rung(llm, steps[-1], tts))
    return tuple(rungs)


def _named(candidate: Candidate | None) -> Candidate | None:
    return candidate if candidate is not None and must(candidate) else None


def must(candidate: Candidate) -> bool:
    """Asked for by name, and nothing for the processor."""
    return candidate.fixed and not candidate.light


def pruned(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Without those that take as much as a better one."""
    kept: list[Candidate] = []
    for candidate in reversed(candidates):
        if not kept or candidate.need.gib < kept[-1].need.gib:
            kept.append(candidate)
    return kept[::-1]


def fit(rung: Rung, rooms: Sequence[Room], memory: Room, *, slowest: float | None) -> Fit | None:
    """All in their rooms, on as few cards as possible; None where they do not fit.

    ``memory``: where layers of a mixture of experts may lie that fit on no card. A model that was not asked
    for by name is spilled only where that gives ``slowest`` tokens a second; None: not at all.
    """
    starts = list(speech_placements(rung.speech, rooms, {room.device: room.gib for room in rooms}))
    if rung.llm is None:
        return next((Fit(placed, left) for placed, left in starts), None)
    for way in (_alone, _over_all):
        for placed, left in starts:
            if found := way(rung.llm, rooms, left):
                return Fit((*placed, found[0]), found[1])
    for placed, left in starts:
        if found := _spilled(rung.llm, rooms, left, memory, slowest):
            return Fit((*placed, found[0]), found[1])
    return None


Left = Mapping[str, float]


def speech_placements(
    wanted: Sequence[Candidate], rooms: Sequence[Room], left: Left
) -> Iterator[tuple[tuple[Placed, ...], Left]]:
    """Recognizer and voice on each card that has room for them, the fullest first."""
    if not wanted:
        yield (), left
        return
    first, *others = wanted
    for room in sorted(rooms, key=lambda room: left[room.device]):
        if room.device in first.gates and first.need.gib <= left[room.device]:
            rest = {**left, room.device: round(left[room.device] - first.need.gib, 2)}
            for placed, after in speech_placements(others, rooms, rest):
                yield (Placed(first, (room,), first.need), *placed), after


def _alone(llm: Candidate, rooms: Sequence[Room], left: Left) -> tuple[Placed, Left] | None:
    for room in sorted(rooms, key=lambda room: -left[room.device]):
        if room.device in llm.gates and llm.need.gib <= left[room.device]:
            rest = {**left, room.device: round(left[room.device] - llm.need.gib, 2)}
            return Placed(llm, (room,), llm.need), rest
    return None


def _over_all(llm: Candidate, rooms: Sequence[Room], left: Left) -> tuple[Placed, Left] | None:
    over = spread(llm, rooms, left)
    if len(over) < 2:
        return None
    need, there = over_cards(llm.need, len(over)), sum(left[room.device] for room in over)
    if need.gib > round(there, 2):
        return None
    # Layers go by what is free on each, so that each card is filled to the same part.
    rest = {room.device: round(left[room.device] * (1 - need.gib / there), 2) for room in over}
    return Placed(llm, over, need), {**left, **rest}


def _spilled(
    llm: Candidate, rooms: Sequence[Room], left: Left, memory: Room, slowest: float | None
) -> tuple[Placed, Left] | None:
    if not llm.manifest.needs.spills or (slowest is None and not llm.named):
        return None
    single = [room for room in sorted(rooms, key=lambda r: -left[r.device]) if room.device in llm.gates][:1]
    for over in (spread(llm, rooms, left), tuple(single)):
        if not over:
            continue
        need, there = over_cards(llm.need, len(over)), round(sum(left[room.device] for room in over), 2)
        parts = spill(llm.card, need, there, memory.gb_s, over[0].gb_s)
        if parts is None or parts.in_memory_gib > memory.gib:
            continue
        if llm.named or (parts.tokens_per_s or 0.0) >= (slowest or 0.0):
            return Placed(llm, over, parts.on_card, parts), {**left, **{room.device: 0.0 for room in over}}
    return None


def spread(llm: Candidate, rooms: Sequence[Room], left: Left) -> tuple[Room, ...]:
    """The cards over which it can be laid."""
    if not llm.manifest.needs.several_cards:
        return ()
    return tuple(room for room in rooms if room.device in llm.gates and left[room.device] > 0)
