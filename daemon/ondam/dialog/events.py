"""What can happen in a conversation. Every event carries its own time; nothing here reads a clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ondam.types import Language, Nanoseconds, TurnId


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """A voice was heard for long enough to be meant."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class Pause:
    """The voice has been silent for ``silence_ms`` so far. Comes with every silent frame of an utterance."""

    at_ns: Nanoseconds
    silence_ms: float
    voiced: bool = True
    """False while an utterance that was opened by hand has not held any voice yet."""


@dataclass(frozen=True, slots=True)
class UtteranceFull:
    """The utterance reached the longest length that is kept."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class MicrophoneLost:
    """The microphone went away; what was heard so far ends in the middle."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class ListenRequested:
    """Push to talk: whatever comes now is an utterance. Given up after ``patience_ms`` without any voice."""

    at_ns: Nanoseconds
    patience_ms: float = 8_000.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was typed."""

    at_ns: Nanoseconds
    text: str
    aloud: bool


@dataclass(frozen=True, slots=True)
class SayRequested:
    """A text to read aloud; no question, no model. ``language`` None: the conversation's."""

    at_ns: Nanoseconds
    text: str
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The user wants silence."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class Transcribed:
    """The words of a turn's utterance; empty when there were none."""

    at_ns: Nanoseconds
    turn: TurnId
    text: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What has passed the speaker of a turn's answer so far, as written text (or what has been shown).

    The first one, at the first sample, may still be empty. Comes before any event that ends the answer.
    """

    at_ns: Nanoseconds
    turn: TurnId
    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A turn's answer is over: everything that was made of it has been heard."""

    at_ns: Nanoseconds
    turn: TurnId


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A stage of the turn failed; ``code`` is the message for the user."""

    at_ns: Nanoseconds
    turn: TurnId
    code: str


Event: TypeAlias = (
    SpeechStarted
    | Pause
    | UtteranceFull
    | MicrophoneLost
    | ListenRequested
    | Asked
    | SayRequested
    | StopRequested
    | Transcribed
    | Heard
    | Answered
    | TurnFailed
)
