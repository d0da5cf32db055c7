"""One turn as it is remembered and shown. The wire shape of every command that prints turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ondam.dialog.actions import Outcome
from ondam.journal.conditions import Conditions
from ondam.journal.marks import MARKS, EngineTimes, Marks, stages_ms
from ondam.journal.warmth import Population, Warmth
from ondam.types import Mode, Nanoseconds, Samples, TurnId


@dataclass(slots=True)
class Turn:
    """What is known of a turn; filled while it runs, written once when it is over."""

    id: TurnId
    session: str
    started_at: datetime
    aloud: bool = True
    transcript: str | None = None
    reply: str | None = None
    """What the model generated; ``heard`` is the part that was played."""
    written: str = ""
    """The clauses made of it so far: what ``heard`` will be when all of it was played."""
    heard: str = ""
    outcome: Outcome | None = None
    fault: str | None = None
    """Message code of what the user was told when something went wrong. Needs no facts."""
    cause: str | None = None
    """Code of the error behind it; its facts are in the log."""
    marks: Marks = field(default_factory=Marks)
    engine_ms: EngineTimes = field(default_factory=EngineTimes)
    utterance_s: float = 0.0
    answer_s: float = 0.0
    """Length of the audio that was played."""
    voiced_s: float = 0.0
    """Length of the sound that the voice made, played or not, as it tells."""
    clauses: int = 0
    slots: dict[str, Any] | None = None
    """What the model filled in beside what it said; None without a form, and where it is not filled in."""
    canned: bool = False
    """Answered from the configuration, without the language model."""
    filler_ns: Nanoseconds | None = None
    """When the first sample of a filler passed the converter. It is no part of the answer."""
    llm_calls: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    drafts_made: int = 0
    drafts_dropped: int = 0
    draft_tokens: int = 0
    """Tokens generated for drafts that were dropped."""
    streamed: int = 0
    """Tokens that have come so far."""
    taken_back: int = 0
    """Endpoints that were false: the user went on."""
    warmth: Warmth | None = None
    population: Population = "cold"
    underruns: int = 0
    """How often the speaker ran dry while the turn lasted."""
    thought: bool = False
    """The model reasoned before or beside its answer. Never spoken, and paid for in full."""
    budget_ms: float | None = None
    """What first audio may take."""
    conditions: Conditions | None = None
    crew: int = 0
    """Number of the engines that answered together, in this run: whose conditions it has. Not written."""
    moment: dict[str, Any] = field(default_factory=dict)
    """Conditions that may be different in the next turn: load average, power."""
    voice: str | None = None
    """The engine that spoke; differs from the plan's when the spare voice had to."""
    mode: Mode | None = None
    """When it was listened then. Not written but for auditors."""
    sound: Samples | None = field(default=None, repr=False, compare=False)
    """What the user said, 16 kHz, where it is to be kept as sound. Not in any JSON."""
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Engine name to ``{"pid", "started_at"}``: which process answered, so that reports can be matched."""

    @property
    def settled(self) -> bool:
        """Whether its figures count: see ``journal.warmth``."""
        return self.population == "settled"

    @property
    def over_budget(self) -> bool | None:
        """None where nothing was heard, or no budget is known."""
        if self.budget_ms is None or (first := self.first_audio_ms) is None:
            return None
        return first > self.budget_ms

    @property
    def first_audio_ms(self) -> float | None:
        """From the user's last voiced sample to the first answer sample at the converter."""
        return self.marks.ms("dac_first_sample", self.marks.origin)

    @property
    def whole_answer_ms(self) -> float | None:
        """From the same origin to the last answer sample: never mixed with first audio."""
        return self.marks.ms("dac_last_sample", self.marks.origin)

    @property
    def filler_ms(self) -> float | None:
        """From the same origin to the first sample of a filler."""
        began = self.marks.at_ns.get(self.marks.origin)
        return None if began is None or self.filler_ns is None else (self.filler_ns - began) / 1e6

    def as_json(self, *, text: bool = True) -> dict[str, Any]:
        """The turn as commands print it. Without ``text`` nothing that was said or answered is in it."""
        marks = {name: self.marks.ms(name, self.marks.origin) for name in MARKS if name in self.marks.at_ns}
        engine_ms = {
            "stt": self.engine_ms.stt,
            "llm_first_token": self.engine_ms.llm_first_token,
            "llm_first_clause": self.engine_ms.llm_first_clause,
            "llm_last_token": self.engine_ms.llm_last_token,
            "tts_first_audio": self.engine_ms.tts_first_audio,
            "tts": self.engine_ms.tts or None,
            "sum": self.engine_ms.sum_ms,
        }
        return {
            "id": int(self.id),
            "session": self.session,
            "started_at": self.started_at.isoformat(timespec="milliseconds"),
            "outcome": self.outcome,
            "fault": self.fault,
            "cause": self.cause,
            "transcript": self.transcript if text else None,
            "reply": self.heard if text else None,
            "audio": {"seconds": round(self.answer_s, 3)},
            "utterance_s": round(self.utterance_s, 3),
            "marks_ms": _rounded(marks),
            "stages_ms": _rounded(dict(stages_ms(self.marks, self.engine_ms))),
            "engine_ms": _rounded(engine_ms),
            "first_audio_ms": _round(self.first_audio_ms),
            "answer_ms": _round(self.whole_answer_ms),
            "filler_ms": _round(self.filler_ms),
            "canned": self.canned,
            "llm_calls": self.llm_calls,
            "tokens": {
                "prompt": self.prompt_tokens,
                "cached": self.cached_tokens,
                "output": self.output_tokens,
            },
            "drafts": {
                "made": self.drafts_made,
                "dropped": self.drafts_dropped,
                "tokens": self.draft_tokens,
            },
            "taken_back": self.taken_back,
            "clauses": self.clauses,
            "voiced_s": round(self.voiced_s, 3),
            "voice": self.voice,
            "settled": self.settled,
            "population": self.population,
            "warmth": self.warmth.as_json() if self.warmth else None,
            "underruns": self.underruns,
            "thought": self.thought,
            "over_budget": self.over_budget,
            "conditions": self.conditions.name if self.conditions else None,
            **{key: self.moment.get(key) for key in ("load_average_1min", "power")},
            "engines": self.engines,
        } | ({"slots": self.slots} if text and self.slots is not None else {})


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _rounded(values: dict[Any, float | None]) -> dict[str, float | None]:
    return {str(name): _round(value) for name, value in values.items()}
