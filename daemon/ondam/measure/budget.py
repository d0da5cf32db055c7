"""The latency budget: seven stages in, what a person waits for out. Pure.

Stages that only follow each other add up. Two things make the wait shorter than the sum: answers begun in the
pause (drafts), and a voice that begins with the first clause (clause streaming). With S the moment when
recognition begins, C the stages from recognition to the first sound, E the endpoint and P the playback
buffer, in ms after the last voiced sample:

    first audio = max(E, S + C) + P        S = min(E, draft_at) with drafts, else E

Waits behind other speakers come from ``measure.queueing`` and lengthen C. docs/budget.md explains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ondam.journal.marks import STAGES, StageName
from ondam.measure.queueing import Queue, summed_wait_ms
from ondam.messages import Phrase, text
from ondam.types import Language

Kind: TypeAlias = Literal["measured", "published", "assumption", "given"]
"""``given``: by whoever asks (``--set``)."""

Zone: TypeAlias = Literal["natural", "conversational", "beyond"]

Engine: TypeAlias = Literal["stt", "llm", "tts"]

SERVING: Mapping[StageName, Engine] = {
    "stt": "stt",
    "llm_first_token": "llm",
    "first_clause": "llm",
    "tts_first_audio": "tts",
}
"""Which engine a stage keeps busy."""

CHAIN: tuple[StageName, ...] = ("ipc", "stt", "llm_first_token", "first_clause", "tts_first_audio")
"""What follows each other from the beginning of recognition to the first sound."""

PERCENTILE = 0.95


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure comes from. ``date`` as it is known: 2026-01, or "read 2026-11-30". ``told`` says it in
    words; None where the kind says all."""

    kind: Kind
    date: str
    told: Phrase | None = None
    url: str | None = None

    def dated(self, language: Language) -> str:
        """Kind and date."""
        read, _, day = self.date.rpartition(" ")
        date = text("budget_date_read", language, date=day) if read == "read" else self.date
        return ", ".join(filter(None, (text(f"budget_kind_{self.kind}", language), date)))

    def in_language(self, language: Language) -> str:
        """In a line."""
        dated = self.dated(language)
        return f"{dated}: {self.told.in_language(language)}" if self.told else dated


@dataclass(frozen=True, slots=True)
class Figure:
    """What a stage takes by itself. ``remedy``: what helps here, where it is not what usually helps."""

    ms: float
    source: Source
    p95_ms: float | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Usual:
    """The range that a stage usually lies in, and its share of the target."""

    low: float
    high: float
    share: float
    source: Source


@dataclass(frozen=True, slots=True)
class Zones:
    """Where a pause stops being natural, and where it stops being conversational."""

    natural_ms: float
    natural_source: Phrase
    conversational_ms: float
    conversational_source: Phrase

    def of(self, total_ms: float) -> Zone:
        """In which one a wait lies."""
        if total_ms <= self.natural_ms:
            return "natural"
        return "conversational" if total_ms < self.conversational_ms else "beyond"


@dataclass(frozen=True, slots=True)
class Overlap:
    """What does not wait for what.

    ``draft_at_ms``: when the answer is begun in the pause, after the last voiced sample.
    ``answer_rest_ms``, ``voice_rest_ms``: what the language model still writes after the first clause, and
    the voice still makes: waited for as well where clauses are not streamed.
    ``recognition_runs_along``: it transcribes while the user speaks, and its figure counts from the last
    voice.
    """

    drafts: bool
    draft_at_ms: float
    draft_source: Phrase
    streaming: bool
    answer_rest_ms: float
    voice_rest_ms: float
    rest_source: Phrase
    recognition_runs_along: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """First audio as it was measured, to be held against the model."""

    p50_ms: float
    p95_ms: float
    turns: int


@dataclass(frozen=True, slots=True)
class Preset:
    """A way to build it. ``words``: which ``budget_preset_…`` names it to people. ``at_once``: requests that
    an engine serves at a time; one that is not named never queues as far as is known."""

    name: str
    words: str
    stages: Mapping[StageName, Figure]
    overlap: Overlap
    at_once: Mapping[Engine, int]
    measured: Measured | None = None


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What ``budget.toml`` holds."""

    usual: Mapping[StageName, Usual]
    zones: Zones
    presets: Mapping[str, Preset]


@dataclass(frozen=True, slots=True)
class Load:
    """``speakers`` people, each asking once in ``every_s`` seconds on average."""

    speakers: int
    every_s: float


@dataclass(frozen=True, slots=True)
class Span:
    """A stage on the clock: after the last voiced sample. ``waited_ms``: what of it nobody was spared."""

    stage: StageName
    begins_ms: float
    ends_ms: float
    waited_ms: float
    cumulative_ms: float

    @property
    def ms(self) -> float:
        """What it takes, waited for or not."""
        return self.ends_ms - self.begins_ms


@dataclass(frozen=True, slots=True)
class Timeline:
    """All stages in order; ``total_ms`` is first audio, ``sum_ms`` what it would be without drafts."""

    spans: tuple[Span, ...]

    @property
    def total_ms(self) -> float:
        """First audio."""
        return self.spans[-1].ends_ms

    @property
    def sum_ms(self) -> float:
        """One stage after another."""
        return sum(span.ms for span in self.spans)

    @property
    def bottleneck(self) -> Span:
        """What is waited for longest; the first of equals."""
        return max(self.spans, key=lambda span: span.waited_ms)


def taking(preset: Preset) -> dict[StageName, float]:
    """What each stage takes. Without clause streaming the first clause is the whole answer."""
    ms = {stage: preset.stages[stage].ms for stage in STAGES}
    if not preset.overlap.streaming:
        ms["first_clause"] += preset.overlap.answer_rest_ms
        ms["tts_first_audio"] += preset.overlap.voice_rest_ms
    return ms


def timeline(preset: Preset, wait_ms: float = 0.0) -> Timeline:
    """When each stage begins and ends, ``wait_ms`` being spent in queues on the way to the first sound."""
    ms, overlap = taking(preset), preset.overlap
    endpoint = ms["endpoint"]
    at = min(endpoint, overlap.draft_at_ms) if overlap.drafts else endpoint
    spans = [Span("endpoint", 0.0, endpoint, endpoint, endpoint)]
    waited_until = endpoint
    for stage in CHAIN:
        begins, ends = at, at + ms[stage]
        if stage == "stt":
            if overlap.recognition_runs_along:
                begins, ends = 0.0, ms[stage]
            at = max(at, ends) + wait_ms
        else:
            at = ends
        until = max(waited_until, at)
        spans.append(Span(stage, begins, ends, until - waited_until, until))
        waited_until = until
    playback = ms["playback_buffer"]
    spans.append(
        Span("playback_buffer", waited_until, waited_until + playback, playback, waited_until + playback)
    )
    return Timeline(tuple(spans))


@dataclass(frozen=True, slots=True)
class UnderLoad:
    """What ``Load`` makes of it. ``total_p95_ms`` is None where an engine is saturated; ``quiet_p95_ms`` is
    the same with nobody else, and ``unspread`` are the stages of which only a median is known, which it takes
    for steady."""

    load: Load
    queues: Mapping[Engine, Queue]
    saturated: tuple[Engine, ...]
    most_speakers: int | None
    """With how many no engine is saturated yet; None where none has a queue that is known."""
    total_p95_ms: float | None
    quiet_p95_ms: float
    unspread: tuple[StageName, ...]


def under_load(preset: Preset, load: Load) -> UnderLoad:
    """First audio that 95 % of turns stay within while others speak.

    Whoever asks meets the requests of the others (arrival theorem), so one speaker alone never waits. An
    answer keeps the language model and the voice for all of its length, not for its first clause.

    Turns vary with nobody else too. Where first audio was measured its p95 is taken; else every stage is put
    at its own p95, where that is known: rather too long, for they are seldom slow together. What the waits
    add is counted from those stages, since a slow turn has nothing hidden left.
    """
    slow = at_p95(preset)
    unhurried = timeline(slow).total_ms
    quiet = unhurried if preset.measured is None else preset.measured.p95_ms
    unspread = tuple(s for s in STAGES if preset.measured is None and preset.stages[s].p95_ms is None)
    arrivals = (load.speakers - 1) / load.every_s
    keeps = keeping(preset)
    queues = {engine: Queue(arrivals, keeps[engine], places) for engine, places in preset.at_once.items()}
    saturated = tuple(engine for engine, queue in queues.items() if queue.saturated)
    # Utilisation below 1 for n speakers: (n - 1) / every_s * keeps / 1000 < places.
    bounds = [places * load.every_s * 1000 / keeps[e] for e, places in preset.at_once.items() if keeps[e]]
    most = max(1, _below(min(bounds)) + 1) if bounds else None
    total = None
    if not saturated:
        wait_ms = summed_wait_ms(tuple(queues.values()), PERCENTILE)
        total = quiet + timeline(slow, wait_ms).total_ms - unhurried
    return UnderLoad(load, queues, saturated, most, total, quiet, unspread)


def at_p95(preset: Preset) -> Preset:
    """With every stage at its p95, or at its median where only that is known."""
    stages = {
        stage: figure if figure.p95_ms is None else replace(figure, ms=figure.p95_ms)
        for stage, figure in preset.stages.items()
    }
    return replace(preset, stages=stages)


def keeping(preset: Preset) -> dict[Engine, float]:
    """How long a turn keeps each engine busy."""
    ms, rest = preset.stages, preset.overlap
    return {
        "stt": ms["stt"].ms,
        "llm": ms["llm_first_token"].ms + ms["first_clause"].ms + rest.answer_rest_ms,
        "tts": ms["tts_first_audio"].ms + rest.voice_rest_ms,
    }


def _below(bound: float) -> int:
    """The largest whole number that is less than ``bound``."""
    return int(bound) if bound > int(bound) else int(bound) - 1


def changed(preset: Preset, given: Mapping[StageName, float]) -> Preset:
    """With other figures for some stages."""
    source = Source("given", "")
    return replace(
        preset, stages={**preset.stages, **{stage: Figure(ms, source) for stage, ms in given.items()}}
    )


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would make it quicker. ``gain_ms``: how much sooner the first sound would come."""

    code: str
    stage: StageName
    gain_ms: float


REMEDIES: Mapping[StageName, str] = {
    "endpoint": "endpoint",
    "ipc": "nearer",
    "stt": "stt_window",
    "llm_first_token": "prompt_cache",
    "first_clause": "model_smaller",
    "tts_first_audio": "voice_quicker",
    "playback_buffer": "buffer",
}
"""What usually helps."""


def remedies(preset: Preset, knowledge: Knowledge, target_ms: float) -> list[Remedy]:
    """In order of expected gain.

    For each stage over its usual range, the gain of bringing it to the range's upper end; for the bottleneck
    of a budget that is over its target, of bringing it to the lower end; and, where they are off, of drafts
    and of clause streaming. A stage that drafts hide gains nothing and is told all the same.
    """
    now = timeline(preset)
    ms = {stage: preset.stages[stage].ms for stage in STAGES}
    wanted: dict[StageName, float] = {
        stage: usual.high for stage, usual in knowledge.usual.items() if ms[stage] > usual.high
    }
    worst = now.bottleneck.stage
    first_audio = max(now.total_ms, preset.measured.p50_ms if preset.measured else 0.0)
    if first_audio > target_ms and worst not in wanted and ms[worst] > knowledge.usual[worst].low:
        quicker = changed(preset, {worst: knowledge.usual[worst].low})
        if timeline(quicker).total_ms < now.total_ms:  # else the next stage is waited for instead
            wanted[worst] = knowledge.usual[worst].low
    found = [
        Remedy(
            preset.stages[stage].remedy or REMEDIES[stage],
            stage,
            now.total_ms - timeline(changed(preset, {stage: to})).total_ms,
        )
        for stage, to in wanted.items()
    ]
    switches: tuple[tuple[str, StageName, Overlap], ...] = (
        ("drafts", "endpoint", replace(preset.overlap, drafts=True)),
        ("streaming", "first_clause", replace(preset.overlap, streaming=True)),
    )
    for code, stage, other in switches:
        gain = now.total_ms - timeline(replace(preset, overlap=other)).total_ms
        if gain > 0:
            found.append(Remedy(code, stage, gain))
    return sorted(found, key=lambda remedy: -remedy.gain_ms)
