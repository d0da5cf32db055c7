"""Many turns through a running daemon, one after another, and the engines asked in turn between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ondam.control.client import Client
from ondam.errors import ControlError, EngineError, OndamError
from ondam.measure.distribution import differences, distribution, prompts, summary
from ondam.measure.raw import RawEngines, RawTimes
from ondam.messages import reader_language
from ondam.types import Audio, Language

REST_S = 0.2
"""Between two measurements: what the last answer left behind (a prompt computed ahead) ends first."""

Step: TypeAlias = Literal["turn", "against", "raw"]


@dataclass(frozen=True, slots=True)
class Question:
    """A spoken question."""

    name: str
    wav: bytes
    audio: Audio
    """The same at 16 kHz."""
    words: str | None = None
    """What is said, where that is known."""


@dataclass(slots=True)
class Run:
    """What was measured, in the order in which it happened. Figures in milliseconds."""

    turns: list[dict[str, Any]] = field(default_factory=list)
    against: list[dict[str, Any]] = field(default_factory=list)
    raw: list[RawTimes] = field(default_factory=list)
    raw_failed: int = 0

    def as_json(self, *, budget_ms: float, against: Mapping[str, object] | None) -> dict[str, Any]:
        """What ``ondam bench --json`` prints but the conditions. ``against``: the other side's settings."""
        figures = summary(self.turns, budget_ms=budget_ms)
        raw = distribution(times.sum for times in self.raw)
        ours, alone = figures["first_audio_ms"]["p50"], raw["p50"]
        made: dict[str, Any] = {
            "turns": self.turns,
            **figures,
            "engine_sum_ms": raw,
            "raw_ms": {
                part: distribution(getattr(times, part) for times in self.raw)
                for part in ("stt", "llm_first_token", "llm_first_clause", "tts_first_audio")
            },
            "raw_prompts": prompts(
                {"prompt": times.prompt_tokens, "cached": times.cached_tokens} for times in self.raw
            ),
            "raw_failed": self.raw_failed,
            "times_engine_sum": round(ours / alone, 3) if ours and alone else None,
        }
        if against is not None:
            other = summary(self.against, budget_ms=budget_ms)
            made["against"] = {"settings": against, "turns": self.against, **other}
            made["difference_ms"] = differences(self.turns, self.against)
        return made


def order(number: int, *, against: bool) -> tuple[Step, ...]:
    """What is measured with one clip. Every second time the other way round, so that drift favours nobody."""
    steps: tuple[Step, ...] = ("turn", "against", "raw") if against else ("turn", "raw")
    return steps if number % 2 == 0 else steps[::-1]


async def measure(
    client: Client,
    engines: RawEngines,
    questions: Sequence[Question],
    *,
    language: Language,
    turns: int,
    settle: int,
    against: Mapping[str, object] | None = None,
    displace: bool = True,
    early: Callable[[Mapping[str, Any]], bool] = lambda turn: False,
    tick: Callable[[], None] = lambda: None,
) -> Run:
    """``turns`` counted turns (as many of ``against``), after ``settle`` that are not.

    Each is a conversation of its own, and ``displace`` gives it a prompt that no cache knows. ``early`` says
    of a turn that its words came from too little sound.
    A turn that fails is recorded as failed. Raises ControlError when the daemon is gone or refuses.
    """
    run = Run()
    for number, question in enumerate(_rounds(questions, settle + turns)):
        into = run if number >= settle else Run()
        raw: RawTimes | None = None
        for place, step in enumerate(order(number, against=against is not None)):
            await asyncio.sleep(REST_S)
            if displace:
                await _displace(engines, 10 * number + place)
            if step == "raw":
                raw = await _raw(engines, question, into)
            else:
                settings = against if step == "against" else None
                made = await _turn(client, question, language, settings, early)
                (into.against if step == "against" else into.turns).append(made)
        into.turns[-1]["raw_ms"] = raw.as_json() if raw else None
        tick()
    return run


def _rounds(questions: Sequence[Question], count: int) -> Iterator[Question]:
    for number in range(count):
        yield questions[number % len(questions)]


async def _displace(engines: RawEngines, number: int) -> None:
    try:
        await engines.displace(number)
    except EngineError:
        # It is down: the measurement that follows fails as well, and is counted.
        return


async def _raw(engines: RawEngines, question: Question, into: Run) -> RawTimes | None:
    try:
        times = await engines.answer(question.audio)
    except EngineError:
        into.raw_failed += 1
        return None
    into.raw.append(times)
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
