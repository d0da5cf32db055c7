"""The configuration: typed, complete, refused as a whole when anything in it is wrong.

``defaults.toml`` holds every shipped value; the user's ``config.toml`` is laid over it key by key.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import pydantic
from pydantic_core import PydanticCustomError

from ondam import messages
from ondam.at_home import at_home
from ondam.config.contradictions import contradictions
from ondam.config.layers import Layer, config_files, placed
from ondam.config.schema import Table, check
from ondam.types import Language, Mode

if TYPE_CHECKING:  # for real it would load all that reads text, and the command line is to be quick
    from ondam.speech.form import Form

LONGEST_SCHEMA = 65_536
"""Bytes. All of it stands in every prompt: a form of so many would be no form for a voice."""

Positive = Annotated[float, pydantic.Field(gt=0)]
PositiveInt = Annotated[int, pydantic.Field(gt=0)]
Probability = Annotated[float, pydantic.Field(gt=0, lt=1)]


class StampConfig(Table):
    """``[ondam]``: what the file was written for."""

    version: Annotated[int, pydantic.Field(alias="schema")]


class AudioConfig(Table):
    """``[audio]``: devices."""

    microphone: str
    speaker: str
    speaker_latency_ms: Annotated[int, pydantic.Field(ge=5, le=500)]
    tail_ms: Annotated[int, pydantic.Field(ge=0, le=5000)]
    echo: Literal["auto", "on", "off"]


Name = Annotated[str, pydantic.Field(max_length=40, pattern=r"\w")]
"""Something that can be called."""


class ListenConfig(Table):
    """``[listen]``: when it listens."""

    mode: Mode
    name_ko: Name
    name_en: Name
    cues: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What it is called, in any language: recognisers mix them up."""
        return self.name_ko, self.name_en


class DetectConfig(Table):
    """``[detect]``: where an utterance begins."""

    threshold: Probability
    release: Probability
    min_speech_ms: Annotated[int, pydantic.Field(gt=0, le=1000)]
    speech_ms: PositiveInt
    pre_roll_ms: Annotated[int, pydantic.Field(ge=300, le=5000)]
    max_utterance_s: Annotated[int, pydantic.Field(ge=5, le=1800)]


class BargeInConfig(Table):
    """``[barge_in]``: speaking over an answer."""

    enabled: bool
    duck: Probability


class EndpointConfig(Table):
    """``[endpoint]``: where it ends."""

    mode: Literal["smart_turn", "silence"]
    silence_ms: Annotated[int, pydantic.Field(ge=100, le=5000)]
    threshold: Probability
    sure: Probability
    sure_ms: Annotated[int, pydantic.Field(ge=32, le=5000)]
    complete_ms: Annotated[int, pydantic.Field(ge=32, le=5000)]
    incomplete_ms: Annotated[int, pydantic.Field(ge=100, le=10_000)]
    judge_with_ms: Annotated[int, pydantic.Field(ge=0, le=2000)]


class DraftsConfig(Table):
    """``[drafts]``: answers begun before it is certain that the user has finished."""

    most_per_turn: Annotated[int, pydantic.Field(ge=0, le=50)]
    most_on_battery: Annotated[int, pydantic.Field(ge=0, le=50)]
    after_ms: Annotated[int, pydantic.Field(ge=32, le=5000)]
    at_fall: bool
    take_back_ms: Annotated[int, pydantic.Field(ge=0, le=5000)]


class SttConfig(Table):
    """``[stt]``: who recognizes."""

    engine: str
    model: str
    address: str
    names: list[str]


class LlmConfig(Table):
    """``[llm]``: who answers."""

    engine: str
    model: str
    url: str
    name: str
    max_tokens: Annotated[int, pydantic.Field(ge=1, le=8192)]
    temperature: Annotated[float, pydantic.Field(ge=0, le=2)]
    system_prompt_ko: str
    system_prompt_en: str
    history_turns: Annotated[int, pydantic.Field(ge=0, le=200)]
    context_tokens: Annotated[int, pydantic.Field(ge=0)]
    first_token_timeout_s: Positive
    idle_timeout_s: Positive
    tools: str

    @pydantic.field_validator("tools")
    @classmethod
    def _can_be_sent(cls, tools: str) -> str:
        if tools:
            from ondam.tools import BrokenTools, read_tools

            try:
                read_tools(Path(tools))
            except BrokenTools as error:
                facts: dict[str, Any] = dict(error.facts)
                raise PydanticCustomError(error.code, "these are no tools", facts) from error
        return tools

    def definitions(self) -> tuple[Mapping[str, Any], ...]:
        """Of the tools that go along with every request. Reads their file."""
        from ondam.tools import read_tools

        return read_tools(Path(self.tools)) if self.tools else ()

    def system_prompt(self, language: Language) -> str:
        """The instruction to the language model."""
        return self.system_prompt_ko if language == "ko" else self.system_prompt_en


class FormConfig(Table):
    """``[form]``: data that the model fills in beside what it says."""

    source: Annotated[str | dict[str, Any], pydantic.Field(alias="schema")]
    instruction_ko: str
    instruction_en: str
    longest_say: Annotated[int, pydantic.Field(ge=0, le=10_000)]
    max_tokens: Annotated[int, pydantic.Field(ge=1, le=8192)]

    @pydantic.field_validator("source")
    @classmethod
    def _can_be_filled_in(cls, source: str | dict[str, Any]) -> str | dict[str, Any]:
        if source:
            from ondam.speech.form import BrokenForm, form_of

            try:
                form_of(_schema(source), instruction="", max_tokens=1)
            except BrokenForm as error:
                facts: dict[str, Any] = dict(error.facts)
                raise PydanticCustomError(error.code, "this is no form", facts) from error
        return source

    def form(self, language: Language) -> Form | None:
        """The form, as it is told to the model in ``language``; None where there is none. 2 ms."""
        if not self.source:
            return None
        from ondam.speech.form import form_of

        told = self.instruction_ko if language == "ko" else self.instruction_en
        return form_of(
            _schema(self.source),
            instruction=told,
            max_tokens=self.max_tokens,
            longest_say=self.longest_say,
        )


def _schema(source: str | dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema itself, or what the file holds that is named. Raises BrokenForm."""
    from ondam.speech.form import BrokenForm

    given: object = source
    if isinstance(source, str):
        try:
            with at_home(source).open("rb") as file:
                given = json.loads(file.read(LONGEST_SCHEMA))
        except (OSError, ValueError, RecursionError) as error:
            raise BrokenForm("form_unreadable", path=source, reason=str(error)) from error
    if not isinstance(given, dict):
        raise BrokenForm("form_not_an_object")
    return given


class AnswerConfig(Table):
    """``[answer]``: how long an answer may keep the user waiting."""

    within_s: Positive


class FillerConfig(Table):
    """``[filler]``: what is said while an answer takes its time."""

    after_ms: Annotated[int, pydantic.Field(ge=0, le=60_000)]


def _one_or_several(value: object) -> object:
    return [value] if isinstance(value, str) else value


class CannedConfig(Table):
    """``[[canned]]``: an answer of the user's own, given without the language model."""

    match: Annotated[list[str], pydantic.BeforeValidator(_one_or_several)] = pydantic.Field(
        default_factory=list
    )
    pattern: str | None = pydantic.Field(default=None, validate_default=True)
    say: Annotated[list[str], pydantic.BeforeValidator(_one_or_several)]
    language: Literal["ko", "en"] | None = None

    @pydantic.field_validator("match")
    @classmethod
    def _says_something(cls, match: list[str]) -> list[str]:
        from ondam.speech.canned import normalised

        if not all(normalised(text) for text in match):
            raise PydanticCustomError("canned_match_empty", "an entry has no letter and no digit")
        return match

    @pydantic.field_validator("pattern")
    @classmethod
    def _is_regular(cls, pattern: str | None, info: pydantic.ValidationInfo) -> str | None:
        from ondam.speech.canned import compiled

        if not pattern:
            # A match that is wrong itself has been told, and is not there.
            if not info.data.get("match", ["?"]):
                raise PydanticCustomError("canned_matches_nothing", "neither match nor pattern is given")
            return None
        try:
            compiled(pattern)
        except ValueError as error:
            raise PydanticCustomError(
                "canned_pattern_broken", "not a regular expression: {reason}", {"reason": str(error)}
            ) from error
        return pattern

    @pydantic.field_validator("say")
    @classmethod
    def _can_be_said(cls, say: list[str]) -> list[str]:
        if not say or not all(any(sign.isalnum() for sign in text) for text in say):
            raise PydanticCustomError("canned_say_empty", "there is nothing that can be said")
        return say


class TtsConfig(Table):
    """``[tts]``: who speaks."""

    engine: str
    model: str
    address: str
    spare: str


class PaceConfig(Table):
    """``[plan.tokens_per_s]``: the slowest language model for each preference."""

    speed: Positive
    balanced: Positive
    quality: Positive


class PlanConfig(Table):
    """``[plan]``: how engines and models are chosen where they are ``auto``."""

    prefer: Literal["speed", "balanced", "quality"]
    device: Literal["auto", "cpu", "cuda", "metal", "vulkan"]
    licences: list[str]
    gated: bool
    context_tokens: Annotated[int, pydantic.Field(ge=512, le=1_000_000)]
    sessions: Annotated[int, pydantic.Field(ge=1, le=64)]
    reserve_gib: Annotated[float, pydantic.Field(ge=0, le=64)]
    memory_reserve_gib: Annotated[float, pydantic.Field(ge=0, le=64)]
    memory_gb_s: Annotated[float, pydantic.Field(ge=0, le=100_000)]
    tokens_per_s: PaceConfig
    slowest_voice_ms: Positive


class SupervisorConfig(Table):
    """``[supervisor]``: how engines are kept alive."""

    policy: Literal["require", "warn"]
    backoff_first_s: Positive
    backoff_last_s: Positive
    restart_limit: PositiveInt
    restart_window_s: Positive
    ping_every_s: Positive
    ping_timeout_s: Positive
    leak_mib: Annotated[float, pydantic.Field(ge=0)]
    stop_timeout_s: Annotated[float, pydantic.Field(gt=0, le=4)]
    keep_output: Literal["own", "all", "none"]
    isolation: Literal["possible", "require", "off"]


class JournalConfig(Table):
    """``[journal]``: what is remembered."""

    keep_text: bool
    keep_audio: bool
    keep_days: Annotated[int, pydantic.Field(ge=1, le=36_500)]
    text_days: Annotated[int, pydantic.Field(ge=1, le=36_500)]
    audio_days: Annotated[int, pydantic.Field(ge=1, le=36_500)]
    audio_mb: Annotated[int, pydantic.Field(ge=1, le=1_000_000)]


class AuditConfig(Table):
    """``[audit]``: a line per turn for auditors."""

    enabled: bool
    path: str
    file_mb: Annotated[float, pydantic.Field(ge=0.001, le=10_000)]
    files: Annotated[int, pydantic.Field(ge=0, le=1000)]

    @pydantic.field_validator("path")
    @classmethod
    def _is_a_path(cls, path: str) -> str:
        try:
            at_home(path)
        except OSError as error:
            raise PydanticCustomError("audit_path", "nobody knows that home folder") from error
        if "\0" in path:
            raise PydanticCustomError("audit_path", "no path has a zero in it")
        return path


class PrivacyConfig(Table):
    """``[privacy]``: what else could hold what was said."""

    core_dumps: bool


class MeasureConfig(Table):
    """``[measure]``: when a number counts, and what it is held against."""

    settled_answers: PositiveInt
    settled_s: Annotated[float, pydantic.Field(ge=0)]
    idle_s: Annotated[float, pydantic.Field(gt=0)]
    steady_turns: Annotated[int, pydantic.Field(ge=0, le=1000)]
    steady_within: Annotated[float, pydantic.Field(gt=0, lt=1)]
    budget_ms: Annotated[float, pydantic.Field(gt=0)]


class TcpPlace(NamedTuple):
    """Where to listen."""

    host: str
    port: int


class MetricsConfig(Table):
    """``[metrics]``: who may scrape them over TCP."""

    listen: str

    @pydantic.field_validator("listen")
    @classmethod
    def _is_a_place(cls, listen: str) -> str:
        if listen:
            try:
                parts = urlsplit(f"//{listen}")
                whole = bool(parts.hostname and parts.port) and parts.netloc == listen and "@" not in listen
            except ValueError:
                whole = False
            if not whole:
                raise PydanticCustomError("metrics_listen_malformed", "this is no HOST:PORT")
        return listen

    @property
    def where(self) -> TcpPlace | None:
        """None: nobody."""
        parts = urlsplit(f"//{self.listen}")
        return TcpPlace(parts.hostname, parts.port) if parts.hostname and parts.port else None


class Config(Table):
    """Everything that can be set. See ``defaults.toml`` for each value's reason."""

    stamp: Annotated[StampConfig, pydantic.Field(alias="ondam")]
    language: Literal["auto", "ko", "en"]
    canned: list[CannedConfig]
    audio: AudioConfig
    listen: ListenConfig
    detect: DetectConfig
    barge_in: BargeInConfig
    endpoint: EndpointConfig
    drafts: DraftsConfig
    stt: SttConfig
    llm: LlmConfig
    form: FormConfig
    answer: AnswerConfig
    filler: FillerConfig
    tts: TtsConfig
    plan: PlanConfig
    supervisor: SupervisorConfig
    journal: JournalConfig
    audit: AuditConfig
    privacy: PrivacyConfig
    measure: MeasureConfig
    metrics: MetricsConfig
    engines: dict[str, dict[str, Any]]

    @property
    def spoken_language(self) -> Language:
        """``language`` with ``auto`` resolved by the locale."""
        return messages.reader_language() if self.language == "auto" else self.language


def defaults() -> dict[str, Any]:
    """The shipped values."""
    return tomllib.loads(resources.files("ondam.config").joinpath("defaults.toml").read_text("utf-8"))


def load(file: Path | None, overrides: Mapping[str, Any] | None = None) -> Config:
    """The configuration from ``file`` over the machine's, and nested ``overrides``. None: shipped values.

    Neither file need be there. Raises ConfigError with every problem found, by full key path; where there are
    several files, each with its place. MigrationError for a file of a later Ondam.
    """
    return over(laid(file), overrides)


def laid(file: Path | None) -> tuple[Layer, ...]:
    """The files that are there, the machine's first. Raises ConfigError or MigrationError."""
    return () if file is None else tuple(Layer.read(found) for found in config_files(file))


def over(layers: Sequence[Layer], overrides: Mapping[str, Any] | None = None) -> Config:
    """``layers`` and ``overrides`` over the shipped values. Raises ConfigError."""
    values = defaults()
    for layer in layers:
        values = _laid_over(values, layer.values)
    origin: object = "defaults.toml"
    if layers:
        origin = ", ".join(str(layer.file) for layer in layers)
    if overrides:
        values = _laid_over(values, overrides)
        origin = messages.Phrase("config_with_set", origin=origin)

    def place(key: str) -> object:
        return placed(layers, key) if len(layers) > 1 and not _has(overrides or {}, key) else None

    return check(Config, values, origin, contradictions=contradictions, place=place)


def _has(table: Mapping[str, Any], key: str) -> bool:
    """Whether nested tables say something of ``key`` or of what holds it."""
    name, _, rest = key.partition(".")
    inside = table.get(name.partition("[")[0])
    return inside is not None and (not isinstance(inside, Mapping) or not rest or _has(inside, rest))


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = (
            _laid_over(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
        )
    return merged
