"""What the pipeline needs from the outside, as protocols. Implemented in ``audio`` and ``clients``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypedDict

from ondam.journal.warmth import Warmth
from ondam.types import Audio, Block, Language, Nanoseconds, Samples, Stage


class Message(TypedDict):
    """One message of a chat, as OpenAI names it."""

    role: str
    content: str


class VoiceActivity(Protocol):
    """A voice activity detector: one object per stream."""

    @property
    def frame(self) -> int:
        """How many samples (16 kHz mono int16) one call takes."""

    def __call__(self, frame: Samples) -> float:
        """Probability of speech in ``frame``, which follows the previous one without a gap."""

    def reset(self) -> None:
        """Forget what was heard."""


class EndOfTurn(Protocol):
    """Judges by its sound whether an utterance is complete. Takes tens of milliseconds, not of the loop's."""

    async def __call__(self, samples: Samples) -> float:
        """Probability that the user has finished. ``samples``: the turn so far, 16 kHz mono int16."""


class Microphone(Protocol):
    """Where the user's voice comes from. Heals itself; a fault is told through ``on_fault`` of its maker."""

    @property
    def name(self) -> str:
        """The device's name, for people."""

    def blocks(self) -> AsyncIterator[Block]:
        """10 ms blocks at 16 kHz, until ``close``. Nothing is yielded while the device is gone."""

    async def close(self) -> None:
        """Let go of the device. Safe to call twice."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A piece of what a speaker plays, mono, as loud as it is played. What lies between two is silence."""

    at_ns: Nanoseconds
    """When its first sample passes the converter, or passed it."""
    samples: Samples
    rate_hz: int
    """The device's, not always the one that ``write`` wants."""


class Speaker(Protocol):
    """Where the answer goes. Samples are numbered in the order they were written, from 0."""

    @property
    def name(self) -> str:
        """The device's name, for people."""

    @property
    def rate_hz(self) -> int:
        """The rate that ``write`` wants."""

    def wake(self) -> None:
        """Something will be written soon: a device that rests is started now, so that no sound waits."""

    async def write(self, samples: Samples) -> int:
        """Queue mono samples; waits while over a second is queued. Returns the number of the first."""

    def level(self, gain: float) -> None:
        """Play at ``gain``, 0 to 1, from now on; a change takes 5 to 10 ms, so that nothing clicks.

        1 plays as written, less is quieter. 0 holds: after the fade nothing more is taken from the queue, and
        a later ``level(1)`` goes on with the next sample, faded in. What is held is still to be heard: the
        queue stays as full as it is, ``drained`` waits, ``ends_at_ns`` moves on with the clock.
        """

    def flush(self) -> None:
        """Drop what is queued and fade out what is already on its way within 10 ms; the level is 1 again."""

    def reference(self) -> Sequence[Reference]:
        """What was handed to the converter since the last call, in order; the first call only begins it.

        What is held, flushed or faded is so here too. A device takes sound before it is heard, so most of it
        is told before its ``at_ns``. Kept for 2 s: ask more often.
        """

    async def drained(self) -> None:
        """Return when everything written has been heard, or was dropped."""

    @property
    def underruns(self) -> int:
        """How often the device ran dry since the start, as it reports it."""

    def heard_at_ns(self, sample: int) -> Nanoseconds | None:
        """When sample number ``sample`` passed the converter; None when it has not, or never will."""

    def ends_at_ns(self) -> Nanoseconds | None:
        """When the last sample that is still to be heard passes the converter; estimated while it is queued.

        When none is to come: when the last one that was heard had passed; None when there never was one.
        Samples that were or will be dropped do not count.
        """

    async def close(self) -> None:
        """Let go of the device. Safe to call twice."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What an STT engine heard. Engine times are its own, None where it does not tell."""

    text: str
    language: str | None = None
    engine_ms: float | None = None
    queued_ms: float | None = None
    no_speech_prob: float | None = None
    avg_logprob: float | None = None


class Recognizer(Protocol):
    """Speech to text."""

    async def transcribe(self, audio: Audio, language: Language, names: Sequence[str] = ()) -> Transcript:
        """The words in ``audio``; ``names`` bias it. Cancelling closes the connection. Raises EngineError."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an answer as it arrives. ``engine_ms``: the engine's own time since it took the request."""

    text: str
    engine_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost; the last thing a stream yields."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    prompt_ms: float | None = None
    predicted_ms: float | None = None
    finish_reason: str | None = None
    reasoning_seen: bool = False
    """The server sent reasoning although it was asked not to. Never passed on as text."""


class Responder(Protocol):
    """Text to text."""

    @property
    def context_tokens(self) -> int:
        """How many tokens a request may have together with its answer; 0 when nobody knows."""

    def respond(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None = None
    ) -> AsyncGenerator[Token | Usage, None]:
        """The answer as it is generated. Closing the iterator closes the connection. Raises EngineError.

        With a ``schema`` the answer is JSON that obeys it, and its properties come in the schema's order.
        """


@dataclass(frozen=True, slots=True)
class SpeechStart:
    """The first thing a synthesis yields: the format, and the engine's own time to its first samples."""

    rate_hz: int
    engine_ms: float | None = None
    queued_ms: float | None = None


@dataclass(frozen=True, slots=True)
class SpeechEnd:
    """The last thing of a synthesis whose engine tells what it took: its own time, for so much sound."""

    engine_ms: float
    audio_s: float


Sounded: TypeAlias = SpeechStart | Samples | SpeechEnd


class Synthesizer(Protocol):
    """Text to speech."""

    def synthesize(self, text: str, language: Language) -> AsyncGenerator[Sounded, None]:
        """``SpeechStart``, samples as they come, ``SpeechEnd`` if told. Closing it closes the connection.

        Raises EngineError.
        """


@dataclass(frozen=True, slots=True)
class Lease:
    """The engines of one turn. They are not taken away before ``let_go``, whatever is switched meanwhile."""

    engines: Engines
    crew: int = 0
    """Number of those who serve together: names the conditions that the turn is made under."""
    let_go: Callable[[], None] = lambda: None
    """Call once, when nothing of the turn needs them any more."""


class Engines(Protocol):
    """Who does each stage right now. Each call raises EngineError at once when nobody can."""

    def lease(self) -> Lease:
        """Those who serve now, for one turn."""

    def recognizer(self) -> Recognizer:
        """The STT engine that is ready."""

    def responder(self) -> Responder:
        """The LLM engine that is ready."""

    def synthesizer(self, language: Language, *, spare: bool = False) -> Synthesizer:
        """A TTS engine that is ready and knows the language: the first voice before the spare, or ``spare``
        first."""

    def answered(self, stage: Stage) -> None:
        """A real request of a turn was answered: counts towards settled."""

    def failed(self, stage: Stage, code: str) -> None:
        """A real request of a turn ended in the error ``code``: several in a row may mean that it hangs."""

    def warmth(self) -> Warmth:
        """How long the engines of a turn have served."""

    def identities(self) -> dict[str, dict[str, object]]:
        """Engine name to pid and start of the processes that serve now."""

    def voice(self, language: Language, *, spare: bool = False) -> str | None:
        """Name of the engine that speaks this language now, or that would if ``spare`` came first."""
