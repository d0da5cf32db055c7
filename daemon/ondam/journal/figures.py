"""The figures of one turn that reports count with, taken from a row of the journal. Pure.

A row is what ``Turn.as_json`` made, of this version or of an older one; what an older one did not know is
None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from ondam.journal.marks import STAGES
from ondam.journal.warmth import POPULATIONS, Population

Life: TypeAlias = tuple[tuple[str, object, object], ...]
"""Engines by name, process id and start: the same in all turns between two restarts of any of them."""


HEARD = frozenset({"answered", "interrupted"})
"""Outcomes of turns whose first audio was heard. Who speaks over an answer has waited for its beginning as
long as everybody; its end says nothing."""


class RowError(ValueError):
    """A row holds something else than a turn does; says what and where in it."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One turn. Milliseconds, seconds and tokens as the names say; None where it is not known."""

    started_at: str
    session: str
    outcome: str
    population: Population
    """As it was recorded: by count and time. Whether the median stood still is for ``journal.steady``."""
    conditions: str | None
    life: Life
    clip: str | None
    typed: bool
    """Nobody spoke: its first audio counts from another moment, and is never mixed with the others'."""
    canned: bool
    thought: bool
    over_budget: bool | None
    power: str | None
    load: float | None
    ready_s: float | None
    """How long the engine that served shortest had been warm."""
    first_audio_ms: float | None
    answer_ms: float | None
    stages_ms: tuple[float | None, ...]
    """In the order of ``STAGES``."""
    stt_ms: float | None
    first_token_ms: float | None
    last_token_ms: float | None
    tts_first_ms: float | None
    tts_alone_ms: float | None
    """The same clause, asked for while nothing else ran; only ``ondam bench`` knows."""
    tts_ms: float | None
    voiced_s: float | None
    utterance_s: float | None
    answer_s: float | None
    wrote_on: bool | None
    """Whether the language model was still writing when the voice began on the first clause."""
    llm_calls: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    drafts_made: int
    drafts_dropped: int
    draft_tokens: int
    taken_back: int
    underruns: int
    loads_s: tuple[tuple[str, float], ...]
    """How long each engine took until it was warm."""
    cut_short: bool

    @property
    def answered(self) -> bool:
        """Whether it is in any distribution: its answer was heard, if not to the end."""
        return self.outcome in HEARD and self.first_audio_ms is not None

    @property
    def interrupted(self) -> bool:
        """Whether the user spoke over the answer."""
        return self.answered and self.outcome == "interrupted"

    @property
    def token_ms(self) -> float | None:
        """Time per output token after the first."""
        if self.first_token_ms is None or self.last_token_ms is None or (self.output_tokens or 0) < 2:
            return None
        return (self.last_token_ms - self.first_token_ms) / (cast(int, self.output_tokens) - 1)

    @property
    def tokens_per_s(self) -> float | None:
        """Its inverse."""
        return 1000 / self.token_ms if self.token_ms else None

    @property
    def stt_rtf(self) -> float | None:
        """Recognition's time for a second of utterance."""
        return self.stt_ms / 1000 / self.utterance_s if self.stt_ms and self.utterance_s else None

    @property
    def tts_rtf(self) -> float | None:
        """The voice's time for a second of sound."""
        return self.tts_ms / 1000 / self.voiced_s if self.tts_ms and self.voiced_s else None

    @property
    def context_tokens(self) -> int | None:
        """What the conversation took at the language engine: prompt and answer."""
        return None if self.prompt_tokens is None else self.prompt_tokens + (self.output_tokens or 0)

    @property
    def cached_share(self) -> float | None:
        """The part of the prompt that the engine had computed before."""
        if not self.prompt_tokens or self.cached_tokens is None:
            return None
        return self.cached_tokens / self.prompt_tokens

    @property
    def computed_tokens(self) -> int | None:
        """The rest of the prompt."""
        if self.prompt_tokens is None or self.cached_tokens is None:
            return None
        return max(0, self.prompt_tokens - self.cached_tokens)

    @property
    def draft_kept(self) -> bool:
        """Whether the answer was begun before the endpoint."""
        return self.drafts_made > self.drafts_dropped


def figures(row: object) -> Figures:
    """Of one row. Raises RowError where something is of another kind than it can be."""
    if not isinstance(row, dict):
        raise RowError("it is no JSON object")
    marks, engine, stages = (_table(row, key) for key in ("marks_ms", "engine_ms", "stages_ms"))
    tokens, drafts, engines = (_table(row, key) for key in ("tokens", "drafts", "engines"))
    to_the_end = row.get("outcome") != "interrupted"
    last_token = _number(engine, "llm_last_token")
    llm_sent, tts_sent = _number(marks, "llm_sent"), _number(marks, "tts_sent")
    wrote_on = None
    if last_token is not None and llm_sent is not None and tts_sent is not None:
        wrote_on = llm_sent + last_token > tts_sent
    first_token = _number(engine, "llm_first_token")
    if first_token is None and llm_sent is not None:
        mark = _number(marks, "llm_first_token")
        first_token = None if mark is None else mark - llm_sent
    return Figures(
        started_at=str(row.get("started_at") or ""),
        session=str(row.get("session") or ""),
        outcome=str(row.get("outcome") or "failed"),
        population=_population(row),
        conditions=None if row.get("conditions") is None else str(row["conditions"]),
        life=_life(engines),
        clip=None if row.get("clip") is None else str(row["clip"]),
        typed="last_voiced" not in marks and "llm_sent" in marks,
        canned=bool(row.get("canned")),
        thought=bool(row.get("thought")),
        over_budget=None if row.get("over_budget") is None else bool(row["over_budget"]),
        power=None if row.get("power") is None else str(row["power"]),
        load=_number(row, "load_average_1min"),
        ready_s=_number(_table(row, "warmth"), "ready_s"),
        first_audio_ms=_number(row, "first_audio_ms"),
        answer_ms=_number(row, "answer_ms") if to_the_end else None,
        stages_ms=tuple(_number(stages, stage) for stage in STAGES),
        stt_ms=_number(engine, "stt"),
        first_token_ms=first_token,
        last_token_ms=last_token,
        tts_first_ms=_number(engine, "tts_first_audio"),
        tts_alone_ms=_number(_table(row, "raw_ms"), "tts_first_audio"),
        tts_ms=_number(engine, "tts"),
        voiced_s=_number(row, "voiced_s"),
        utterance_s=_number(row, "utterance_s"),
        answer_s=_number(_table(row, "audio"), "seconds") if to_the_end else None,
        wrote_on=wrote_on,
        llm_calls=_count(row, "llm_calls"),
        prompt_tokens=_count(tokens, "prompt"),
        cached_tokens=_count(tokens, "cached"),
        output_tokens=_count(tokens, "output"),
        drafts_made=_count(drafts, "made") or 0,
        drafts_dropped=_count(drafts, "dropped") or 0,
        draft_tokens=_count(drafts, "tokens") or 0,
        taken_back=_count(row, "taken_back") or 0,
        underruns=_count(row, "underruns") or 0,
        loads_s=_loads(engines),
        cut_short=bool(row.get("cut_short")),
    )


def _population(row: Mapping[str, Any]) -> Population:
    told = row.get("population")
    if told is None:  # before there were three
        return "settled" if row.get("settled") else "cold"
    if told not in POPULATIONS:
        raise RowError(f"population: {told!r}")
    return cast(Population, told)


def _life(engines: Mapping[str, Any]) -> Life:
    return tuple(
        (name, _plain(engine, "pid"), _plain(engine, "started_at"))
        for name, engine in sorted(engines.items())
        if isinstance(engine, dict)
    )


def _plain(table: Mapping[str, Any], key: str) -> object:
    """What can be compared and hashed."""
    value = table.get(key)
    return value if value is None or isinstance(value, (str, int, float)) else repr(value)


def _loads(engines: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    loads = (
        (name, _number(engine, "load_s")) for name, engine in engines.items() if isinstance(engine, dict)
    )
    return tuple((name, load) for name, load in loads if load is not None)


def _table(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = row.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RowError(f"{key}: {value!r}"[:80])
    return value


def _number(table: Mapping[str, Any], key: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise RowError(f"{key}: {value!r}"[:80])
    return float(value)


def _count(table: Mapping[str, Any], key: str) -> int | None:
    value = _number(table, key)
    return None if value is None else int(value)
