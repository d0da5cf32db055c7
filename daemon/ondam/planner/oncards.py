"""What goes onto the cards, and by which sum everything larger was refused. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from ondam.messages import Phrase
from ondam.models.card import ModelCard
from ondam.planner.arithmetic import Addend, Need, less, over_cards, with_floor
from ondam.planner.candidates import Candidate, Search, Wish, declared
from ondam.planner.ladder import Fit, Placed, Rung, fit, ladder, pruned, speech_placements, spread
from ondam.planner.plan import Refusal
from ondam.planner.rooms import Room
from ondam.supervisor.manifest import Manifest
from ondam.types import Stage


@dataclass(frozen=True, slots=True)
class Main:
    """The machine's own memory: every engine's program lies there, wherever its model does."""

    budget: Need
    shared: bool
    """Whether what lies on a card lies in it too."""
    least: Mapping[Stage, float]
    """GiB that a stage takes on the processor where nothing of it is on a card."""

    def left(self, placed: Sequence[Placed]) -> float:
        """GiB that are there beside those and what the other stages take on the processor."""
        there = {each.candidate.manifest.stage for each in placed}
        taken = self._others(there) + sum(
            each.candidate.program_gib
            + (each.need.gib if self.shared else 0.0)
            + (each.spill.in_memory_gib if each.spill else 0.0)
            for each in placed
        )
        return round(self.budget.gib - taken, 2)

    def asked(self, candidate: Candidate, rung: Rung) -> tuple[Need, Need]:
        """What a candidate on a rung takes of it, and what the others leave there."""
        every = [each for each in (rung.llm, *rung.speech) if each is not None]
        others = self._others({each.manifest.stage for each in every})
        others += sum(self._of(each).gib for each in every if each is not candidate)
        return self._of(candidate), less(self.budget, others)

    def _of(self, candidate: Candidate) -> Need:
        on_card = candidate.need.addends if self.shared else ()
        return Need((*on_card, Addend("process", candidate.program_gib)))

    def _others(self, there: Set[Stage]) -> float:
        return sum(gib for stage, gib in self.least.items() if stage not in there)


@dataclass(frozen=True, slots=True)
class OnCards:
    """What was found for the stages that were looked at."""

    placed: Mapping[Stage, Placed]
    voice: Candidate | None
    """The voice that was chosen and found no room: it goes to the processor. None where none was chosen."""
    refused: tuple[Refusal, ...] = field(default=())


def on_cards(
    search: Search, rooms: Sequence[Room], memory: Room, main: Main, wishes: Mapping[Stage, Wish]
) -> OnCards:
    """The highest rung that fits, and the voice in what it leaves. ``memory``: see ``ladder.fit``.

    A voice that can run on the processor takes no room from the others, and its model does not hang on how
    much is left: only where it computes does.
    """
    found = {stage: search.candidates(stage, wish, rooms) for stage, wish in wishes.items()}
    voices = found.get("tts", [])
    light = [voice for voice in voices if voice.light]
    heavy = [voice for voice in voices if not voice.light]
    rungs = ladder(found.get("llm", []), found.get("stt", []), heavy)
    slowest = search.settings.tokens_per_s.quality if search.settings.prefer == "quality" else None
    voice = _light_voice(search, light, memory, wishes["tts"]) if "tts" in wishes else None
    if voice is not None and (spoken := search.need(voice.manifest, voice.card, "cpu")):
        main = replace(main, least={**main.least, "tts": spoken.gib})
    fits = [_within(main, fit(rung, rooms, memory, slowest=slowest)) for rung in rungs]
    top = max((n for n, fitting in enumerate(fits) if fitting is not None), default=-1)
    nothing = Fit((), {room.device: room.gib for room in rooms})
    fitting = (fits[top] if top >= 0 else None) or nothing
    full = _with_cache(fitting, main)
    placed = {each.candidate.manifest.stage: each for each in full.placed}
    if "tts" in placed:
        voice = None
    elif voice is not None:
        same = [each for each in light if each.card.id == voice.card.id]
        if same and (room := _room_for(same[-1], rooms, full.left)):
            spoken_there = Placed(same[-1], (room,), same[-1].need)
            if main.left([*full.placed, spoken_there]) >= 0:
                placed["tts"], voice = spoken_there, None
    search.refused += _too_large(rungs[top + 1 :], rooms, fitting, main)
    search.refused += _no_gain(found, rungs)
    return OnCards(placed, voice, tuple(search.refused))


def _within(main: Main, fitting: Fit | None) -> Fit | None:
    """None where the main memory does not hold the programs."""
    return fitting if fitting is not None and main.left(fitting.placed) >= 0 else None


def _with_cache(fitting: Fit, main: Main) -> Fit:
    """The same with as much more of cache as is wanted and nobody on the ladder takes.

    Before the voice, which the processor speaks too: an engine that does not start answers nothing.
    """
    left, placed = dict(fitting.left), []
    there = max(0.0, main.left(fitting.placed)) if main.shared else math.inf
    for each in fitting.placed:
        device = each.rooms[0].device
        more = min(each.candidate.floor, left[device], there) if len(each.rooms) == 1 else 0.0
        there -= more
        left[device] = round(left[device] - more, 2)
        placed.append(replace(each, need=with_floor(each.need, more)))
    return Fit(tuple(placed), left)


def _light_voice(search: Search, light: Sequence[Candidate], memory: Room, wish: Wish) -> Candidate | None:
    """The best voice that a processor computes quickly enough, wherever it will lie."""
    known = len(search.refused)
    able = [each for each in search.candidates("tts", wish, (memory,)) if each.light]
    del search.refused[known:]  # they were told for the cards already, or do not matter here
    named = [each for each in light if each.fixed]
    found = named or able
    return found[-1] if found else None


def _room_for(voice: Candidate, rooms: Sequence[Room], left: Mapping[str, float]) -> Room | None:
    able = [room for room in rooms if room.device in voice.gates and voice.need.gib <= left[room.device]]
    return min(able, key=lambda room: left[room.device], default=None)


def _too_large(above: Sequence[Rung], rooms: Sequence[Room], fitting: Fit, main: Main) -> Iterator[Refusal]:
    """Of each rung above: what it would have put onto a card, told once with what there was for it."""
    told = {id(each.candidate) for each in fitting.placed}
    for rung in above:
        for candidate in (rung.llm, *rung.speech):
            if candidate is None or id(candidate) in told:
                continue
            told.add(id(candidate))
            if candidate is rung.llm:
                full = {room.device: room.gib for room in rooms}
                ways = [left for _, left in speech_placements(rung.speech, rooms, full)] or [full]
            else:
                ways = [_without(candidate.manifest.stage, fitting)]
            budget, over = _most(candidate, rooms, ways)
            need = over_cards(candidate.need, over)
            facts: dict[str, object] = {"need": need.told, "budget": budget.told}
            short = round(need.gib - budget.gib, 2)
            in_main, there = main.asked(candidate, rung)
            if short <= 0 and in_main.gib > there.gib:
                need, budget, short = in_main, there, round(in_main.gib - there.gib, 2)
                facts = {"need": need.told, "budget": budget.told}
            if short > 0:
                reason = Phrase("plan_does_not_fit", **facts, short=f"{short:.2f}")
            else:
                # It would fit, but on this rung something else does not.
                reason = Phrase("plan_language_model_first", **facts)
            yield candidate.refusal(reason, budget.gib, need)


def _without(stage: Stage, fitting: Fit) -> Mapping[str, float]:
    """What is left when another one takes the place of what was placed for a stage."""
    left = dict(fitting.left)
    for placed in fitting.placed:
        if placed.candidate.manifest.stage == stage:
            device = placed.rooms[0].device
            left[device] = round(left[device] + placed.need.gib, 2)
    return left


def _most(
    candidate: Candidate, rooms: Sequence[Room], ways: Sequence[Mapping[str, float]]
) -> tuple[Need, int]:
    """The most that any way of placing the others leaves for ``candidate``, and over how many cards."""
    found: list[tuple[Need, int]] = []
    for left in ways:
        single = [(room,) for room in rooms if room.device in candidate.gates]
        several = spread(candidate, rooms, left)
        for over in (*single, *((several,) if len(several) > 1 else ())):
            found.append((budget_of(over, left), len(over)))
    return max(found, key=lambda way: way[0].gib)


def budget_of(over: Sequence[Room], left: Mapping[str, float]) -> Need:
    """What several cards have, addend by addend, less what was put there before."""
    names = dict.fromkeys(addend.name for room in over for addend in room.budget.addends)
    addends = [Addend(name, round(sum(room.budget.of(name) for room in over), 2)) for name in names]
    taken = round(sum(room.gib - left[room.device] for room in over), 2)
    return Need((*addends, Addend("taken", -taken)))


def _no_gain(found: Mapping[Stage, Sequence[Candidate]], rungs: Sequence[Rung]) -> Iterator[Refusal]:
    """Candidates that stand on no rung, because a better one takes no more."""
    on_rungs = {id(each) for rung in rungs for each in (rung.llm, *rung.speech)}
    for stage in ("llm", "stt"):
        kept = pruned(found.get(stage, []))
        for candidate in found.get(stage, []):
            better = [each for each in kept if each.quality >= candidate.quality and each is not candidate]
            if id(candidate) not in on_rungs and better and better[0].need.gib <= candidate.need.gib:
                facts = {
                    "model": better[0].card.id,
                    "need": candidate.need.told,
                    "gib": f"{better[0].need.gib:.2f}",
                }
                yield candidate.refusal(Phrase("plan_no_gain", **facts))


def no_card(search: Search, wishes: Mapping[Stage, Wish]) -> Iterator[Refusal]:
    """Without a card: one line for each engine that would compute on one."""
    for stage, wish in wishes.items():
        for manifest, found in engines_of(search, stage, wish):
            devices = [device for device in manifest.needs.devices if device != "cpu"]
            cards = [card for card in found if not card.fetchable]
            if devices and cards:
                needs = [need for card in cards if (need := search.need(manifest, card, devices[0]))]
                least = min(needs, key=lambda need: need.gib, default=None)
                code = "plan_on_request" if "cpu" in manifest.needs.devices else "plan_no_card"
                facts = {"engine": manifest.name, "devices": ", ".join(devices), "stage": stage}
                reason = Phrase(code, **facts, need=least.told if least else "–")
                yield Refusal(stage, manifest.name, "", "", devices[0], reason, least, 0.0, wish.fixed)


def engines_of(search: Search, stage: Stage, wish: Wish) -> Iterator[tuple[Manifest, list[ModelCard]]]:
    """Engines of a stage, each with the models that were asked for and that it loads."""
    pairs = list(declared(search.engines, stage, wish))
    for name in dict.fromkeys(manifest.name for manifest, _ in pairs):
        found = [card for manifest, card in pairs if manifest.name == name]
        yield search.engines[name].manifest, found
