"""Several conversations at once on the same engines, each through the whole daemon, in real time.

A step is one number of sessions. Each session asks one question after another, with a pause between; its
first turn is not counted, and when the last counted turn has begun, the other sessions go on until it has
ended: every counted turn had the same company.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from ondam.control import wire
from ondam.errors import ControlError, OndamError
from ondam.measure.bench import Question, cut_short, same_words
from ondam.measure.distribution import distribution, is_answered, served_whole, summary
from ondam.measure.scaling import DOORS, Load, limit, turns_per_min, waited_ms
from ondam.messages import reader_language
from ondam.types import Language

STAGGER_S = 3.0
"""Sessions begin within so long of each other, at random: about the length of a question."""

PAUSE_S = (0.2, 1.0)
"""Between two turns of a session, at random: sessions that queue behind each other would fall into step."""

LOOK_S = 0.25
"""How often the daemon's memory is looked at."""


class Client(Protocol):
    """What is asked of the daemon's client."""

    async def status(self) -> wire.Status:
        """Everything at this moment."""

    async def wav_turn(
        self, wav: bytes, language: str | None = None, *, reset_history: bool = False
    ) -> tuple[wire.Turn, bytes]:
        """One whole turn; several may run at once."""


@dataclass(slots=True)
class Step:
    """What so many sessions at once came to."""

    sessions: int
    turns: list[dict[str, Any]] = field(default_factory=list)
    """Counted ones, in the order in which they ended."""
    cycles_s: list[float] = field(default_factory=list)
    seconds: float = 0.0
    load_average_1min: float = 0.0
    before: dict[str, float | None] = field(default_factory=dict)
    """MiB by process: ``daemon``, and the engines by name."""
    after: dict[str, float | None] = field(default_factory=dict)
    most_mib: float | None = None
    """Of the daemon, while the step lasted."""

    @property
    def answered(self) -> int:
        """Counted turns whose answer was heard."""
        return sum(1 for turn in self.turns if is_answered(turn))

    @property
    def whole_from_cache(self) -> int:
        """Counted turns whose prompt the language engine had as a whole: a new question waits longer."""
        answered = (turn for turn in self.turns if is_answered(turn))
        return sum(1 for turn in answered if served_whole(turn["tokens"]))

    @property
    def throughput(self) -> float | None:
        """Answered turns a minute."""
        return turns_per_min(self.sessions, self.cycles_s, self.answered)

    def load(self) -> Load:
        """What decides whether it is worth it."""
        first = distribution(turn["first_audio_ms"] for turn in self.turns if is_answered(turn))
        failed = len(self.turns) - self.answered
        return Load(self.sessions, self.throughput, first["p50"], first["p95"], failed)

    def as_json(self, *, budget_ms: float) -> dict[str, Any]:
        """An entry of ``steps``."""
        answered = [turn for turn in self.turns if is_answered(turn)]
        return {
            "sessions": self.sessions,
            "answered": self.answered,
            **summary(self.turns, budget_ms=budget_ms),
            "waited_ms": {door: distribution(waited_ms(turn, door) for turn in answered) for door in DOORS},
            "engine_ms": {
                own: distribution(turn["engine_ms"].get(own) for turn in answered)
                for own in ("stt", "llm_first_token", "llm_first_clause", "tts_first_audio")
            },
            "turns_per_min": self.throughput,
            "seconds": round(self.seconds, 1),
            "load_average_1min": round(self.load_average_1min, 2),
            "memory_mib": {
                name: {"before": self.before.get(name), "after": self.after.get(name)}
                | ({"max": self.most_mib} if name == "daemon" else {})
                for name in {**self.before, **self.after}
            },
            "turns": self.turns,
        }


def as_json(steps: Sequence[Step], *, budget_ms: float) -> dict[str, Any]:
    """What ``ondam bench --concurrency --json`` prints but the conditions."""
    found = limit([step.load() for step in steps], budget_ms=budget_ms)
    return {"steps": [step.as_json(budget_ms=budget_ms) for step in steps], **found.as_json()}


async def measure(
    client: Client,
    questions: Sequence[Question],
    steps: Sequence[int],
    *,
    language: Language,
    turns: int,
    settle: int,
    seed: int,
    early: Callable[[Mapping[str, Any]], bool] = lambda turn: False,
    resident_mib: Callable[[], float | None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    tick: Callable[[], None] = lambda: None,
) -> list[Step]:
    """``turns`` counted turns for each of ``steps``, after ``settle`` one after another that are not.

    ``seed`` orders questions and pauses. ``resident_mib``: what the daemon holds now. Turns that fail are
    recorded as failed. Raises ControlError when the daemon is gone or refuses.
    """
    asking = _Asking(client, language, early)
    settling = _order(questions, f"{seed} settle")
    for _ in range(settle):
        await asking.turn(next(settling), 0)
        tick()
    made = []
    for sessions in steps:
        step = Step(sessions, before=await _memory(client, resident_mib))
        looking = asyncio.create_task(_look(step, resident_mib))
        began = clock()
        try:
            await _Running(asking, step, questions, turns, f"{seed} {sessions}", clock, tick).run()
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
        step.seconds = clock() - began
        step.load_average_1min = os.getloadavg()[0]
        step.after = await _memory(client, resident_mib)
        made.append(step)
    return made


def _order(questions: Sequence[Question], seed: str) -> Iterator[Question]:
    """Round by round, each shuffled anew: every clip comes equally often."""
    chance = random.Random(seed)
    while True:
        yield from chance.sample(questions, len(questions))


async def _memory(client: Client, resident_mib: Callable[[], float | None]) -> dict[str, float | None]:
    status = await client.status()
    return {"daemon": resident_mib()} | {engine["name"]: engine["rss_mib"] for engine in status["engines"]}


async def _look(step: Step, resident_mib: Callable[[], float | None]) -> None:
    while True:
        now = resident_mib()
        if now is not None:
            step.most_mib = max(now, step.most_mib or 0.0)
        await asyncio.sleep(LOOK_S)


@dataclass(frozen=True, slots=True)
class _Asking:
    client: Client
    language: Language
    early: Callable[[Mapping[str, Any]], bool]

    async def turn(self, question: Question, session: int) -> dict[str, Any]:
        asked = {"clip": question.name, "asked_by": session}
        try:
            turn, _ = await self.client.wav_turn(question.wav, self.language, reset_history=True)
        except ControlError:
            raise  # it is the daemon that is not there, and not this turn that failed
        except OndamError as error:
            told = error.message(reader_language())
            failed = {"code": told.code, "text": told.text}
            return {**asked, "outcome": "failed", "fault": None, "first_audio_ms": None, "error": failed}
        return {
            **asked,
            **turn,
            "cut_short": cut_short(turn) or self.early(turn),
            "misheard": question.words is not None
            and not same_words(question.words, turn["transcript"] or ""),
        }


class _Running:
    """One step, while it runs."""

    def __init__(
        self,
        asking: _Asking,
        step: Step,
        questions: Sequence[Question],
        turns: int,
        seed: str,
        clock: Callable[[], float],
        tick: Callable[[], None],
    ) -> None:
        self._asking = asking
        self._step = step
        self._questions = questions
        self._left = self._wanted = turns
        self._seed = seed
        self._clock = clock
        self._tick = tick
        self._over = asyncio.Event()

    async def run(self) -> None:
        sessions = {asyncio.create_task(self._session(n)) for n in range(self._step.sessions)}
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait({*sessions, over}, return_when=asyncio.FIRST_COMPLETED)
            for session in sessions:
                if session.done():
                    session.result()  # raises what ended it
        finally:
            for task in (*sessions, over):
                task.cancel()
            await asyncio.gather(*sessions, over, return_exceptions=True)

    async def _session(self, number: int) -> None:
        chance = random.Random(f"{self._seed} {number}")
        questions = _order(self._questions, f"{self._seed} {number} questions")
        await asyncio.sleep(chance.uniform(0, STAGGER_S) if self._step.sessions > 1 else 0.0)
        counts = False
        while not self._over.is_set():
            if counts:
                self._left -= 1
            began = self._clock()
            turn = await self._asking.turn(next(questions), number)
            if counts:
                self._step.turns.append(turn)
                self._tick()
            await asyncio.sleep(chance.uniform(*PAUSE_S))
            if counts:
                self._step.cycles_s.append(self._clock() - began)
            if len(self._step.cycles_s) >= self._wanted:
                self._over.set()
            counts = self._left > 0
