"""What many turns come to. Pure: rows in, figures out.

Turns of different conditions, of the three populations, and first audio and whole answer are each reported
apart; a turn that was not answered is counted and in no distribution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ondam.journal.figures import Figures
from ondam.journal.findings import FEWEST, Evidence, Finding, findings
from ondam.journal.marks import STAGES
from ondam.journal.modes import Mode, two_modes
from ondam.journal.steady import Steadiness, steady_from
from ondam.journal.warmth import Population
from ondam.measure.distribution import distribution
from ondam.types import Language

ORDER: tuple[Population, ...] = ("settled", "after_idle", "cold")

EXPLAINS = 0.9
"""Share of the turns that a condition sorts into the right mode before it is named as the reason (the mean
over both modes, so that a small one counts as much)."""

LEAST_OF_A_KIND = 3
"""Turns of a clip, or of any other kind, before it can explain anything."""

Distribution = Mapping[str, float | int | None]


@dataclass(frozen=True, slots=True)
class Split:
    """A condition of the turns that tells the slower mode from the quicker. ``slow``: where it is the
    slower."""

    what: str
    slow: str
    explains: float

    def as_json(self) -> dict[str, Any]:
        """As it stands in a report."""
        return {"what": self.what, "slow": self.slow, "explains": round(self.explains, 3)}


@dataclass(frozen=True, slots=True)
class Group:
    """Turns under the same conditions, oldest first. ``facts`` of these; None where nobody wrote them
    down."""

    conditions: str | None
    facts: Mapping[str, Any] | None
    turns: Sequence[Figures]
    populations: Mapping[Population, Sequence[Figures]]
    drifting: int
    """Turns that were settled by count and time, and are cold because their median was not seen to stand
    still."""

    @property
    def findings(self) -> list[Finding]:
        """From the settled turns, or from all that were answered while there are too few of them."""
        settled, cold = (
            [turn for turn in self.populations[name] if turn.answered] for name in ("settled", "cold")
        )
        answered = [turn for turn in self.turns if turn.answered]
        judged = settled if len(settled) >= FEWEST else answered
        return findings(Evidence(self.turns, judged, cold, settled, self.facts or {}))

    def as_json(self, language: Language) -> dict[str, Any]:
        """As it stands in a report."""
        budget = (self.facts or {}).get("budget_ms")
        loads = distribution(turn.load for turn in self.turns)
        return {
            "conditions": self.conditions,
            "facts": self.facts,
            "turns": len(self.turns),
            "oldest": self.turns[0].started_at,
            "newest": self.turns[-1].started_at,
            "moment": {
                "load_average_1min": loads,
                "engines_ready_s": distribution(turn.ready_s for turn in self.turns),
                "power": dict(Counter(turn.power for turn in self.turns if turn.power)),
            },
            "drifting": self.drifting,
            "populations": {
                name: population(self.populations[name], budget if isinstance(budget, (int, float)) else None)
                for name in ORDER
            },
            "findings": [finding.as_json(language) for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """``groups``: one for each set of conditions, that of the newest turn first."""

    groups: Sequence[Group]

    def as_json(self, language: Language) -> dict[str, Any]:
        """``differs``: of a group from the first, before any two figures are put side by side."""
        told = [group.as_json(language) for group in self.groups]
        for group, made in zip(self.groups, told, strict=True):
            made["differs"] = differing(self.groups[0].facts or {}, group.facts or {})
        return {"turns": sum(len(group.turns) for group in self.groups), "groups": told}


def report(
    turns: Iterable[Figures], facts: Mapping[str | None, Mapping[str, Any]], steadiness: Steadiness
) -> Report:
    """Of ``turns`` in any order. ``facts``: of conditions, by their name; they say themselves what settled
    meant, and ``steadiness`` is for those that do not."""
    groups: dict[str | None, list[Figures]] = {}
    for turn in sorted(turns, key=lambda turn: turn.started_at):
        groups.setdefault(turn.conditions, []).append(turn)
    newest = sorted(groups.items(), key=lambda group: group[1][-1].started_at, reverse=True)
    return Report([_group(name, facts.get(name), members, steadiness) for name, members in newest])


def _group(
    name: str | None, facts: Mapping[str, Any] | None, turns: Sequence[Figures], steadiness: Steadiness
) -> Group:
    settling = (facts or {}).get("settling")
    if isinstance(settling, dict):
        size, within = settling.get("steady_turns"), settling.get("steady_within")
        # A file from elsewhere may hold anything.
        if isinstance(size, int) and size >= 0 and isinstance(within, (int, float)):
            steadiness = Steadiness(size, within)
    kinds, drifting = populations(turns, steadiness)
    return Group(name, facts, turns, kinds, drifting)


def populations(
    turns: Sequence[Figures], steadiness: Steadiness
) -> tuple[dict[Population, list[Figures]], int]:
    """The three, and how many turns are cold only because their median drifts. ``turns``: oldest first.

    Drift is looked for in each life of the engines apart, over the first audio of its spoken turns that the
    language model answered: what is quick for another reason says nothing of caches and clocks. Turns that do
    not say which processes answered are of no life, and stay what they were recorded as.
    """
    lives: dict[Hashable, list[Figures]] = {}
    for turn in turns:
        if turn.population == "settled":
            lives.setdefault(turn.life, []).append(turn)
    steady = set(map(id, lives.get((), ())))
    for processes, life in lives.items():
        if processes == ():
            continue
        timed = [
            (place, turn.first_audio_ms)
            for place, turn in enumerate(life)
            if turn.answered and not turn.typed and not turn.canned and turn.first_audio_ms is not None
        ]
        begin = steady_from([value for _, value in timed], steadiness)
        if begin is not None:
            steady.update(map(id, life[timed[begin][0] if begin and timed else 0 :]))
    kinds: dict[Population, list[Figures]] = {name: [] for name in ORDER}
    for turn in turns:
        drifts = turn.population == "settled" and id(turn) not in steady
        kinds["cold" if drifts else turn.population].append(turn)
    return kinds, sum(len(life) for life in lives.values()) - len(steady)


def population(turns: Sequence[Figures], budget_ms: float | None) -> dict[str, Any]:
    """The figures of one population, as JSON. ``over_budget`` where a row does not say so itself:
    ``budget_ms``."""
    answered = [turn for turn in turns if turn.answered]
    spoken = [turn for turn in answered if not turn.typed]
    over = [turn for turn in spoken if _is_over(turn, budget_ms)]
    longest = Counter(stage for turn in over if (stage := _longest(turn)) is not None)
    prompts = [turn for turn in answered if turn.prompt_tokens and turn.cached_tokens is not None]
    prompt = sum(turn.prompt_tokens or 0 for turn in prompts)
    dropped = sum(turn.draft_tokens for turn in turns)
    generated = sum(turn.output_tokens or 0 for turn in answered) + dropped

    def of(value: Callable[[Figures], float | None]) -> Distribution:
        return distribution(map(value, answered))

    def small(value: Callable[[Figures], float | None]) -> Distribution:
        return _finer(map(value, answered))

    modes = two_modes([turn.first_audio_ms for turn in spoken if turn.first_audio_ms is not None])
    split = _split(spoken, modes) if modes else None
    return {
        "turns": len(turns),
        "answered": len(answered),
        "written": sum(1 for turn in turns if _is_written(turn)),
        "unanswered": dict(
            Counter(
                "unheard" if turn.outcome == "answered" else turn.outcome
                for turn in turns
                if not turn.answered and not _is_written(turn)
            )
        ),
        "interrupted": sum(1 for turn in answered if turn.interrupted),
        "typed": len(answered) - len(spoken),
        "first_audio_ms": {**distribution(turn.first_audio_ms for turn in spoken), "over_budget": len(over)},
        "typed_first_audio_ms": distribution(turn.first_audio_ms for turn in answered if turn.typed),
        "answer_ms": {
            **distribution(turn.answer_ms for turn in spoken),
            "over_budget": sum(1 for turn in over if turn.answer_ms is not None),
        },
        "stages_ms": {
            stage: {
                **distribution(turn.stages_ms[place] for turn in spoken),
                "over_budget": longest[stage],
            }
            for place, stage in enumerate(STAGES)
        },
        "modes": [mode.as_json() for mode in modes] if modes else [],
        "split_by": split.as_json() if split else None,
        "ttft_ms": of(lambda turn: turn.first_token_ms),
        "token_ms": of(lambda turn: turn.token_ms),
        "tokens_per_s": of(lambda turn: turn.tokens_per_s),
        "stt_rtf": small(lambda turn: turn.stt_rtf),
        "tts_rtf": small(lambda turn: turn.tts_rtf),
        "llm_calls": of(lambda turn: turn.llm_calls),
        "prompt_tokens": of(lambda turn: turn.prompt_tokens),
        "cached_tokens": of(lambda turn: turn.cached_tokens),
        "output_tokens": of(lambda turn: turn.output_tokens),
        "context_tokens": of(lambda turn: turn.context_tokens),
        "answer_s": small(lambda turn: turn.answer_s),
        "cache_hit_share": (
            round(sum(turn.cached_tokens or 0 for turn in prompts) / prompt, 3) if prompt else None
        ),
        "drafts": {
            "made": sum(turn.drafts_made for turn in turns),
            "dropped": sum(turn.drafts_dropped for turn in turns),
            "kept": sum(1 for turn in answered if turn.draft_kept),
            "dropped_tokens": dropped,
            "dropped_tokens_share": round(dropped / generated, 3) if generated else None,
        },
        "taken_back": sum(turn.taken_back for turn in turns),
        "underruns": sum(turn.underruns for turn in turns),
        "thought": sum(1 for turn in turns if turn.thought),
        "canned": sum(1 for turn in answered if turn.canned),
    }


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where two JSON objects differ: ``{"key": "engines.stt.model", "a": …, "b": …}``; None where one lacks
    it."""
    one, other = dict(_flat(a)), dict(_flat(b))
    return [
        {"key": key, "a": one.get(key), "b": other.get(key)}
        for key in sorted({*one, *other})
        if one.get(key) != other.get(key)
    ]


def beside(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Two groups (as JSON) side by side: what differs in their conditions, then each population's figures.

    Percentiles stand beside each other and no winner is named: that takes pairs (``ondam bench``).
    """
    figures = {
        name: {
            key: {"a": a["populations"][name][key], "b": b["populations"][name][key]}
            for key in ("first_audio_ms", "answer_ms", "ttft_ms", "tokens_per_s", "stt_rtf", "tts_rtf")
        }
        | {
            "stages_ms": {
                stage: {side: one["populations"][name]["stages_ms"][stage] for side, one in sides.items()}
                for stage in STAGES
            }
        }
        for sides in ({"a": a, "b": b},)
        for name in ORDER
    }
    return {
        "a": a["conditions"],
        "b": b["conditions"],
        "facts_known": a["facts"] is not None and b["facts"] is not None,
        "differs": differing(a["facts"] or {}, b["facts"] or {}),
        **{
            key: {"a": a["moment"][key], "b": b["moment"][key]}
            for key in ("load_average_1min", "engines_ready_s", "power")
        },
        "populations": figures,
    }


def _flat(table: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + str(key), value


def _is_over(turn: Figures, budget_ms: float | None) -> bool:
    if turn.over_budget is not None:
        return turn.over_budget
    return budget_ms is not None and (turn.first_audio_ms or 0.0) > budget_ms


def _is_written(turn: Figures) -> bool:
    """Typed, and answered in writing alone: there was nothing to hear."""
    return turn.typed and turn.outcome == "answered" and turn.first_audio_ms is None


def _longest(turn: Figures) -> str | None:
    """The stage that took most of a turn."""
    known = [(value, stage) for value, stage in zip(turn.stages_ms, STAGES, strict=True) if value is not None]
    return max(known)[1] if known else None


def _finer(values: Iterable[float | None]) -> Distribution:
    """As ``distribution``, to four digits: for what is about 0.1."""
    thousand = distribution(None if value is None else 1000 * value for value in values)
    return {
        key: value if key == "n" or value is None else round(value / 1000, 4)
        for key, value in thousand.items()
    }


KINDS: Mapping[str, Callable[[Figures], Hashable]] = {
    "canned": lambda turn: turn.canned,
    "taken_back": lambda turn: turn.taken_back > 0,
    "cut_short": lambda turn: turn.cut_short,
    "draft_kept": lambda turn: turn.draft_kept,
    "drafts_dropped": lambda turn: turn.drafts_dropped > 0,
    "power": lambda turn: turn.power,
    "clip": lambda turn: turn.clip,
}
"""Conditions of a turn that are of one kind or another."""

AMOUNTS: Mapping[str, Callable[[Figures], float | None]] = {
    "cached_share": lambda turn: turn.cached_share,
    "computed_tokens": lambda turn: turn.computed_tokens,
    "load": lambda turn: turn.load,
    "utterance_s": lambda turn: turn.utterance_s,
}
"""Conditions of a turn that are more or less; one threshold may tell."""


def _split(turns: Sequence[Figures], modes: tuple[Mode, Mode]) -> Split | None:
    """The condition that sorts the turns best, where it sorts well enough."""
    slow = np.array([(turn.first_audio_ms or 0.0) > modes[0].most for turn in turns])
    found = [
        *(_by_kind(what, [kind(turn) for turn in turns], slow) for what, kind in KINDS.items()),
        *(_by_amount(what, [amount(turn) for turn in turns], slow) for what, amount in AMOUNTS.items()),
    ]
    best = max((one for one in found if one is not None), key=lambda one: one.explains, default=None)
    return best if best is not None and best.explains >= EXPLAINS else None


def _by_kind(what: str, kinds: Sequence[Hashable], slow: np.ndarray) -> Split | None:
    counts = Counter(kinds)
    if len(counts) < 2 or min(counts.values()) < LEAST_OF_A_KIND:
        return None
    of_slow = Counter(kind for kind, is_slow in zip(kinds, slow, strict=True) if is_slow)
    slower = {kind for kind, count in counts.items() if 2 * of_slow[kind] > count}
    told = np.array([kind in slower for kind in kinds])
    return Split(what, ", ".join(sorted(str(kind).lower() for kind in slower)), _right(told, slow))


def _by_amount(what: str, amounts: Sequence[float | None], slow: np.ndarray) -> Split | None:
    if any(amount is None for amount in amounts):
        return None
    values = np.asarray(amounts, dtype=float)
    steps = np.unique(values)
    if len(steps) < 2:
        return None
    # Up to 64 thresholds: a finer one would only fit these turns better, and no other.
    between = np.unique(np.quantile((steps[1:] + steps[:-1]) / 2, np.linspace(0, 1, 64)))
    best = Split(what, "", 0.0)
    for threshold in between:
        for sign, told in ((">", values > threshold), ("<", values < threshold)):
            right = _right(told, slow)
            if right > best.explains:
                best = Split(what, f"{sign} {threshold:.3g}", right)
    return best


def _right(told: np.ndarray, slow: np.ndarray) -> float:
    """How many are told rightly, as the mean over both modes."""
    return float((told[slow].mean() + (~told[~slow]).mean()) / 2)
