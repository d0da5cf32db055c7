"""Many turns through a running daemon, one after another, and the engines asked in turn between them."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ondam.control.client import Client
from ondam.errors import ControlError, EngineError, OndamError
from ondam.measure.compare import FIGURES, within
from ondam.measure.distribution import differences, distribution, prompts, summary
from ondam.measure.raw import RawEngines, RawTimes
from ondam.messages import reader_language
from ondam.types import Audio, Language

REST_S = 0.2
"""Between two measurements: what the last answer left behind (a prompt computed ahead) ends first."""

Step: TypeAlias = Literal["turn", "against", "raw", "raw_against"]

ALONE: tuple[tuple[Step, Step], ...] = (("turn", "raw"), ("against", "raw_against"))
"""What the engines take without the daemon stands in the turn with the same clip."""


@dataclass(frozen=True, slots=True)
class Question:
    """A spoken question."""

    name: str
    wav: bytes
    audio: Audio
    """The same at 16 kHz."""
    words: str | None = None
    """What is said, where that is known."""

    def as_json(self) -> dict[str, Any]:
        """What conditions say of it: runs that asked the same can be held against each other."""
        seconds = round(self.audio.seconds, 3)
        return {"name": self.name, "sha256": hashlib.sha256(self.wav).hexdigest(), "seconds": seconds}


@dataclass(frozen=True, slots=True)
class Side:
    """One way of answering: a daemon, its engines without it, and the conversation's own settings."""

    client: Client
    engines: RawEngines
    settings: Mapping[str, object] | None = None


@dataclass(slots=True)
class Run:
    """What was measured, in the order in which it happened. Figures in milliseconds."""

    turns: list[dict[str, Any]] = field(default_factory=list)
    against: list[dict[str, Any]] = field(default_factory=list)
    raw: list[RawTimes] = field(default_factory=list)
    raw_against: list[RawTimes] = field(default_factory=list)
    """Of the other side's engines, where they are others."""
    raw_failed: int = 0
    before: int = 0
    """Turns of each side that were not counted."""

    def as_json(self, *, budget_ms: float, against: Mapping[str, object] | None) -> dict[str, Any]:
        """What ``ondam bench --json`` prints but the conditions. ``against``: what is told of the other side
        beside its figures; None where there is none."""
        made = {
            **self._side(self.turns, self.raw, budget_ms),
            "raw_prompts": prompts(
                {"prompt": times.prompt_tokens, "cached": times.cached_tokens} for times in self.raw
            ),
            "raw_failed": self.raw_failed,
        }
        if against is not None:
            # A run that was stopped may have asked one side once more than the other.
            pairs = min(len(self.turns), len(self.against))
            one, other = self.turns[:pairs], self.against[:pairs]
            made["against"] = {**against, **self._side(self.against, self.raw_against, budget_ms)}
            made["difference_ms"] = differences(one, other)
            made["comparison"] = {figure: within(one, other, figure).as_json() for figure in FIGURES}
        return made

    @staticmethod
    def _side(
        turns: Sequence[Mapping[str, Any]], raw: Sequence[RawTimes], budget_ms: float
    ) -> dict[str, Any]:
        made = {"turns": turns, **summary(turns, budget_ms=budget_ms)}
        ours, alone = made["first_audio_ms"]["p50"], distribution(times.sum for times in raw)
        return {
            **made,
            "engine_sum_ms": alone,
            "raw_ms": {
                part: distribution(getattr(times, part) for times in raw)
                for part in ("stt", "llm_first_token", "llm_first_clause", "tts_first_audio")
            },
            "times_engine_sum": round(ours / alone["p50"], 3) if ours and alone["p50"] else None,
        }


def order(number: int, *, against: bool, apart: bool = False, flipped: bool = False) -> tuple[Step, ...]:
    """What is measured with one clip. Every second time the other way round, so that drift favours nobody.

    ``apart``: the other side has engines of its own. ``flipped``: the other side goes first.
    """
    steps: tuple[Step, ...] = ("turn", "against", "raw") if against else ("turn", "raw")
    if apart:
        steps = (*steps, "raw_against")
    return steps if (number % 2 == 0) != flipped else steps[::-1]


def asked(questions: Sequence[Question], count: int, seed: int | None) -> Iterator[Question]:
    """Round by round, so that every clip comes equally often; each round shuffled anew by ``seed``, or as
    listed."""
    chance = random.Random(seed)
    left: list[Question] = []
    for _ in range(count):
        if not left:
            left = list(questions)
            if seed is not None:
                chance.shuffle(left)
        yield left.pop(0)


async def measure(
    sides: Sequence[Side],
    questions: Sequence[Question],
    *,
    language: Language,
    turns: int,
    settle: int,
    until_settled: bool = False,
    settled_s: float = 0.0,
    seed: int | None = None,
    displace: bool = True,
    early: Callable[[Mapping[str, Any]], bool] = lambda turn: False,
    tick: Callable[[], None] = lambda: None,
    into: Run | None = None,
) -> Run:
    """``turns`` counted turns of each side, after ``settle`` that are not.

    With ``until_settled`` these end as soon as every side is settled, and after them it is waited until the
    engines have served for ``settled_s``. Each turn is a conversation of its own, and ``displace`` gives it a
    prompt that no cache knows. ``seed`` orders the clips, and says which side goes first in the first of two
    turns. ``early`` says of a turn that its words came from too little sound. ``into`` holds what was
    measured also when this ends early. A turn that fails is recorded as failed. Raises ControlError when the
    daemon is gone or refuses.
    """
    run = into if into is not None else Run()
    once = _Once(sides, language, displace, early)
    for number, question in enumerate(asked(questions, settle, seed)):
        # Numbers below 0: no counted turn has the same prompts to displace with.
        warming = Run()
        await once.ask(question, order(number, against=len(sides) > 1), number - settle, warming)
        run.before += 1
        tick()
        if until_settled and all(turn.get("settled") for turn in (*warming.turns, *warming.against)):
            break
    if until_settled and run.before:
        latest = (*warming.turns, *warming.against)
        served = [(turn.get("warmth") or {}).get("ready_s") for turn in latest]
        await asyncio.sleep(max([0.0, *(settled_s - ready_s for ready_s in served if ready_s is not None)]))
    chance = random.Random(seed)
    flipped = False
    apart = len(sides) > 1 and sides[1].engines is not sides[0].engines
    for number, question in enumerate(asked(questions, turns, seed)):
        if seed is not None and number % 2 == 0:
            flipped = chance.random() < 0.5
        steps = order(number, against=len(sides) > 1, apart=apart, flipped=flipped)
        await once.ask(question, steps, number, run)
        tick()
    return run


class _Once:
    """Asks one question of everything there is to ask."""

    def __init__(
        self,
        sides: Sequence[Side],
        language: Language,
        displace: bool,
        early: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        self._sides = sides
        self._language = language
        self._displace = displace
        self._early = early

    async def ask(self, question: Question, steps: Sequence[Step], number: int, into: Run) -> None:
        """What is measured goes ``into`` a run, as soon as it is known."""
        raw: dict[Step, RawTimes | None] = {}
        made: dict[Step, dict[str, Any]] = {}
        for place, step in enumerate(steps):
            side = self._sides[step in ("against", "raw_against")]
            await asyncio.sleep(REST_S)
            if self._displace:
                await _displace(side.engines, 10 * number + place)
            if step in ("raw", "raw_against"):
                raw[step] = await _raw(side.engines, question, into, step)
            else:
                made[step] = await _turn(side.client, question, self._language, side.settings, self._early)
                (into.against if step == "against" else into.turns).append(made[step])
        for step, alone in ALONE:
            if step in made and (times := raw.get(alone)) is not None:
                made[step]["raw_ms"] = times.as_json()


async def _displace(engines: RawEngines, number: int) -> None:
    try:
        await engines.displace(number)
    except EngineError:
        # It is down: the measurement that follows fails as well, and is counted.
        return


async def _raw(engines: RawEngines, question: Question, into: Run, step: Step) -> RawTimes | None:
    try:
        times = await engines.answer(question.audio)
    except EngineError:
        into.raw_failed += 1
        return None
    (into.raw if step == "raw" else into.raw_against).append(times)
    return times


async def _turn(
    client: Client,
    question: Question,
    language: Language,
    settings: Mapping[str, object] | None,
    early: Callable[[Mapping[str, Any]], bool],
) -> dict[str, Any]:
    try:
        turn, _ = await client.wav_turn(question.wav, language, reset_history=True, settings=settings)
    except ControlError:
        raise  # it is the daemon that is not there, and not this turn that failed
    except OndamError as error:
        told = error.message(reader_language())
        failed = {"code": told.code, "text": told.text}
        return {"clip": question.name, "outcome": "failed", "first_audio_ms": None, "error": failed}
    return {
        "clip": question.name,
        **turn,
        "cut_short": cut_short(turn) or early(turn),
        "misheard": question.words is not None and not same_words(question.words, turn["transcript"] or ""),
    }


def cut_short(turn: Mapping[str, Any]) -> bool:
    """Whether recognition was asked before the user's last voiced sample: what came after was never heard."""
    sent = turn["marks_ms"].get("stt_sent")
    return sent is not None and sent < 0


def same_words(one: str, other: str) -> bool:
    """The same letters and digits; case, spaces and marks do not count."""
    return _letters(one) == _letters(other)


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
