"""What travels over ``control.sock``: routes, events and JSON shapes. A leaf for both ends.

docs/control-api.md is generated from this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NotRequired, TypeAlias, TypedDict, get_args

KIB = 1024
MIB = 1024 * KIB

Permission: TypeAlias = Literal["read", "command", "admin"]
"""``read`` looks, ``command`` speaks and listens with it, ``admin`` ends it, restarts engines, sees logs."""

State: TypeAlias = Literal[
    "starting", "listening", "hearing", "recognizing", "thinking", "speaking", "switching", "fault"
]
"""What the daemon is doing. ``switching``: one moment, an engine is being changed and nobody does its work.
``fault``: no turn is possible at the moment, ``faults`` say why."""

Mode: TypeAlias = Literal["open", "name", "push", "muted"]
"""When it listens: always, when called by name, while the talk button is held, never (it is closed)."""

EchoMode: TypeAlias = Literal["learning", "cancelling", "no_echo", "half_duplex"]
"""Our own voice in the microphone: nothing is known yet, it is removed, there is none, or it stays. Only with
the second and the third can the user speak over an answer; else the microphone is shut while it sounds."""

MODES: tuple[Mode, ...] = get_args(Mode)

WantedMode: TypeAlias = Literal["open", "name", "push", "muted", "unmuted"]
"""What it may be told. ``unmuted``: as it listened before it was muted, and nothing new where it is not."""

WANTED_MODES: tuple[WantedMode, ...] = get_args(WantedMode)

DeviceKind: TypeAlias = Literal["microphone", "speaker"]

SettingKind: TypeAlias = Literal["choice", "number", "switch", "text"]
"""How a setting is shown: one of ``choices``, a number from ``least`` to ``most``, on or off, a line."""

DeviceState: TypeAlias = Literal["ok", "missing", "none", "muted"]
"""``missing``: configured, gone at the moment, being looked for. ``none``: the configuration wants none.
``muted``: closed, because the mode is "muted"."""

EngineState: TypeAlias = Literal["starting", "loading", "ready", "restarting", "failed", "stopped"]
"""As ``supervisor.status`` says them; ``failed`` stays down until a person restarts it."""

Policy: TypeAlias = Literal["require", "warn"]
"""Of an engine that did not get what the plan asked for: not used, or used and shown."""

Fit: TypeAlias = Literal["unknown", "as_planned", "differs", "unreported", "refused"]
"""What an engine got beside what it was to get. ``unknown``: it has not told yet. ``differs``: something is
otherwise, and it is used (``warn``). ``unreported``: it does not tell, and is used. ``refused``: otherwise or
untold, and not used (``require``). Its ``faults`` say what, why, and what to do."""

WORST_FIRST: tuple[Fit, ...] = ("refused", "differs", "unreported", "unknown", "as_planned")
"""``Status.fit`` is the first of these that any engine has."""

SwitchState: TypeAlias = Literal[
    "planning", "loading", "warming", "waiting", "stopping", "going_back", "done", "failed"
]
"""How far a change of engines is. ``waiting``: for turns that began on the old ones. ``going_back``: the new
one did not come up, the old one is started again. ``done`` and ``failed`` are its ends."""

Layer: TypeAlias = Literal["ondam", "config", "control", "model", "engine", "audio", "journal"]
"""Which of the exceptions in ``ondam.errors`` an error is."""


@dataclass(frozen=True, slots=True)
class Route:
    """One call. ``takes`` and ``gives`` say in a few words what goes in and out, for docs/control-api.md."""

    method: Literal["GET", "POST"]
    path: str
    permission: Permission
    takes: str
    gives: str
    limit: int = 0
    """Largest body in bytes. 0: no body is read."""


STATUS = Route("GET", "/api/status", "read", "", "`Status`")
EVENTS = Route(
    "GET",
    "/api/events",
    "read",
    "WebSocket; query `levels` (0|1)",
    "`SnapshotEvent`, then the others as they happen; only with `levels=1` `LevelsEvent`, `MarkEvent` and "
    "`PartialEvent`",
)
TURNS = Route("GET", "/api/turns", "read", "query `limit` (1 to 1000, else 20)", "`Turns`, newest first")
REPORT = Route(
    "GET",
    "/api/report",
    "read",
    "query `since`, `until` (`2h`, `7d`, an ISO date or date and time), `session`, `plan` (beginning of the "
    "conditions' name), `most` (1 to 1000000, else 20000)",
    "`Report`",
)
SERIES = Route(
    "GET",
    "/api/series",
    "read",
    "query `since` (as for `report`), `plan` (beginning of the conditions' name), `most` (1 to 1000000, else "
    "20000)",
    "`Series`",
)
BUDGET = Route(
    "GET",
    "/api/budget",
    "read",
    "query `preset`, `against`, `set` (STAGE=MS, repeated), `target` (ms), `drafts`, `streaming` (0|1), "
    "`load` (speakers), `every` (seconds)",
    "`Budget`; with `against`, that side as `against` and the other less this as `difference`",
)
METRICS = Route("GET", "/metrics", "read", "", "Prometheus text: turns, stages, engines (docs/metrics.md)")
ASK = Route("POST", "/api/ask", "command", "`{text, speak?: bool}`", "`Turn`", 64 * KIB)
SAY = Route("POST", "/api/say", "command", "`{text, language?: ko|en}`", "`Said`", 64 * KIB)
LISTEN = Route(
    "POST",
    "/api/listen",
    "command",
    "`{timeout_s?: number}`",
    "`Turn`: one utterance and its answer",
    4 * KIB,
)
MODE = Route(
    "POST",
    "/api/mode",
    "command",
    "`{mode: open|name|push|muted|unmuted}`",
    "`Listens`, once it is so: with `muted`, the microphone is closed",
    4 * KIB,
)
PRESS = Route(
    "POST",
    "/api/press",
    "command",
    "",
    "`Button`; what is said until the release is one utterance, in any mode",
)
RELEASE = Route("POST", "/api/release", "command", "", "`Button`; the user has finished")
TOGGLE = Route(
    "POST", "/api/toggle", "command", "", "`Button`; pressed when it was not, released when it was"
)
STOP = Route("POST", "/api/stop", "command", "", "`{}`; what is being spoken falls silent")
WAV_TURNS = 32
"""Turns from files at once; more wait. Each holds its sound as long as people speak: with ``WAV_TURN.limit``
this bounds what they hold together (half a GiB)."""

WAV_TURN = Route(
    "POST",
    "/api/wav-turn",
    "command",
    "a WAV file; query `language`, `reset_history` (0|1), `settings` (JSON: tables `detect`, `endpoint`, "
    "`drafts` of config.toml, for this turn alone)",
    "`WavTurn` (one whole turn in real time, no sound card)",
    16 * MIB,
)
TRANSCRIBE = Route(
    "POST",
    "/api/transcribe",
    "command",
    "a WAV file; query `language`, `names` (repeated)",
    "`Transcription`",
    64 * MIB,
)
SHUTDOWN = Route("POST", "/api/shutdown", "admin", "", "`{}`; the daemon ends")
RESTART_ENGINE = Route("POST", "/api/engines/{name}/restart", "admin", "", "`{}`; the engine is started anew")
SWITCH = Route(
    "POST",
    "/api/switch",
    "admin",
    '`{wanted: {"llm.model": ID, …}, keep?: bool}`; keys are `model` and `engine` of `stt`, `llm`, `tts`',
    "`Switch`, once it is over; goes on when the caller leaves. `keep`: config.toml says so too afterwards",
    4 * KIB,
)
ENGINE_LOG = Route(
    "GET", "/api/engines/{name}/log", "admin", "query `lines` (1 to 10000, 100 when left out)", "`EngineLog`"
)
DEVICES = Route("GET", "/api/devices", "read", "", "`Devices`")
CHOOSE_DEVICES = Route(
    "POST",
    "/api/devices",
    "command",
    "`{microphone?: name|null, speaker?: name|null, keep?: bool}`; null is the system's default",
    "`Devices`, once it is so; what is left out stays. `keep` (admin): config.toml says so too",
    4 * KIB,
)
SETTINGS = Route("GET", "/api/settings", "read", "", "`Settings`")
SET_SETTINGS = Route(
    "POST",
    "/api/settings",
    "command",
    "`{set: {key: value}, keep?: bool}`; keys and values as `Settings` has them",
    "`Settings`, once it is so. `keep`, and keys of `journal`: admin",
    16 * KIB,
)
RELOAD = Route(
    "POST",
    "/api/reload",
    "admin",
    "",
    "`Reloaded`: config.toml was read again. One with problems is refused, and nothing changes",
)
DIAGNOSTICS = Route(
    "GET",
    "/api/diagnostics",
    "admin",
    "",
    "`Diagnostics`, for a report of a fault: no sound, no word that was spoken or answered, no secret",
)
CHAT = Route(
    "POST",
    "/v1/chat/completions",
    "command",
    "OpenAI chat completions",
    "what the resident language engine answers, passed through as it comes",
    4 * MIB,
)
MODELS = Route("GET", "/v1/models", "read", "", "OpenAI list of the resident models")
TRANSCRIPTIONS = Route(
    "POST",
    "/v1/audio/transcriptions",
    "command",
    "OpenAI multipart: `file` (WAV), `language`, `prompt` (names, comma-separated), "
    "`response_format` json|text|verbose_json",
    "OpenAI transcription",
    64 * MIB,
)
SPEECH = Route(
    "POST",
    "/v1/audio/speech",
    "command",
    "OpenAI speech: `input`, `response_format` wav|pcm, and our `language` ko|en",
    "audio, streamed while it is made; wav when no format is named; pcm is 24 kHz 16-bit mono as OpenAI's",
    64 * KIB,
)

ROUTES: tuple[Route, ...] = (
    STATUS,
    EVENTS,
    TURNS,
    REPORT,
    SERIES,
    BUDGET,
    METRICS,
    ASK,
    SAY,
    LISTEN,
    MODE,
    PRESS,
    RELEASE,
    TOGGLE,
    STOP,
    WAV_TURN,
    TRANSCRIBE,
    SHUTDOWN,
    RESTART_ENGINE,
    SWITCH,
    ENGINE_LOG,
    DEVICES,
    CHOOSE_DEVICES,
    SETTINGS,
    SET_SETTINGS,
    RELOAD,
    DIAGNOSTICS,
    CHAT,
    MODELS,
    TRANSCRIPTIONS,
    SPEECH,
)


class Fault(TypedDict):
    """Something a person should know of, and what to do about it. ``since``: ISO 8601 with offset."""

    code: str
    text: str
    next: str
    since: NotRequired[str]


class Device(TypedDict):
    """A microphone or a speaker."""

    name: str
    state: DeviceState


class Isolation(TypedDict):
    """What keeps an engine from the network. ``network``: what it was to have; ``means``: how the rest was
    taken away; ``closed``: no network of the machine's is open to it; ``remains``: what is open all the same.
    """

    network: Literal["none", "loopback", "open"]
    means: list[Literal["namespace", "filter", "landlock"]]
    closed: bool
    remains: list[Literal["network", "abstract"]]


class EngineStatus(TypedDict):
    """One engine. ``loads``: how often weights were loaded (1). ``spare``: the last-resort voice.

    ``isolation``: null while it is not ready, and for one by address.

    ``fit`` and ``policy``: whether it got what the plan asked for, and what follows where it did not.
    """

    name: str
    stage: Literal["stt", "llm", "tts"]
    state: EngineState
    pid: int | None
    loads: int | None
    device: str | None
    model: str | None
    rss_mib: float | None
    isolation: Isolation | None
    restarts: int
    uptime_s: float | None
    spare: bool
    outside: bool
    policy: Policy
    fit: Fit
    faults: list[Fault]
    report: Mapping[str, object] | None


class TurnAudio(TypedDict):
    """The spoken answer. ``path`` only where a command wrote it to a file."""

    seconds: float
    path: NotRequired[str]


class StagesMs(TypedDict):
    """The seven stages of the latency budget, in milliseconds; null where a turn had no such stage."""

    endpoint: float | None
    ipc: float | None
    stt: float | None
    llm_first_token: float | None
    first_clause: float | None
    tts_first_audio: float | None
    playback_buffer: float | None


class Tokens(TypedDict):
    """What the answer cost, as the language engine counts; null where it does not tell."""

    prompt: int | None
    cached: int | None
    output: int | None


class Drafts(TypedDict):
    """Answers begun before the endpoint, how many were thrown away, and the tokens that these cost."""

    made: int
    dropped: int
    tokens: int


class Turn(TypedDict):
    """One utterance and its answer. Times count from the user's last voiced sample.

    ``fault``: message code of what the user was told when something went wrong; ``cause``: code of the
    error behind it. ``taken_back``: endpoints after which the user went on. ``engine_ms``: what the engines
    measured themselves, ``sum`` of what is in the way of the first sound. ``filler_ms``: when "One moment."
    was said, which is no part of the answer. ``canned``: answered from the configuration. ``slots``: what
    the model filled in beside it, where there is a form. ``voice``: the engine that spoke. ``engines``:
    name to pid, start and loading time of the process that answered. ``population``: ``cold``, ``after_idle``
    or ``settled``, by ``warmth``, what the turn found; ``settled`` is true for the last. ``underruns``: how
    often the speaker ran dry. ``voiced_s``: how much sound the voice made in ``engine_ms.tts``.
    ``thought``: the model reasoned. ``over_budget``: first audio against ``measure.budget_ms``.
    ``conditions``: name of what the figures were made under.
    """

    id: int
    session: str
    started_at: str
    outcome: str
    fault: str | None
    cause: str | None
    transcript: str | None
    reply: str | None
    audio: TurnAudio
    utterance_s: float
    marks_ms: Mapping[str, float | None]
    stages_ms: StagesMs
    engine_ms: Mapping[str, float | None]
    first_audio_ms: float | None
    answer_ms: float | None
    filler_ms: float | None
    canned: bool
    llm_calls: int
    tokens: Tokens
    drafts: Drafts
    taken_back: int
    clauses: int
    voiced_s: float
    voice: str | None
    settled: bool
    population: str
    warmth: Mapping[str, float | None] | None
    underruns: int
    thought: bool
    over_budget: bool | None
    conditions: str | None
    load_average_1min: float | None
    power: str | None
    engines: Mapping[str, Mapping[str, object]]
    slots: NotRequired[Mapping[str, object]]


class Turns(TypedDict):
    """Answer of ``TURNS``."""

    turns: list[Turn]


class Finding(TypedDict):
    """What figures say should be looked at: ``severity`` is error, warning or info. Listed in
    docs/report.md."""

    code: str
    severity: str
    evidence: Mapping[str, object]
    text: str
    next: str


class ReportGroup(TypedDict):
    """Turns made under the same conditions. ``differs``: from the first group, as `{key, a, b}`.
    ``drifting``: turns that are cold only because their median was not seen to stand still.
    ``populations``: ``settled``, ``after_idle`` and ``cold``, each with the figures that docs/report.md
    explains.
    """

    conditions: str | None
    facts: Mapping[str, object] | None
    turns: int
    oldest: str
    newest: str
    moment: Mapping[str, object]
    drifting: int
    populations: Mapping[str, Mapping[str, object]]
    findings: list[Finding]
    differs: list[Mapping[str, object]]


class Report(TypedDict):
    """Answer of ``REPORT``: the conditions of the newest turn first. ``more``: older turns were left out;
    ``skipped``: rows that could not be read.
    """

    turns: int
    more: bool
    skipped: int
    groups: list[ReportGroup]


class SeriesBucket(TypedDict):
    """A stretch of time in which somebody spoke. ``conditions``: of its last turn. ``populations``: those
    that it has, each with ``turns`` and n, p50, p90, p95 of ``first_audio_ms``, ``answer_ms`` and each of
    ``stages_ms``.
    """

    at: str
    conditions: str | None
    populations: Mapping[str, Mapping[str, object]]


class Series(TypedDict):
    """Answer of ``SERIES``: what turns came to over time. ``buckets``, of ``bucket_s`` each, hold all turns
    of the period; ``populations`` and ``histogram`` those under the conditions ``chosen``: the newest, or
    ``plan``. ``histogram``: first audio, ``counts`` of population in steps of ``step_ms`` from 0, the last
    one open. ``conditions``: all that there were, the newest first. May be some seconds old: ``behind`` when
    something was written since, and it is worth asking again.
    """

    behind: bool
    turns: int
    skipped: int
    more: bool
    since: str
    until: str
    bucket_s: int
    budget_ms: float
    conditions: list[Mapping[str, object]]
    chosen: str | None
    drifting: int
    populations: Mapping[str, Mapping[str, object]]
    buckets: list[SeriesBucket]
    histogram: Mapping[str, object]


class BudgetStage(TypedDict):
    """One of the seven stages. ``ms``: a median by itself, from ``source``; ``usual_ms``: ``{low, high}``.
    ``begins_ms`` to ``ends_ms`` on the clock after the last voiced sample; ``waited_ms`` of it is waited for,
    up to ``cumulative_ms``. ``source_kind``: measured, published, assumption or given.
    """

    stage: str
    ms: float
    p95_ms: float | None
    usual_ms: Mapping[str, float]
    usual_source: str
    usual_url: str | None
    over_usual: bool
    target_ms: float
    source: str
    source_kind: str
    source_date: str | None
    source_url: str | None
    begins_ms: float
    ends_ms: float
    waited_ms: float
    cumulative_ms: float


class BudgetRemedy(TypedDict):
    """What would help: the first sound comes ``gain_ms`` sooner."""

    code: str
    stage: str
    gain_ms: float
    text: str
    next: str


class Budget(TypedDict):
    """Answer of ``BUDGET``: ``total_ms`` is first audio with overlap, ``sum_ms`` the stages one after
    another. ``zone``: natural, conversational or beyond. docs/budget.md explains the rest.
    """

    preset: str
    title: str
    stages: list[BudgetStage]
    sum_ms: float
    total_ms: float
    target_ms: float
    over_target: bool
    bottleneck: str
    zone: str
    zones: Mapping[str, object]
    overlap: Mapping[str, object]
    measured: Mapping[str, object] | None
    load: Mapping[str, object] | None
    remedies: list[BudgetRemedy]
    notes: list[Mapping[str, str]]
    against: Mapping[str, object] | None
    difference: Mapping[str, object] | None


class Switch(TypedDict):
    """A change of engines (docs/switch.md). ``stages``: whose engines change; empty where the plan stays as
    it is. ``beside``: both fit at once, so that nobody waits; null until that is known; ``short`` says why
    not. ``fault``: why it failed, the old engines serve; or, where it is done, why it is not in config.toml.
    """

    state: SwitchState
    wanted: Mapping[str, str]
    since: str
    stages: list[Literal["stt", "llm", "tts"]]
    beside: bool | None
    short: list[str]
    kept: bool
    fault: Fault | None


class Status(TypedDict):
    """The daemon at this moment. ``session``: the conversation at the microphone; an event that names another
    is of another, such as a turn from a WAV. ``echo`` is null where no microphone hears the speaker.

    ``report``: this daemon's last turns, as ``populations`` of name to turns, first audio and whole answer.
    ``fit``: the worst of its engines', for an icon that is to show it; ``faults`` say what. ``switch``: the
    last change of engines, or the one under way.
    """

    version: str
    pid: int
    uptime_s: float
    session: str
    state: State
    mode: Mode
    echo: EchoMode | None
    language: str
    microphone: Device
    speaker: Device
    engines: list[EngineStatus]
    fit: Fit
    faults: list[Fault]
    turns: int
    last_turn: Turn | None
    report: Mapping[str, object]
    conditions: Mapping[str, object]
    switch: Switch | None


class Listens(TypedDict):
    """Answer of ``MODE``: the mode in force. Lasts until the daemon ends."""

    mode: Mode


class Button(TypedDict):
    """Answer of ``PRESS``, ``RELEASE`` and ``TOGGLE``.

    One that nobody releases is released after ``detect.max_utterance_s``.
    """

    pressed: bool


class Said(TypedDict):
    """Answer of ``SAY``, after the last sample was heard."""

    text: str
    language: str
    audio: TurnAudio


class Transcription(TypedDict):
    """Answer of ``TRANSCRIBE``. Engine times are the engine's own, null where it does not tell."""

    text: str
    language: str | None
    engine: str | None
    audio_s: float
    engine_ms: float | None
    queued_ms: float | None
    total_ms: float
    no_speech_prob: float | None
    avg_logprob: float | None


class WavTurn(TypedDict):
    """Answer of ``WAV_TURN``; ``answer_wav`` is the spoken answer as a WAV file in base64."""

    turn: Turn
    answer_wav: str


class EngineLog(TypedDict):
    """Answer of ``ENGINE_LOG``."""

    name: str
    text: str


class DeviceChoice(TypedDict):
    """A device that could be used. ``name``: as ``CHOOSE_DEVICES`` and config.toml take it; ``label``: as a
    person calls it. ``default``: the system's. ``present``: false where the one that was chosen is gone at
    the moment. Where the system's default is wanted, none is ``chosen``.
    """

    name: str
    label: str
    chosen: bool
    default: bool
    present: bool


class Devices(TypedDict):
    """Answer of ``DEVICES`` and ``CHOOSE_DEVICES``."""

    microphones: list[DeviceChoice]
    speakers: list[DeviceChoice]


class Choice(TypedDict):
    """One of the values of a setting, and what to call it in the reader's language."""

    value: object
    label: str


class Setting(TypedDict):
    """Something that may be changed while the daemon runs. ``key``: as in config.toml. ``choices``: of a
    ``choice``; ``least``, ``most`` and ``whole`` (no fractions): of a ``number``. ``label`` and ``help`` are
    in the reader's language. ``kept``: config.toml says the same, so that it is still so after a restart.
    """

    key: str
    value: object
    kind: SettingKind
    choices: NotRequired[list[Choice]]
    least: NotRequired[float]
    most: NotRequired[float]
    whole: NotRequired[bool]
    label: str
    help: str
    kept: bool


class Settings(TypedDict):
    """Answer of ``SETTINGS`` and ``SET_SETTINGS``, in the order in which they are best shown."""

    settings: list[Setting]


class Reloaded(TypedDict):
    """Answer of ``RELOAD``: keys that are otherwise than before. ``needs_restart``: read when the daemon
    starts; until then it runs as it did.
    """

    applied: list[str]
    needs_restart: list[str]


class Diagnostics(TypedDict):
    """Answer of ``DIAGNOSTICS``. ``versions``: of what it runs on. ``config``: values in force; those that
    may hold a secret, a name or a prompt are told only as "(set)". ``findings``: of all groups of ``report``.
    ``logs``: name (``daemon``, ``engine:NAME``) to its last lines.
    """

    made_at: str
    versions: Mapping[str, str]
    status: Status
    config: Mapping[str, object]
    report: Report
    findings: list[Finding]
    logs: Mapping[str, str]


class ErrorDetail(TypedDict):
    """An ``OndamError``: the message in the language of Accept-Language, and what it was made from."""

    code: str
    text: str
    next: str
    layer: Layer
    facts: Mapping[str, object]


class ErrorBody(TypedDict):
    """Every answer under /api with a status of 400 or more."""

    error: ErrorDetail


class SnapshotEvent(TypedDict):
    """The first event of every subscription."""

    type: Literal["snapshot"]
    status: Status


class StateEvent(TypedDict):
    """The daemon does something else now."""

    type: Literal["state"]
    session: str
    state: State


class ModeEvent(TypedDict):
    """It listens at other times now."""

    type: Literal["mode"]
    session: str
    mode: Mode


class TranscriptEvent(TypedDict):
    """What was heard."""

    type: Literal["transcript"]
    session: str
    text: str


class SlotsEvent(TypedDict):
    """What the model filled in beside what it says, while that is being said (see ``form.schema``).

    Comes once the answer is certain to be wanted. ``turn`` is its number.
    """

    type: Literal["slots"]
    session: str
    turn: int
    slots: Mapping[str, object]


class TurnEvent(TypedDict):
    """A turn has ended."""

    type: Literal["turn"]
    session: str
    turn: Turn


class EngineEvent(TypedDict):
    """An engine's status changed."""

    type: Literal["engine"]
    engine: EngineStatus


class SwitchEvent(TypedDict):
    """A change of engines is further. Who serves afterwards is in the status."""

    type: Literal["switch"]
    switch: Switch


class FaultEvent(TypedDict):
    """A fault appeared."""

    type: Literal["fault"]
    fault: Fault


class FaultClearedEvent(TypedDict):
    """A fault is over."""

    type: Literal["fault_cleared"]
    code: str


class NoticeEvent(TypedDict):
    """Something worth a line, and no fault that stays. ``code`` is in ``ondam.messages``."""

    type: Literal["notice"]
    session: str
    code: str


class SettingsEvent(TypedDict):
    """Something was changed while it runs: ``keys`` of config.toml. Their values are in the settings."""

    type: Literal["settings"]
    keys: list[str]


class LevelsEvent(TypedDict):
    """How loud it is: RMS of the last 100 ms in dBFS (0 is full scale, never under -100). Null: nothing comes
    from there, as when it is muted. Fleeting: at most ten a second, dropped first for who reads slowly.
    """

    type: Literal["levels"]
    microphone_db: float | None
    speaker_db: float | None


class MarkEvent(TypedDict):
    """The running turn has come so far. ``name`` as in ``Turn.marks_ms``, but for ``dac_last_sample``, which
    moves until the end; a later one of the same name replaces it. ``at_ms``: from the user's last voiced
    sample, null before that is known; for a typed question from when it was sent on. ``draft``: a number of
    the answer that is being made, null while none is. With another one all marks are told anew: one that is
    dropped takes its own with it, and what counts is in the turn. Fleeting.
    """

    type: Literal["mark"]
    turn: int | None
    draft: int | None
    name: str
    at_ms: float | None


class PartialEvent(TypedDict):
    """The answer as far as it has been heard. Fleeting."""

    type: Literal["partial"]
    turn: int
    reply: str


Event: TypeAlias = (
    SnapshotEvent
    | StateEvent
    | ModeEvent
    | TranscriptEvent
    | SlotsEvent
    | TurnEvent
    | EngineEvent
    | SwitchEvent
    | FaultEvent
    | FaultClearedEvent
    | NoticeEvent
    | SettingsEvent
    | LevelsEvent
    | MarkEvent
    | PartialEvent
)
"""What a subscriber of ``EVENTS`` receives, one JSON text message each."""

FLEETING: frozenset[str] = frozenset({"levels", "mark", "partial"})
"""Types of events that only who asked for them gets, and that are dropped first for who reads slowly."""
