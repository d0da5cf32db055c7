"""Speech to text over Wyoming.

``transcribe`` · ``audio-start`` · ``audio-chunk``… · ``audio-stop`` → ``transcript``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from wyoming.asr import Transcribe, Transcript
from wyoming.event import Event

from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.fields import language_of, texts_of
from ondam_engines.kit.info import AUDIO_CHUNK, AUDIO_START, AUDIO_STOP, info
from ondam_engines.kit.limits import Limits, RequestError

SAMPLE_BYTES = 2


@dataclass(frozen=True, slots=True)
class Heard:
    """What a model made of the audio."""

    text: str
    no_speech_prob: float | None = None
    avg_logprob: float | None = None
    """Mean log probability of a token."""


class SttModel(Protocol):
    """A loaded, warm speech-to-text model."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def version(self) -> str:
        """Of the model's library."""

    @property
    def languages(self) -> Sequence[str]:
        """BCP 47 primary tags."""

    @property
    def rate_hz(self) -> int:
        """The rate it wants."""

    def transcribe(self, samples: bytes, language: str, names: Sequence[str], cancel: Cancel) -> Heard:
        """The words in ``samples`` (mono, 16-bit little-endian, at ``rate_hz``; may be empty)."""


class SttService:
    """Serves an SttModel; ``default_language`` is for requests that name none."""

    def __init__(self, model: SttModel, default_language: str) -> None:
        self._model = model
        known = model.languages
        self._default_language = default_language if default_language in known else known[0]

    def info(self) -> Event:
        """The answer to ``describe``."""
        model = (self._model.name, list(self._model.languages))
        return info("asr", self._model.name, self._model.version, "models", [model])

    def intake(self, limits: Limits) -> SttIntake:
        """For a new connection."""
        return SttIntake(self._model, self._default_language, limits)


class SttIntake:
    """Gathers one connection's audio."""

    def __init__(self, model: SttModel, default_language: str, limits: Limits) -> None:
        self._model = model
        self._default_language = default_language
        self._limits = limits
        self._most_bytes = int(limits.audio_s * model.rate_hz) * SAMPLE_BYTES
        self._reset()

    def _reset(self) -> None:
        self._language = self._default_language
        self._names: Sequence[str] = ()
        self._audio = bytearray()
        self._begun = False

    @property
    def held_bytes(self) -> int:
        """Audio gathered so far."""
        return len(self._audio)

    @property
    def begun(self) -> bool:
        """Audio has begun and has not ended."""
        return self._begun

    def take(self, event: Event) -> Transcription | None:
        """The request that ``audio-stop`` completes. Raises RequestError."""
        if Transcribe.is_type(event.type):
            self._language = language_of(
                event.data.get("language"), self._model.languages, self._default_language
            )
            self._names = (
                *texts_of(event.data, "transcript_names", self._limits),
                *texts_of(event.data, "transcript_terms", self._limits),
            )
        elif event.type == AUDIO_START:
            self._check_format(event.data)
            self._begun = True
        elif event.type == AUDIO_CHUNK:
            self._check_format(event.data)
            self._begun = True
            self._gather(event.payload or b"")
        elif event.type == AUDIO_STOP:
            if not self._begun:
                raise RequestError("bad_request", "audio-stop without audio")
            work = Transcription(self._model, bytes(self._audio), self._language, self._names)
            self._reset()
            return work
        return None

    def _gather(self, payload: bytes) -> None:
        if len(payload) % SAMPLE_BYTES:
            raise RequestError("bad_request", f"{len(payload)} bytes are no whole number of samples")
        if len(self._audio) + len(payload) > self._most_bytes:
            raise RequestError("too_long", f"more than {self._limits.audio_s:.0f} s of audio")
        self._audio += payload

    def _check_format(self, data: dict[str, Any]) -> None:
        found = (data.get("rate"), data.get("width"), data.get("channels"))
        # Not resampled here: the daemon does that well, and wyoming's own converter aliases.
        if found != (self._model.rate_hz, SAMPLE_BYTES, 1):
            raise RequestError("bad_request", f"audio must be {self._model.rate_hz} Hz, 16 bit, mono")


@dataclass(frozen=True, slots=True)
class Transcription:
    """One complete request."""

    model: SttModel
    samples: bytes
    language: str
    names: Sequence[str]

    @property
    def held_bytes(self) -> int:
        """Audio in the request."""
        return len(self.samples)

    def compute(self, emit: Callable[[Event], None], cancel: Cancel, queued_ms: float) -> None:
        """Emit the transcript."""
        began_ns = time.monotonic_ns()
        heard = self.model.transcribe(self.samples, self.language, self.names, cancel)
        measured = {
            "engine_ms": (time.monotonic_ns() - began_ns) / 1e6,
            "queued_ms": queued_ms,
            "audio_s": len(self.samples) / SAMPLE_BYTES / self.model.rate_hz,
            "no_speech_prob": heard.no_speech_prob,
            "avg_logprob": heard.avg_logprob,
        }
        ondam = {key: value for key, value in measured.items() if value is not None}
        emit(Transcript(heard.text, language=self.language, context={"ondam": ondam}).event())
