"""What can happen in a conversation. Every event carries its own time; nothing here reads a clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ondam.types import DraftId, Language, Mode, Nanoseconds, TurnId


@dataclass(frozen=True, slots=True)
class VoiceNoticed:
    """Something like a voice, too short yet to be meant."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class EnginesSwitched:
    """Other engines serve now: what is not an answer yet is begun anew on them."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class VoiceFaded:
    """What was noticed is over before it was long enough to be meant."""

    at_ns: Nanoseconds


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
class VoiceFell:
    """The voice has just become much quieter: the first sign of a pause, often a wrong one."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The user goes on after a pause, in the same utterance."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class SpeechSure:
    """The utterance holds so much voice by now that it is speech, whatever its words: no cough, no "mhm"."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class Judged:
    """How complete the utterance sounds at its pause number ``pause``: 0 to 1."""

    at_ns: Nanoseconds
    turn: TurnId
    pause: int
    complete: float


@dataclass(frozen=True, slots=True)
class UtteranceFull:
    """The utterance reached the longest length that is kept in one piece."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class PieceHeard:
    """The words of a piece of a long utterance, handed on before its end; empty when there were none."""

    at_ns: Nanoseconds
    turn: TurnId
    text: str


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
class Pressed:
    """The talk button went down: everything until ``Released`` is one utterance."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class Released:
    """The talk button was let go: the user has finished."""

    at_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class ModeSet:
    """From now on the microphone counts as ``mode`` says."""

    at_ns: Nanoseconds
    mode: Mode


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
    """The words that a draft answers; empty when there were none.

    ``added``: those of them that were said after an endpoint that was taken back, recognized for themselves.
    """

    at_ns: Nanoseconds
    draft: DraftId
    text: str
    added: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """The first sound of a draft that is held back has been made."""

    at_ns: Nanoseconds
    draft: DraftId


@dataclass(frozen=True, slots=True)
class Heard:
    """What has passed the speaker of an answer so far, as written text (or what has been shown).

    The first one, at the first sample, may still be empty. Comes before any event that ends the answer.
    """

    at_ns: Nanoseconds
    draft: DraftId
    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer is over: everything that was made of it has been heard, or never will be.

    ``spoken``: sound was made for it.
    """

    at_ns: Nanoseconds
    draft: DraftId
    spoken: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A stage of an answer failed; ``code`` is the message for the user."""

    at_ns: Nanoseconds
    draft: DraftId
    code: str


Event: TypeAlias = (
    VoiceNoticed
    | EnginesSwitched
    | VoiceFaded
    | SpeechStarted
    | Pause
    | VoiceFell
    | SpeechResumed
    | SpeechSure
    | Judged
    | UtteranceFull
    | PieceHeard
    | MicrophoneLost
    | ListenRequested
    | Pressed
    | Released
    | ModeSet
    | Asked
    | SayRequested
    | StopRequested
    | Transcribed
    | Ready
    | Heard
    | Answered
    | Failed
)
