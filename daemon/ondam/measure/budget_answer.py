"""What is asked of the budget, checked, and what is answered, as JSON. Pure.

The command line and the control API share it: both hand over texts.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ondam.journal.marks import STAGES, StageName
from ondam.measure.budget import (
    PERCENTILE,
    Knowledge,
    Load,
    Preset,
    changed,
    keeping,
    remedies,
    taking,
    timeline,
    under_load,
)
from ondam.measure.budget_own import FEWEST, NAME, Own
from ondam.messages import Phrase, message, text
from ondam.types import Language

SETTINGS = ("draft_at", "answer_rest", "voice_rest")
"""What can be set beside the stages: see ``budget.Overlap``."""

LONGEST_MS = 600_000.0
"""Ten minutes: more is a slip of the unit."""

OTHERWISE = "embedded-cpu"
"""Shown where no preset is named and this machine has no settled turns yet."""

EVERY_S = 15.0
"""How often somebody who is talked with asks, where nobody says: a short answer and a thought."""


class BudgetError(ValueError):
    """What is asked for cannot be; ``phrase`` says what, and what could be."""

    def __init__(self, code: str, /, **facts: object) -> None:
        super().__init__(code)
        self.phrase = Phrase(code, **facts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One question. ``given``, ``drafts`` and ``streaming`` change the first side, not the one it is held
    against; ``target_ms`` None: as configured."""

    preset: str | None = None
    against: str | None = None
    given: tuple[tuple[str, float], ...] = ()
    target_ms: float | None = None
    drafts: bool | None = None
    streaming: bool | None = None
    load: Load | None = None

    @property
    def own(self) -> bool:
        """Whether this machine's journal is needed."""
        return self.preset in (None, NAME) or self.against == NAME

    def query(self) -> list[tuple[str, str]]:
        """As the query of ``GET /api/budget``."""
        named = (("preset", self.preset), ("against", self.against), ("target", self.target_ms))
        switches = (("drafts", self.drafts), ("streaming", self.streaming))
        told = [(name, str(value)) for name, value in named if value is not None]
        told += [("set", f"{name}={ms!r}") for name, ms in self.given]
        told += [(name, str(int(value))) for name, value in switches if value is not None]
        if self.load is not None:
            told += [("load", str(self.load.speakers)), ("every", repr(self.load.every_s))]
        return told


def wanted(
    knowledge: Knowledge,
    *,
    preset: str | None = None,
    against: str | None = None,
    settings: Sequence[str] = (),
    target: str | None = None,
    drafts: bool | None = None,
    streaming: bool | None = None,
    speakers: str | None = None,
    every: str | None = None,
) -> Wanted:
    """From texts. Raises BudgetError."""
    for name in (preset, against):
        if name is not None and name not in names(knowledge):
            raise _unknown("reason_budget_preset", name, names(knowledge))
    given: dict[str, float] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise BudgetError("reason_budget_form", given=_shown(setting))
        if name not in (*STAGES, *SETTINGS):
            raise _unknown("reason_budget_stage", name, (*STAGES, *SETTINGS))
        if name in given:
            raise BudgetError("reason_budget_twice", name=name)
        given[name] = _number(name, value, 0.0, LONGEST_MS)
    load = None
    if speakers is not None:
        count = _number("load", speakers, 1, 100_000)
        if count != int(count):
            raise BudgetError("reason_budget_whole", name="load", given=_shown(speakers))
        load = Load(int(count), EVERY_S if every is None else _number("every", every, 0.1, 86_400))
    elif every is not None:
        raise BudgetError("reason_budget_every")
    return Wanted(
        preset,
        against,
        tuple(given.items()),
        None if target is None else _number("target", target, 1, LONGEST_MS),
        drafts,
        streaming,
        load,
    )


def switch(name: str, given: str | None) -> bool | None:
    """``0`` or ``1`` of a query; None where it is not there. Raises BudgetError."""
    if given not in (None, "0", "1"):
        raise BudgetError("reason_budget_switch", name=name, given=_shown(given or ""))
    return None if given is None else given == "1"


def names(knowledge: Knowledge) -> tuple[str, ...]:
    """Of all presets."""
    return (NAME, *knowledge.presets)


def answer(
    asked: Wanted, knowledge: Knowledge, own: Own | None, target_ms: float, language: Language
) -> dict[str, Any]:
    """Everything that ``ondam budget --json`` prints. ``own``: where ``asked.own``. Raises BudgetError where
    this machine is asked for by name and has too few settled turns."""
    target_ms = asked.target_ms or target_ms
    notes = []
    name = asked.preset
    if name is None:
        known = own is not None and own.preset is not None
        name = NAME if known else OTHERWISE
        if own is not None and own.unread is not None:
            notes.append(message("budget_own_unread", language, reason=own.unread, instead=OTHERWISE))
        elif not known:
            notes.append(
                message(
                    "budget_no_own",
                    language,
                    settled=own.settled if own else 0,
                    turns=own.turns if own else 0,
                    fewest=FEWEST,
                    instead=OTHERWISE,
                )
            )
    plain = _preset(name, knowledge, own)
    made = _side(_set(plain, asked), knowledge, target_ms, asked.load, language)
    told: dict[str, Any] = {
        **made,
        "notes": [{"code": note.code, "text": note.text, "next": note.next} for note in notes],
        "against": None,
        "difference": None,
    }
    if asked.against is not None:
        other = _side(_preset(asked.against, knowledge, own), knowledge, target_ms, asked.load, language)
        told["against"] = other
        told["difference"] = {
            "stages": [
                {
                    "stage": one["stage"],
                    "ms": _ms(two["ms"] - one["ms"]),
                    "waited_ms": _ms(two["waited_ms"] - one["waited_ms"]),
                }
                for one, two in zip(made["stages"], other["stages"], strict=True)
            ],
            "sum_ms": _ms(other["sum_ms"] - made["sum_ms"]),
            "total_ms": _ms(other["total_ms"] - made["total_ms"]),
        }
    return told


def _preset(name: str, knowledge: Knowledge, own: Own | None) -> Preset:
    if name != NAME:
        return knowledge.presets[name]
    if own is not None and own.unread is not None:
        raise BudgetError("reason_budget_unread", reason=own.unread)
    if own is None or own.preset is None:
        raise BudgetError(
            "reason_budget_own",
            settled=own.settled if own else 0,
            turns=own.turns if own else 0,
            fewest=FEWEST,
        )
    return own.preset


def _set(preset: Preset, asked: Wanted) -> Preset:
    stages: dict[StageName, float] = {
        stage: ms for stage in STAGES for name, ms in asked.given if name == stage
    }
    overlap = preset.overlap
    for name, ms in asked.given:
        if name in SETTINGS:
            overlap = replace(overlap, **{f"{name}_ms": ms})  # type: ignore[arg-type]  # names of floats
    if any(name == "draft_at" for name, _ in asked.given):
        overlap = replace(overlap, draft_source=Phrase("budget_kind_given"))
    if any(name in ("answer_rest", "voice_rest") for name, _ in asked.given):
        overlap = replace(overlap, rest_source=Phrase("budget_kind_given"))
    if asked.drafts is not None:
        overlap = replace(overlap, drafts=asked.drafts)
    if asked.streaming is not None:
        overlap = replace(overlap, streaming=asked.streaming)
    touched = bool(asked.given) or overlap != preset.overlap
    # What was measured was measured of something else now.
    measured = None if touched else preset.measured
    return replace(changed(preset, stages), overlap=overlap, measured=measured)


def _side(
    preset: Preset, knowledge: Knowledge, target_ms: float, load: Load | None, language: Language
) -> dict[str, Any]:
    line, ms = timeline(preset), taking(preset)
    overlap = preset.overlap
    undrafted = timeline(replace(preset, overlap=replace(overlap, drafts=False))).total_ms
    unstreamed = timeline(replace(preset, overlap=replace(overlap, streaming=False))).total_ms
    stages = []
    for span in line.spans:
        figure, usual = preset.stages[span.stage], knowledge.usual[span.stage]
        stages.append(
            {
                "stage": span.stage,
                "ms": _ms(ms[span.stage]),
                "p95_ms": None if figure.p95_ms is None else _ms(figure.p95_ms),
                "usual_ms": {"low": usual.low, "high": usual.high},
                "usual_source": usual.source.in_language(language),
                "usual_url": usual.source.url,
                "over_usual": ms[span.stage] > usual.high,
                "target_ms": _ms(usual.share * target_ms),
                "source": figure.source.in_language(language),
                "source_kind": figure.source.kind,
                "source_date": figure.source.date or None,
                "source_url": figure.source.url,
                "begins_ms": _ms(span.begins_ms),
                "ends_ms": _ms(span.ends_ms),
                "waited_ms": _ms(span.waited_ms),
                "cumulative_ms": _ms(span.cumulative_ms),
            }
        )
    zones = knowledge.zones
    return {
        "preset": preset.name,
        "title": text(f"budget_preset_{preset.words}", language),
        "stages": stages,
        "sum_ms": _ms(line.sum_ms),
        "total_ms": _ms(line.total_ms),
        "target_ms": target_ms,
        "over_target": line.total_ms > target_ms,
        "bottleneck": line.bottleneck.stage,
        "zone": zones.of(line.total_ms),
        "zones": {
            "natural_ms": zones.natural_ms,
            "natural_source": zones.natural_source.in_language(language),
            "conversational_ms": zones.conversational_ms,
            "conversational_source": zones.conversational_source.in_language(language),
        },
        "overlap": {
            "assumption": text(
                "budget_overlap_drafts" if overlap.drafts else "budget_overlap_none",
                language,
                at=_ms(min(overlap.draft_at_ms, preset.stages["endpoint"].ms)),
            )
            + " "
            + text(
                "budget_overlap_streaming" if overlap.streaming else "budget_overlap_whole",
                language,
                answer=_ms(overlap.answer_rest_ms),
                voice=_ms(overlap.voice_rest_ms),
            ),
            "drafts": overlap.drafts,
            "draft_at_ms": _ms(overlap.draft_at_ms),
            "draft_source": overlap.draft_source.in_language(language),
            "streaming": overlap.streaming,
            "answer_rest_ms": _ms(overlap.answer_rest_ms),
            "voice_rest_ms": _ms(overlap.voice_rest_ms),
            "rest_source": overlap.rest_source.in_language(language),
            "recognition_runs_along": overlap.recognition_runs_along,
            "saved_ms": {
                "drafts": _ms(undrafted - line.total_ms),
                "streaming": _ms(unstreamed - line.total_ms),
            },
        },
        "measured": None
        if preset.measured is None
        else {
            "first_audio_ms": {
                "p50": preset.measured.p50_ms,
                "p95": preset.measured.p95_ms,
                "n": preset.measured.turns,
            },
            "model_less_p50_ms": _ms(line.total_ms - preset.measured.p50_ms),
            "zone": {"p50": zones.of(preset.measured.p50_ms), "p95": zones.of(preset.measured.p95_ms)},
            "over_target": preset.measured.p50_ms > target_ms,
        },
        "load": None if load is None else _load(preset, knowledge, load, language),
        "remedies": [
            {
                "code": remedy.code,
                "stage": remedy.stage,
                "gain_ms": _ms(remedy.gain_ms),
                "text": told.text,
                "next": told.next,
            }
            for remedy in remedies(preset, knowledge, target_ms)
            for told in (message(f"budget_remedy_{remedy.code}", language),)
        ],
    }


def _load(preset: Preset, knowledge: Knowledge, load: Load, language: Language) -> dict[str, Any]:
    under = under_load(preset, load)
    total = under.total_p95_ms
    if not preset.at_once:
        said = text("budget_load_unknown", language)
    elif under.saturated:
        said = text(
            "budget_load_saturated",
            language,
            engines=", ".join(text(f"budget_engine_{engine}", language) for engine in under.saturated),
            speakers=load.speakers,
            every=load.every_s,
            most=under.most_speakers,
        )
    else:
        said = text(
            "budget_load_holds",
            language,
            speakers=load.speakers,
            every=load.every_s,
            total=_ms(total or 0.0),
            quiet=_ms(under.quiet_p95_ms),
            most=under.most_speakers,
        )
        if under.unspread:
            said += " " + text("budget_load_unspread", language, count=len(under.unspread), of=len(STAGES))
    return {
        "assumption": "M/M/c",
        "formula": "P(wait > t) = C(c, a) * exp(-(c/s - l) * t), a = l*s, utilisation = a/c, "
        "C = Erlang C (= utilisation where c = 1), l = (speakers - 1) / every_s; waits of the engines "
        "independent; first audio = quiet p95 + what they add to max(E, S + C + waits) + P, every stage at "
        "its p95 where that is known",
        "text": said,
        "percentile": PERCENTILE,
        "speakers": load.speakers,
        "every_s": load.every_s,
        "engines": {
            engine: {
                "service_ms": _ms(keeping(preset)[engine]),
                "at_once": queue.at_once,
                "utilisation": round(queue.utilisation, 4),
                "saturated": queue.saturated,
                "wait_p95_ms": None if queue.saturated else _ms(queue.wait_ms(PERCENTILE)),
            }
            for engine, queue in under.queues.items()
        },
        "saturated": list(under.saturated),
        "most_speakers": under.most_speakers,
        "quiet_p95_ms": _ms(under.quiet_p95_ms) if preset.at_once else None,
        "spread_unknown": list(under.unspread),
        "total_p95_ms": None if total is None or not preset.at_once else _ms(total),
        "zone": None if total is None or not preset.at_once else knowledge.zones.of(total),
    }


def _number(name: str, given: str, least: float, most: float) -> float:
    try:
        value = float(given) if len(given) < 40 and "_" not in given else math.nan
    except ValueError:
        value = math.nan
    # NaN is within no bounds: comparisons with it are all false.
    if not least <= value <= most:
        raise BudgetError(
            "reason_budget_number", name=name, given=_shown(given), least=f"{least:g}", most=f"{most:.0f}"
        )
    return value


def _unknown(code: str, name: str, among: Sequence[str]) -> BudgetError:
    near = difflib.get_close_matches(name[:80].lower(), among, n=1, cutoff=0.4)
    return BudgetError(
        code,
        name=_shown(name),
        near=Phrase("near_name", name=near[0]) if near else ".",
        names=", ".join(among),
    )


def _shown(given: str) -> str:
    return repr(given)[:80]


def _ms(value: float) -> float:
    return round(value, 1) + 0.0  # no -0.0
