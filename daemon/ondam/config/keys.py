"""What is true of the configuration's keys beside their types: when a change counts, and who may see it.

Every key of the schema is in ``COUNTS`` once; a test sees to it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_origin

from ondam.config import Config, defaults
from ondam.config.schema import Table

When: TypeAlias = Literal["live", "engine", "restart"]
"""``live``: at once, or from the next turn on. ``engine``: as soon as an engine that is started for it
serves; the one before it serves until then. ``restart``: when the daemon is started the next time."""

COUNTS: Mapping[str, When] = {
    "ondam.schema": "restart",
    # Which voice speaks depends on it.
    "language": "engine",
    "canned": "live",
    "audio.microphone": "live",
    "audio.speaker": "live",
    "audio.speaker_latency_ms": "restart",
    "audio.tail_ms": "live",
    # What was learned of the room is learned for one of its values.
    "audio.echo": "restart",
    "listen.mode": "live",
    "listen.name_ko": "live",
    "listen.name_en": "live",
    "listen.cues": "live",
    "detect.threshold": "live",
    "detect.release": "live",
    "detect.min_speech_ms": "live",
    "detect.speech_ms": "live",
    "detect.pre_roll_ms": "live",
    "detect.max_utterance_s": "live",
    "barge_in.enabled": "live",
    "barge_in.duck": "live",
    # Its model is loaded at the start.
    "endpoint.mode": "restart",
    "endpoint.silence_ms": "live",
    "endpoint.threshold": "live",
    "endpoint.sure": "live",
    "endpoint.sure_ms": "live",
    "endpoint.complete_ms": "live",
    "endpoint.incomplete_ms": "live",
    "endpoint.judge_with_ms": "live",
    "drafts.most_per_turn": "live",
    "drafts.most_on_battery": "live",
    "drafts.after_ms": "live",
    "drafts.at_fall": "live",
    "drafts.take_back_ms": "live",
    "stt.engine": "engine",
    "stt.model": "engine",
    "stt.address": "restart",
    "stt.names": "live",
    "llm.engine": "engine",
    "llm.model": "engine",
    "llm.url": "restart",
    "llm.name": "restart",
    "llm.max_tokens": "live",
    "llm.temperature": "live",
    "llm.system_prompt_ko": "live",
    "llm.system_prompt_en": "live",
    "llm.history_turns": "live",
    "llm.context_tokens": "live",
    "llm.first_token_timeout_s": "live",
    "llm.idle_timeout_s": "live",
    "llm.tools": "live",
    "form.schema": "live",
    "form.instruction_ko": "live",
    "form.instruction_en": "live",
    "form.longest_say": "live",
    "form.max_tokens": "live",
    "answer.within_s": "live",
    "filler.after_ms": "live",
    "tts.engine": "engine",
    "tts.model": "engine",
    "tts.address": "restart",
    "tts.spare": "engine",
    # What the whole plan is made by: one stage after the other could end where no plan would.
    "plan.prefer": "restart",
    "plan.device": "restart",
    "plan.licences": "restart",
    "plan.gated": "restart",
    "plan.context_tokens": "restart",
    "plan.sessions": "restart",
    "plan.reserve_gib": "restart",
    "plan.memory_reserve_gib": "restart",
    "plan.memory_gb_s": "restart",
    "plan.tokens_per_s.speed": "restart",
    "plan.tokens_per_s.balanced": "restart",
    "plan.tokens_per_s.quality": "restart",
    "plan.slowest_voice_ms": "restart",
    "supervisor.policy": "restart",
    "supervisor.keep_output": "restart",
    "supervisor.isolation": "restart",
    "supervisor.leak_mib": "restart",
    "supervisor.backoff_first_s": "restart",
    "supervisor.backoff_last_s": "restart",
    "supervisor.restart_limit": "restart",
    "supervisor.restart_window_s": "restart",
    "supervisor.ping_every_s": "restart",
    "supervisor.ping_timeout_s": "restart",
    "supervisor.stop_timeout_s": "restart",
    "journal.keep_days": "live",
    "journal.keep_text": "live",
    "journal.text_days": "live",
    "journal.keep_audio": "live",
    "journal.audio_days": "live",
    "journal.audio_mb": "restart",
    "audit.enabled": "restart",
    "audit.path": "restart",
    "audit.file_mb": "restart",
    "audit.files": "restart",
    "privacy.core_dumps": "restart",
    # Figures that were made under different ones do not go into one report.
    "measure.settled_answers": "restart",
    "measure.settled_s": "restart",
    "measure.idle_s": "restart",
    "measure.steady_turns": "restart",
    "measure.steady_within": "restart",
    "measure.budget_ms": "restart",
    "metrics.listen": "restart",
    "engines": "engine",
}

PLAIN = frozenset({f"{stage}.{name}" for stage in ("stt", "llm", "tts") for name in ("engine", "model")})
"""Free texts that say nothing of a person. All others may be a name, a prompt, an address with a password."""


def counts(key: str) -> When:
    """When a change of ``key`` (``llm.model``, ``engines.piper.speed``) counts; of an unknown one: last."""
    return COUNTS.get("engines" if key.startswith("engines.") else key, "restart")


def flat(config: Config) -> dict[str, Any]:
    """Every key with its value, ``engines`` down to each option: ``engines.piper.speed``. Any: TOML's."""
    values: dict[str, Any] = {}
    for key, value in _flat(config.model_dump(by_alias=True)):
        if key == "engines":
            values |= {f"engines.{name}": inside for name, inside in _options(value)}
        else:
            values[key] = value
    return values


def changed(old: Config, new: Config) -> tuple[str, ...]:
    """Keys that are otherwise in ``new``, in the schema's order."""
    before, after = flat(old), flat(new)
    return tuple(key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key))


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """``{"llm.model": "x"}`` as a TOML file has it: ``{"llm": {"model": "x"}}``."""
    tables: dict[str, Any] = {}
    for key, value in values.items():
        *path, name = key.split(".")
        table = tables
        for part in path:
            table = table.setdefault(part, {})
        table[name] = value
    return tables


def shown(config: Config) -> dict[str, Any]:
    """Every key with its value, as it may be handed to a stranger: texts of a person's own are "(set)"."""
    shipped = flat(Config.model_validate(defaults()))
    return {key: _shown(key, value, shipped.get(key)) for key, value in flat(config).items()}


def keys() -> tuple[str, ...]:
    """All of the schema. ``canned``, ``engines`` and ``form.schema`` count as one each."""
    return tuple(key for key, _ in _fields(Config))


def annotation(key: str) -> Any:
    """The schema's type of ``key``, with its limits; None where there is none. Any: typing's forms."""
    table: type[Table] = Config
    *path, name = key.split(".")
    for part in path:
        field = table.model_fields.get(part)
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, Table)):
            return None
        table = field.annotation
    found = table.model_fields.get(name)
    return None if found is None else Annotated[found.annotation, found]


def _shown(key: str, value: Any, shipped: Any) -> Any:
    plain = value is None or isinstance(value, bool | int | float) or value in ("", [], {})
    if plain or key in PLAIN or key in CHOICES:
        return value
    return "(shipped)" if value == shipped else "(set)"


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in COUNTS:
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _options(engines: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, options in engines.items():
        for option, value in options.items():
            yield f"{name}.{option}", value


def _fields(table: type[Table], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in table.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, Table):
            yield from _fields(field.annotation, f"{key}.")
        else:
            yield key, field.annotation


CHOICES = frozenset(key for key, kind in _fields(Config) if get_origin(kind) is Literal)
"""Keys whose values are words of the schema."""
