"""What a conversation can be in the middle of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ondam.dialog.actions import Outcome
from ondam.dialog.attention import OPEN, Attention
from ondam.dialog.endpointing import NO_DRAFTS, Drafting, Endpointing
from ondam.dialog.history import History
from ondam.types import DraftId, Nanoseconds, TurnId


@dataclass(frozen=True, slots=True)
class Listening:
    """Nobody speaks."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer that was begun in a pause, before it is certain that the user has finished."""

    id: DraftId
    words: str | None = None
    """What it answers: None until that is known, empty when there is nothing to answer."""
    called: bool = False
    """The words were a bare call."""
    unmeant: bool = False
    """There were words, meant for somebody else."""
    ready: bool = False
    """Its first sound could leave at once."""
    failure: str | None = None
    """Message code; the draft is kept so that the same pause does not fail again and again."""
    over: bool = False
    """Nothing more will come of it, and nothing of it can be said."""


@dataclass(frozen=True, slots=True)
class Answering:
    """An answer is being made or played.

    ``question`` is None for a text that is only read aloud. ``heard`` is None until the first sample was
    heard. ``excuse`` is how the turn ends once the user has been told why there is no answer.
    ``endpoint_ns`` is None where nothing was spoken, or the endpoint is not to be taken back.
    """

    turn: TurnId
    draft: DraftId
    question: str | None
    aloud: bool
    heard: str | None = None
    excuse: Outcome | None = None
    endpoint_ns: Nanoseconds | None = None
    made: int = 1
    to_us: bool = False
    done: bool = False
    """It came to its end while it was held."""
    handed: int = 0
    """As in ``Hearing``."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """The user speaks."""

    turn: TurnId
    patience_ms: float = 0.0
    """How long an utterance that was opened by hand waits for its first voice."""
    pressed: bool = False
    """A button is held down: only letting go ends the utterance."""
    to_us: bool = False
    """It is meant for us without a name."""
    silence_ms: float = 0.0
    """Of the pause that is going on; 0 in the middle of speech."""
    pause: int = 0
    """Its number. A verdict on an earlier pause is worth nothing."""
    judging: bool = False
    complete: float | None = None
    draft: Draft | None = None
    made: int = 0
    """Drafts begun in this turn."""
    over: Answering | None = None
    """The answer over which the user speaks. It is held until it is certain that they mean it. Of this very
    turn where its endpoint may have been false."""
    taken_back: bool = False
    """An endpoint was: what was said since may be the wish for silence."""
    first: Answering | None = None
    """The answer to what was said before that, ended by a voice over it. Where nothing more comes of the turn
    what was heard of it stays its answer."""
    handed: int = 0
    """Pieces of the utterance that were handed on before its end."""


@dataclass(frozen=True, slots=True)
class Recognizing:
    """The user has finished; the words are not known yet."""

    turn: TurnId
    draft: DraftId
    endpoint_ns: Nanoseconds | None
    """None for an endpoint that is not to be taken back."""
    made: int = 1
    to_us: bool = False
    over: Answering | None = None
    """As in ``Hearing``."""
    first: Answering | None = None
    """As in ``Hearing``."""
    handed: int = 0
    """As in ``Hearing``."""


Phase: TypeAlias = Listening | Hearing | Recognizing | Answering

MOST_PIECES = 12
"""Handed on of one utterance: an hour, as shipped. Who goes on then without a pause is no user."""

FIRST_TURN = TurnId(1)
FIRST_DRAFT = DraftId(1)


@dataclass(frozen=True, slots=True)
class State:
    """A conversation between two events."""

    endpointing: Endpointing
    history: History
    drafting: Drafting = NO_DRAFTS
    phase: Phase = Listening()
    next_turn: TurnId = FIRST_TURN
    next_draft: DraftId = FIRST_DRAFT
    attention: Attention = OPEN
    called_until_ns: Nanoseconds | None = None
    """What begins before it follows a bare call, and needs no name."""
