"""This machine's own budget, from the turns that its journal holds. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ondam.journal.figures import Figures, RowError, figures
from ondam.journal.marks import STAGES, StageName
from ondam.journal.report import populations
from ondam.journal.steady import Steadiness
from ondam.measure.budget import SERVING, Engine, Figure, Measured, Overlap, Preset, Source
from ondam.messages import Phrase

NAME = "this-machine"
WORDS = "this_machine"

FEWEST = 5
"""Settled turns before a median of them says anything; as for findings."""

TURNS = 400
"""Of the newest turns: the machine as it is now, read in a fraction of a second."""


@dataclass(frozen=True, slots=True)
class Own:
    """``preset`` is None while there are fewer than ``FEWEST`` settled spoken turns; ``settled`` of
    ``turns``. ``unread``: why the journal could not be read, where it could not."""

    preset: Preset | None
    settled: int
    turns: int
    unread: Phrase | None = None


@dataclass(frozen=True, slots=True)
class _Cost:
    """What the parts of one turn took by themselves, hidden or not; None where it is not known."""

    endpoint: float | None
    ipc: float | None
    stt: float | None
    llm_first_token: float | None
    first_clause: float | None
    tts_first_audio: float | None
    playback_buffer: float | None
    draft_at: float | None
    """When its answer was begun; None where that was after the endpoint."""
    answer_rest: float | None
    voice_rest: float | None
    first_audio: float


def own(rows: Sequence[Mapping[str, Any]], steadiness: Steadiness, at_once: Mapping[Engine, int]) -> Own:
    """From rows as the journal has them, newest first: the settled turns under the newest conditions."""
    known: list[tuple[Figures, Mapping[str, Any]]] = []
    for row in rows:
        try:
            known.append((figures(row), row))
        except RowError:  # one row that cannot be read is no reason to know nothing
            continue
    newest = known[0][0].conditions if known else None
    told = {id(turn): row for turn, row in known if turn.conditions == newest}
    turns = sorted((t for t, _ in known if id(t) in told), key=lambda turn: turn.started_at)
    settled = populations(turns, steadiness)[0]["settled"]
    spoken = [turn for turn in settled if turn.answered and not turn.typed and not turn.canned]
    costs = [_cost(told[id(turn)]) for turn in spoken]
    if len(costs) < FEWEST:
        return Own(None, len(costs), len(turns))
    return Own(_preset(costs, spoken, at_once), len(costs), len(turns))


def _cost(row: Mapping[str, Any]) -> _Cost:
    marks, engine, stages = (_numbers(row, key) for key in ("marks_ms", "engine_ms", "stages_ms"))
    stt = _or(engine.get("stt"), marks, "stt_sent", "stt_final")
    token = _or(engine.get("llm_first_token"), marks, "llm_sent", "llm_first_token")
    to_clause = _or(engine.get("llm_first_clause"), marks, "llm_sent", "first_clause")
    clause = None if to_clause is None or token is None else max(0.0, to_clause - token)
    tts = _or(engine.get("tts_first_audio"), marks, "tts_sent", "tts_first_audio")
    chain = _between(marks, "stt_sent", "tts_first_audio")
    parts = (stt, token, clause, tts)
    between = None if chain is None or None in parts else max(0.0, chain - sum(p for p in parts if p))
    last, whole = engine.get("llm_last_token"), engine.get("tts")
    began, endpoint = marks.get("stt_sent"), marks.get("endpoint")
    return _Cost(
        endpoint=_least_0(stages.get("endpoint")),
        ipc=between,
        stt=stt,
        llm_first_token=token,
        first_clause=clause,
        tts_first_audio=tts,
        playback_buffer=_least_0(stages.get("playback_buffer")),
        draft_at=began if began is not None and endpoint is not None and began < endpoint else None,
        answer_rest=None if last is None or to_clause is None else max(0.0, last - to_clause),
        voice_rest=None if whole is None or tts is None else max(0.0, whole - tts),
        first_audio=row["first_audio_ms"],
    )


def _preset(costs: Sequence[_Cost], turns: Sequence[Figures], at_once: Mapping[Engine, int]) -> Preset:
    date = turns[-1].started_at[:10]
    whole, engines = (Phrase(f"budget_source_own{which}", count=len(costs)) for which in ("", "_engines"))
    stages: dict[StageName, Figure] = {}
    for stage in STAGES:
        values = _known(costs, stage)
        source = Source("measured", date, engines if stage in SERVING else whole)
        if not values:
            source = Source("assumption", date, Phrase("budget_source_own_untold"))
        stages[stage] = Figure(_at(values, 50), source, _at(values, 95) if values else None)
    drafted = _known(costs, "draft_at")
    most = 2 * len(drafted) > len(costs)
    answer_rest, voice_rest = _known(costs, "answer_rest"), _known(costs, "voice_rest")
    first = [cost.first_audio for cost in costs]
    return Preset(
        NAME,
        WORDS,
        stages,
        Overlap(
            drafts=most,
            draft_at_ms=round(_at(drafted, 50), 1) if drafted else stages["endpoint"].ms,
            draft_source=Phrase("budget_source_own_draft", date=date, count=len(drafted), of=len(costs))
            if drafted
            else Phrase("budget_source_own_no_draft"),
            streaming=True,
            answer_rest_ms=_at(answer_rest, 50),
            voice_rest_ms=_at(voice_rest, 50),
            rest_source=Phrase(
                "budget_source_own_rest", date=date, answers=len(answer_rest), spoken=len(voice_rest)
            ),
        ),
        at_once,
        Measured(_at(first, 50), _at(first, 95), len(first)),
    )


def _numbers(row: Mapping[str, Any], key: str) -> dict[str, float]:
    """What can be counted with. ``figures`` has looked at most of it, not at all."""
    return {
        name: float(value)
        for name, value in (row.get(key) or {}).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }


def _least_0(value: float | None) -> float | None:
    """An endpoint before the last voice was waited for no longer than none."""
    return None if value is None else max(0.0, value)


def _known(costs: Sequence[_Cost], name: str) -> list[float]:
    assert name in {field.name for field in fields(_Cost)}
    return [value for cost in costs if (value := getattr(cost, name)) is not None]


def _at(values: Sequence[float], percentile: float) -> float:
    return round(float(np.percentile(values, percentile)), 1) if values else 0.0


def _or(value: float | None, marks: Mapping[str, float], since: str, until: str) -> float | None:
    return _between(marks, since, until) if value is None else value


def _between(marks: Mapping[str, float], since: str, until: str) -> float | None:
    if marks.get(since) is None or marks.get(until) is None:
        return None
    return marks[until] - marks[since]
