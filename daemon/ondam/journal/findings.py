"""What the figures of a group of turns say should be looked at, as data. Pure.

Each finding is a function of the evidence; its texts are ``messages/findings.toml`` under
``finding_<code>``. Every threshold stands here with its reason: none of them is a matter of taste alone,
and none is a promise either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from ondam import messages
from ondam.journal.figures import Figures
from ondam.journal.marks import STAGES, StageName
from ondam.supervisor.status import in_words
from ondam.types import Language

Severity: TypeAlias = Literal["error", "warning", "info"]
"""``error``: the figures are not those of the plan. ``warning``: it costs time that a setting would save,
or can be heard. ``info``: where the time goes."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

FEWEST = 5
"""Turns: a median of fewer says nothing of the next."""

HALF_FULL = 0.7
"""Of the engine's context: an answer and a long question still fit into the rest; beyond, history is left
out."""

GROWN = 1.5
"""The first token after the longest quarter of prompts takes so many times as long as after the shortest."""

NOTICED_MS = 50.0
"""A difference below this is lost in what turns differ by anyway (one step of an endpoint is 32 ms)."""

CACHED_LEAST = 0.5
"""Part of the prompt that the cache should hold: the system prompt and the conversation were computed
before."""

NEW_TOKENS = 64
"""Tokens to compute before it matters: 0.4 s on two cores, a spoken question has 12 to 24
(docs/numbers.md)."""

MISSED = 0.1
"""Part of the turns that may miss the cache: the first of a conversation does."""

KEPT_LEAST = 0.2
"""Part of the spoken turns whose answer should have been begun in the pause."""

WAITED_MS = 100.0
"""Recognition and language model after the endpoint, that the pause before it could have hidden."""

COLD_SHARE = 0.2
"""Part of the turns right after a start. Settling takes about ten turns: more means restarts or short
sessions."""

ANSWER_S = 10.0
"""About 60 tokens, or two spoken sentences: what ``llm.max_tokens`` is meant to give."""

AT_LIMIT = 0.2
"""Part of the answers that end because they may not be longer."""

CHAINED = 0.05
"""Part of the turns with more than one language call; each waits for all of the one before."""

DOMINATES = 0.5
"""Part of first audio that is waiting for the endpoint."""

ENDPOINT_MS = 300.0
"""A gap between people is about 200 ms (Stivers et al., PNAS 2009); a detector needs 100 to see it."""

STARVED = 1.4
"""So many times as long does the voice take while the language model goes on writing."""

START_S = {"cpu": 30.0, "other": 180.0}
"""What starting may take beside reading the weights: imports and a first inference on a processor,
compiling and capturing graphs on a GPU."""

READ_MIB_S = 100.0
"""Slower than a hard disk reads (150) is a network, a card or a failing disk; a SATA SSD reads 500."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``evidence``: the numbers (and names) that say so; they fill the text."""

    code: str
    severity: Severity
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self, language: Language) -> dict[str, Any]:
        """With its text and what to do, in ``language``."""
        facts = self.evidence if self.code != "fallback" else {**self.evidence, **_in_words(self.evidence)}
        told = messages.message(f"finding_{self.code}", language, **facts)
        return {
            "code": self.code,
            "severity": self.severity,
            "evidence": dict(self.evidence),
            "text": told.text,
            "next": told.next,
        }


def _in_words(differs: Mapping[str, Any]) -> dict[str, object]:
    """What of a fallback is said otherwise than it is written down."""
    what, why = in_words(str(differs.get("what"))), differs.get("why")
    return {
        # Journals outlive versions: a name that is no longer known is told as something.
        "what": what if what.code in messages.catalog() else messages.Phrase("differs_other"),
        "got": messages.Phrase("differs_nothing") if differs.get("got") is None else differs["got"],
        "why": messages.Phrase("differs_why", why=why) if why else "",
    }


@dataclass(frozen=True, slots=True)
class Evidence:
    """Turns under the same conditions. ``judged``: the answered ones that figures are taken from (settled,
    where there are enough of them), ``facts``: of the conditions, empty where nobody wrote them down."""

    turns: Sequence[Figures]
    judged: Sequence[Figures]
    cold: Sequence[Figures]
    settled: Sequence[Figures]
    facts: Mapping[str, Any]

    @property
    def spoken(self) -> list[Figures]:
        """Those of ``judged`` that went all the way: spoken, and answered by the language model."""
        return [turn for turn in self.judged if not turn.typed and not turn.canned]

    def engine(self, stage: str) -> Mapping[str, Any]:
        """What the conditions say of a stage's engine."""
        engines = self.facts.get("engines")
        found = engines.get(stage) if isinstance(engines, dict) else None
        return found if isinstance(found, dict) else {}

    def setting(self, table: str, key: str) -> Any:
        """What the conditions say of a setting. Any: JSON."""
        found = self.facts.get(table)
        return found.get(key) if isinstance(found, dict) else None


def findings(evidence: Evidence) -> list[Finding]:
    """All of them, the worst first."""
    found = [finding for look in LOOKS for finding in look(evidence)]
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def _fallback(evidence: Evidence) -> Iterator[Finding]:
    for stage in ("stt", "llm", "tts"):
        engine = evidence.engine(stage)
        for one in _differs(engine):
            if one.get("what") != "report":  # that is not otherwise, but untold: see below
                yield Finding("fallback", "error", {"engine": engine.get("name"), "stage": stage, **one})


def _unreported(evidence: Evidence) -> Iterator[Finding]:
    for stage in ("stt", "llm", "tts"):
        engine = evidence.engine(stage)
        facts = {"engine": engine.get("name"), "stage": stage}
        if any(one.get("what") == "report" for one in _differs(engine)):
            yield Finding("unreported", "warning", facts)
        elif engine.get("outside") is True:
            yield Finding("unreported", "info", facts)  # by its nature, and allowed


def _differs(engine: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What an engine got otherwise than asked. Conditions of a file from elsewhere may hold anything."""
    differs = engine.get("differs")
    return (one for one in (differs if isinstance(differs, list) else ()) if isinstance(one, dict))


def _no_graphs(evidence: Evidence) -> Iterator[Finding]:
    for stage in ("stt", "llm", "tts"):
        engine = evidence.engine(stage)
        if str(engine.get("device")).startswith("cuda") and engine.get("cuda_graphs") is False:
            yield Finding("no_graphs", "warning", {"engine": engine.get("name"), "stage": stage})


def _thinking(evidence: Evidence) -> Iterator[Finding]:
    thought = sum(1 for turn in evidence.turns if turn.thought)
    if thought or evidence.facts.get("thinking") is True:
        yield Finding("thinking", "warning", {"turns": thought, "of": len(evidence.turns)})


def _underrun(evidence: Evidence) -> Iterator[Finding]:
    dry = [turn for turn in evidence.turns if turn.underruns]
    if dry:  # each of them was heard
        count = sum(turn.underruns for turn in dry)
        yield Finding("underrun", "warning", {"count": count, "turns": len(dry), "of": len(evidence.turns)})


def _context_grown(evidence: Evidence) -> Iterator[Finding]:
    asked = [t for t in evidence.judged if t.prompt_tokens is not None and t.first_token_ms is not None]
    if len(asked) < FEWEST:
        return
    longest = _p(90, (turn.context_tokens for turn in asked))
    holds = evidence.engine("llm").get("context_length")
    if isinstance(holds, int) and holds > 0 and longest >= HALF_FULL * holds:
        yield Finding("context_full", "warning", {"tokens": round(longest), "holds": holds})
    quarter = len(asked) // 4
    if quarter < FEWEST:
        return
    by_length = sorted(asked, key=lambda turn: turn.prompt_tokens or 0)
    short, long = by_length[:quarter], by_length[-quarter:]
    least, most = (_p(50, (turn.first_token_ms for turn in part)) for part in (short, long))
    tokens = [round(_p(50, (turn.prompt_tokens for turn in part))) for part in (short, long)]
    if tokens[1] >= 2 * tokens[0] and most >= GROWN * least and most - least >= NOTICED_MS:
        yield Finding(
            "context_grown",
            "warning",
            {"short": tokens[0], "long": tokens[1], "short_ms": round(least), "long_ms": round(most)},
        )


def _cache_missed(evidence: Evidence) -> Iterator[Finding]:
    told = [turn for turn in evidence.judged if turn.cached_share is not None]
    missed = [
        turn
        for turn in told
        if (turn.cached_share or 0.0) < CACHED_LEAST and (turn.computed_tokens or 0) >= NEW_TOKENS
    ]
    if len(told) >= FEWEST and len(missed) > MISSED * len(told):
        computed = round(_p(50, (turn.computed_tokens for turn in missed)))
        yield Finding(
            "cache_missed", "warning", {"turns": len(missed), "of": len(told), "computed": computed}
        )


def _could_overlap(evidence: Evidence) -> Iterator[Finding]:
    spoken = evidence.spoken
    if len(spoken) < FEWEST:
        return
    kept = sum(1 for turn in spoken if turn.draft_kept)
    waited = [
        sum(_stage(turn, stage) or 0.0 for stage in ("stt", "llm_first_token", "first_clause"))
        for turn in spoken
    ]
    endpoint = _p(50, (_stage(turn, "endpoint") for turn in spoken))
    if kept < KEPT_LEAST * len(spoken) and _p(50, waited) >= WAITED_MS and endpoint >= WAITED_MS:
        made = sum(turn.drafts_made for turn in spoken)
        off = evidence.setting("drafts", "most_per_turn") == 0 or made == 0
        yield Finding(
            "no_drafts" if off else "drafts_dropped",
            "warning",
            {
                "kept": kept,
                "of": len(spoken),
                "made": made,
                "waited_ms": round(_p(50, waited)),
                "endpoint_ms": round(endpoint),
            },
        )


def _cold(evidence: Evidence) -> Iterator[Finding]:
    answered = sum(1 for turn in evidence.turns if turn.answered)
    # Not those that are cold because their median drifts: it is starts that are counted.
    cold = sum(1 for turn in evidence.cold if turn.population == "cold")
    if cold >= FEWEST and cold >= COLD_SHARE * answered:
        lives = len({turn.life for turn in evidence.turns})
        yield Finding("cold", "info", {"cold": cold, "of": answered, "lives": lives})


def _answer_long(evidence: Evidence) -> Iterator[Finding]:
    told = [turn for turn in evidence.judged if turn.answer_s and not turn.canned]
    if len(told) < FEWEST:
        return
    seconds = _p(50, (turn.answer_s for turn in told))
    limit = evidence.facts.get("max_tokens")
    cut = sum(1 for t in told if isinstance(limit, int) and (t.output_tokens or 0) >= limit)
    if seconds >= ANSWER_S or cut >= AT_LIMIT * len(told):
        yield Finding(
            "answer_long", "warning", {"seconds": round(seconds, 1), "at_limit": cut, "of": len(told)}
        )


def _chained(evidence: Evidence) -> Iterator[Finding]:
    several = [turn for turn in evidence.judged if (turn.llm_calls or 0) > 1]
    if len(several) >= 2 and len(several) >= CHAINED * len(evidence.judged):
        most = max(turn.llm_calls or 0 for turn in several)
        yield Finding(
            "calls_chained", "warning", {"turns": len(several), "of": len(evidence.judged), "most": most}
        )


def _endpoint_dominates(evidence: Evidence) -> Iterator[Finding]:
    spoken = [turn for turn in evidence.judged if _stage(turn, "endpoint") is not None]
    if len(spoken) < FEWEST:
        return
    endpoint = _p(50, (_stage(turn, "endpoint") for turn in spoken))
    first = _p(50, (turn.first_audio_ms for turn in spoken))
    if endpoint >= ENDPOINT_MS and endpoint >= DOMINATES * first:
        yield Finding(
            "endpoint_dominates",
            "info",
            {
                "endpoint_ms": round(endpoint),
                "first_audio_ms": round(first),
                "percent": round(100 * endpoint / first),
            },
        )


def _starving(evidence: Evidence) -> Iterator[Finding]:
    beside = [t for t in evidence.spoken if t.wrote_on and t.tts_first_ms is not None]
    # A benchmark asks for the same clause while nothing else runs.
    alone = [t.tts_alone_ms for t in beside if t.tts_alone_ms is not None]
    if len(alone) < FEWEST:
        others = [t for t in evidence.spoken if t.wrote_on is False and t.tts_first_ms is not None]
        alone = [turn.tts_first_ms for turn in others if turn.tts_first_ms is not None]
        # An answer that is all written by then is a short one, whose first clause takes less anyhow: the
        # voice has to take longer for a second of sound as well.
        rates = [[t.tts_rtf for t in turns if t.tts_rtf is not None] for turns in (beside, others)]
        if min(map(len, rates)) < FEWEST or _p(50, rates[0]) < STARVED * _p(50, rates[1]):
            return
    if len(beside) < FEWEST or len(alone) < FEWEST:
        return
    busy, idle = _p(50, (turn.tts_first_ms for turn in beside)), _p(50, alone)
    if busy >= STARVED * idle and busy - idle >= NOTICED_MS:
        yield Finding("starving", "warning", {"busy_ms": round(busy), "idle_ms": round(idle)})


def _slow_storage(evidence: Evidence) -> Iterator[Finding]:
    for stage in ("stt", "llm", "tts"):
        engine = evidence.engine(stage)
        loads = [load for turn in evidence.turns for name, load in turn.loads_s if name == engine.get("name")]
        size = engine.get("model_mib")
        if not loads or not isinstance(size, (int, float)):
            continue
        start = START_S["cpu" if str(engine.get("device")).startswith("cpu") else "other"]
        if max(loads) > start + size / READ_MIB_S:
            yield Finding(
                "slow_storage",
                "warning",
                {
                    "engine": engine.get("name"),
                    "load_s": round(max(loads)),
                    "expected_s": round(start + size / READ_MIB_S),
                    "model_mib": round(size),
                },
            )


LOOKS: tuple[Callable[[Evidence], Iterable[Finding]], ...] = (
    _fallback,
    _unreported,
    _no_graphs,
    _thinking,
    _underrun,
    _cache_missed,
    _context_grown,
    _could_overlap,
    _starving,
    _chained,
    _answer_long,
    _slow_storage,
    _endpoint_dominates,
    _cold,
)


def _stage(turn: Figures, stage: StageName) -> float | None:
    return turn.stages_ms[STAGES.index(stage)]


def _p(percent: float, values: Iterable[float | None]) -> float:
    """0 where nothing is known: no threshold is reached by that."""
    known = [value for value in values if value is not None]
    return float(np.percentile(known, percent)) if known else 0.0
