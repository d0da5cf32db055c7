"""Text to speech over Wyoming: ``synthesize`` → ``audio-start`` · ``audio-chunk``… · ``audio-stop``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from wyoming.event import Event
from wyoming.tts import Synthesize

from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.fields import language_of
from ondam_engines.kit.info import AUDIO_CHUNK, AUDIO_START, AUDIO_STOP, info
from ondam_engines.kit.limits import Limits, RequestError

SAMPLE_BYTES = 2

CHUNK_S = 0.1
"""Longest piece of audio in one frame, so that a ``pong`` is never far behind."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Voice:
    """One way a model can sound."""

    name: str
    language: str
    """BCP 47 primary tag."""


class TtsModel(Protocol):
    """A loaded, warm voice."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def version(self) -> str:
        """Of the model's library."""

    @property
    def voices(self) -> Sequence[Voice]:
        """At least one; the first of a language is its default."""

    @property
    def rate_hz(self) -> int:
        """Of what it says."""

    def synthesize(self, text: str, voice: Voice, cancel: Cancel) -> Iterator[bytes]:
        """Mono 16-bit little-endian samples as they are computed. ``text`` has no control characters."""


class TtsService:
    """Serves a TtsModel; ``default_language`` is for requests that name neither voice nor language."""

    def __init__(self, model: TtsModel, default_language: str) -> None:
        self._model = model
        known = [voice.language for voice in model.voices]
        self._default_language = default_language if default_language in known else known[0]

    def info(self) -> Event:
        """The answer to ``describe``."""
        voices: dict[str, list[str]] = {}
        for voice in self._model.voices:
            voices.setdefault(voice.name, []).append(voice.language)
        return info("tts", self._model.name, self._model.version, "voices", list(voices.items()))

    def intake(self, limits: Limits) -> TtsIntake:
        """For a new connection."""
        return TtsIntake(self._model, self._default_language, limits)


class TtsIntake:
    """A synthesis is complete in one event: nothing is gathered."""

    held_bytes = 0
    begun = False

    def __init__(self, model: TtsModel, default_language: str, limits: Limits) -> None:
        self._model = model
        self._default_language = default_language
        self._limits = limits

    def take(self, event: Event) -> Synthesis | None:
        """The request in a ``synthesize``. Raises RequestError."""
        if not Synthesize.is_type(event.type):
            return None
        text = event.data.get("text")
        if not isinstance(text, str):
            raise RequestError("bad_request", "text must be a string")
        if len(text) > self._limits.text_chars:
            raise RequestError("too_long", f"{len(text)} characters are over {self._limits.text_chars}")
        # A NUL would end the text inside a C library; the others have no sound.
        return Synthesis(self._model, _CONTROL.sub(" ", text).strip(), self._voice(event.data.get("voice")))

    def _voice(self, asked: object) -> Voice:
        wanted: dict[str, Any] = asked if isinstance(asked, dict) else {}
        if asked is not None and not isinstance(asked, dict):
            raise RequestError("bad_request", "a voice must be an object")
        name = wanted.get("name")
        if name is not None and not isinstance(name, str):
            raise RequestError("bad_request", "a voice's name must be a string")
        known = [voice.language for voice in self._model.voices]
        language = language_of(wanted.get("language"), known, self._default_language)
        # A voice may speak several languages; one that does not speak this one was asked for by name.
        named = [voice for voice in self._model.voices if voice.name == name]
        # None: a voice of another server; what counts is that the language is right.
        able = [voice for voice in named or self._model.voices if voice.language == language]
        return able[0] if able else named[0]


@dataclass(frozen=True, slots=True)
class Synthesis:
    """One complete request."""

    model: TtsModel
    text: str
    voice: Voice

    held_bytes = 0

    def compute(self, emit: Callable[[Event], None], cancel: Cancel, queued_ms: float) -> None:
        """Emit the audio; ``audio-start`` leaves with the first samples, alone where there is no sound."""
        began_ns = time.monotonic_ns()
        form = {"rate": self.model.rate_hz, "width": SAMPLE_BYTES, "channels": 1}
        most = int(self.model.rate_hz * CHUNK_S) * SAMPLE_BYTES
        sent = 0

        def start() -> Event:
            ondam = {"engine_ms": _since_ms(began_ns), "queued_ms": queued_ms}
            return Event(AUDIO_START, {**form, "context": {"ondam": ondam}})

        for samples in self.model.synthesize(self.text, self.voice, cancel) if self.text else ():
            if samples and not sent:
                emit(start())
            for at in range(0, len(samples), most):
                emit(Event(AUDIO_CHUNK, form, samples[at : at + most]))
            sent += len(samples)
        if not sent:
            emit(start())
        ondam = {"engine_ms": _since_ms(began_ns), "audio_s": sent / SAMPLE_BYTES / self.model.rate_hz}
        emit(Event(AUDIO_STOP, {"context": {"ondam": ondam}}))


def _since_ms(began_ns: int) -> float:
    return (time.monotonic_ns() - began_ns) / 1e6
