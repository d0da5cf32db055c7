"""Settings that are each fine and make no sense together: one value may not be more than another. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ondam.messages import Phrase


@dataclass(frozen=True, slots=True)
class Limit:
    """``key`` may be ``times`` the value of ``by`` and no more."""

    key: str
    by: str
    why: str
    """Code of the message that says what would go wrong."""
    times: int = 1
    none: float | None = None
    """A value of ``by`` that sets no limit."""


LIMITS = (
    Limit("detect.release", "detect.threshold", "limit_release"),
    Limit("detect.min_speech_ms", "detect.speech_ms", "limit_speech"),
    # Seconds against milliseconds; a piece must be able to hold more than what came before it.
    Limit("detect.pre_roll_ms", "detect.max_utterance_s", "limit_pre_roll", times=500),
    Limit("detect.speech_ms", "detect.max_utterance_s", "limit_utterance", times=1000),
    Limit("endpoint.threshold", "endpoint.sure", "limit_sure"),
    Limit("endpoint.sure_ms", "endpoint.complete_ms", "limit_sure_ms"),
    Limit("endpoint.complete_ms", "endpoint.incomplete_ms", "limit_incomplete"),
    Limit("drafts.most_on_battery", "drafts.most_per_turn", "limit_drafts"),
    Limit("llm.max_tokens", "llm.context_tokens", "limit_context", none=0),
    Limit("supervisor.backoff_first_s", "supervisor.backoff_last_s", "limit_backoff"),
)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two settings that do not go together, and how to say so."""

    keys: tuple[str, str]
    problem: Phrase


def contradictions(values: Mapping[str, object]) -> Iterator[Contradiction]:
    """All of them in ``values`` (nested tables). What is lacking, or no number, contradicts nothing."""
    for limit in LIMITS:
        value, most = _number(values, limit.key), _number(values, limit.by)
        if value is None or most is None or most == limit.none or value <= most * limit.times:
            continue
        why = Phrase(limit.why)
        problem = Phrase("problem_limit", key=limit.key, value=value, by=limit.by, most=most, why=why)
        yield Contradiction((limit.key, limit.by), problem)


def _number(values: Mapping[str, object], key: str) -> float | None:
    table, name = key.split(".")
    inside = values.get(table)
    value = inside.get(name) if isinstance(inside, Mapping) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
