"""The times of one turn, and the seven stages that they make.

Marks are readings of one monotonic clock. The stages add up to the time from the user's last voiced sample to
the first answer sample at the speaker's converter, with nothing left over: what no engine accounts for is
``ipc`` (sockets, queues, clause cutting, the event loop).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np

from ondam.types import HEARING_RATE_HZ, Nanoseconds, Samples

MarkName: TypeAlias = Literal[
    "last_voiced",
    "pause_seen",
    "endpoint",
    "stt_sent",
    "stt_final",
    "llm_sent",
    "llm_first_token",
    "first_clause",
    "tts_sent",
    "tts_first_audio",
    "dac_first_sample",
    "dac_last_sample",
]
"""In the order in which they happen. ``last_voiced`` is the origin of every figure that people see."""

MARKS: tuple[MarkName, ...] = get_args(MarkName)

StageName: TypeAlias = Literal[
    "endpoint", "ipc", "stt", "llm_first_token", "first_clause", "tts_first_audio", "playback_buffer"
]
STAGES: tuple[StageName, ...] = get_args(StageName)

VOICED_FLOOR_DB = -40.0
"""A block counts as voiced above this level relative to the utterance's loudest block."""

VOICED_BLOCK = HEARING_RATE_HZ // 100


@dataclass(slots=True)
class Marks:
    """When each thing happened in a turn; each mark is set once, the first time."""

    at_ns: dict[MarkName, Nanoseconds] = field(default_factory=dict)

    def set(self, name: MarkName, at_ns: Nanoseconds) -> None:
        """Remember ``name``; a second setting of the same mark changes nothing."""
        self.at_ns.setdefault(name, at_ns)

    def replace(self, name: MarkName, at_ns: Nanoseconds) -> None:
        """Remember the latest: for marks that move until the turn is decided (pause, last sample)."""
        self.at_ns[name] = at_ns

    def ms(self, name: MarkName, since: MarkName = "last_voiced") -> float | None:
        """Milliseconds from ``since`` to ``name``; None when either was never reached."""
        if name in self.at_ns and since in self.at_ns:
            return (self.at_ns[name] - self.at_ns[since]) / 1e6
        return None

    @property
    def origin(self) -> MarkName:
        """Where counting starts: the user's last voice, or for a typed question the moment it was sent on."""
        return next((name for name in MARKS if name in self.at_ns), "last_voiced")


@dataclass(slots=True)
class EngineTimes:
    """What the engines themselves measured in a turn, in ms; None where one did not tell."""

    stt: float | None = None
    llm_first_token: float | None = None
    llm_first_clause: float | None = None
    llm_last_token: float | None = None
    tts_first_audio: float | None = None
    tts: float = 0.0
    """All clauses together, for ``Turn.voiced_s`` of sound; 0 where the voice does not tell."""

    @property
    def sum_ms(self) -> float | None:
        """STT + first clause + first TTS audio: what only overlapping them could save."""
        parts = (self.stt, self.llm_first_clause, self.tts_first_audio)
        return sum(p for p in parts if p is not None) if None not in parts else None


def stages_ms(marks: Marks, engines: EngineTimes) -> dict[StageName, float | None]:
    """The seven stages. A stage whose engine did not tell its own time is taken from the daemon's marks.

    What a draft did before the endpoint cost the user nothing: a stage is the part of it that was waited for.
    It never takes more than what lies between its mark and those before it: where the daemon read an engine's
    first token late, the engine was writing its clause meanwhile, and that would be counted twice.
    None where a turn never got that far.
    """
    first_audio = marks.ms("dac_first_sample")
    stt = _first(engines.stt, marks.ms("stt_final", "stt_sent"))
    token = _first(engines.llm_first_token, marks.ms("llm_first_token", "llm_sent"))
    clause: float | None
    if engines.llm_first_clause is not None and engines.llm_first_token is not None:
        clause = engines.llm_first_clause - engines.llm_first_token
    else:
        clause = marks.ms("first_clause", "llm_first_token")
    tts = _first(engines.tts_first_audio, marks.ms("tts_first_audio", "tts_sent"))
    reached = 0.0

    def waited_for(took: float | None, mark: MarkName) -> float | None:
        nonlocal reached
        since_endpoint = marks.ms(mark, "endpoint")
        if took is None or since_endpoint is None:  # all of it where nobody spoke
            return took
        lies_between = max(0.0, since_endpoint - reached)
        reached = max(reached, since_endpoint)
        return min(took, lies_between)

    stages: dict[StageName, float | None] = {
        "endpoint": marks.ms("endpoint"),
        "ipc": None,
        "stt": waited_for(stt, "stt_final"),
        "llm_first_token": waited_for(token, "llm_first_token"),
        "first_clause": waited_for(clause, "first_clause"),
        "tts_first_audio": waited_for(tts, "tts_first_audio"),
        "playback_buffer": waited_for(marks.ms("dac_first_sample", "tts_first_audio"), "dac_first_sample"),
    }
    told = [value for value in stages.values() if value is not None]
    if first_audio is not None and len(told) == len(STAGES) - 1:
        # The parts lie side by side within the whole: less than nothing is a matter of rounding.
        stages["ipc"] = max(0.0, first_audio - sum(told))
    return stages


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def last_voiced_sample(samples: Samples) -> int:
    """Index just past the last 10 ms block above −40 dB of the loudest block's level; 0 for silence.

    ``samples``: mono int16 at 16 kHz, shape (n,). Levels are RMS, so that one click does not count as voice
    for ever after.
    """
    whole = len(samples) // VOICED_BLOCK
    if not whole:
        return 0
    blocks = samples[: whole * VOICED_BLOCK].reshape(whole, VOICED_BLOCK).astype(np.float32)
    level = np.sqrt(np.mean(np.square(blocks), axis=1))
    peak = float(level.max())
    if peak == 0.0:
        return 0
    voiced = np.flatnonzero(level > peak * 10 ** (VOICED_FLOOR_DB / 20))
    return int(voiced[-1] + 1) * VOICED_BLOCK
