"""What the dialog machine wants done. The pipeline does it and answers with events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ondam.dialog.history import Exchange
from ondam.types import DraftId, Language, TurnId

Outcome: TypeAlias = Literal[
    "answered",  # the answer was heard
    "said",  # a text was read aloud on request
    "no_speech",  # nothing was said, or nothing that has words
    "no_answer",  # the model had nothing that can be said
    "stopped",  # the user wanted silence, or went on speaking before the answer
    "interrupted",  # the user spoke over the answer
    "not_addressed",  # what was said was not meant for us
    "unheard",  # an answer was spoken, but the speaker was gone
    "failed",  # a stage failed; the user was told
    "lost",  # the microphone went away in the middle
]


@dataclass(frozen=True, slots=True)
class OpenUtterance:
    """Keep the user's voice from now on, with what came just before."""

    turn: TurnId
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class ReopenUtterance:
    """The user had not finished: go on with the utterance that was closed, nothing lost in between."""

    turn: TurnId


@dataclass(frozen=True, slots=True)
class CloseUtterance:
    """Nothing more belongs to this utterance. Not ``meant``: it adds nothing to what the user said."""

    turn: TurnId
    meant: bool = True


@dataclass(frozen=True, slots=True)
class HandOn:
    """The utterance is longer than what is kept in one: turn all but its end into words, and go on with that.

    Answers with ``PieceHeard``. Its words stand before those of every later ``Recognize`` of the turn.
    """

    turn: TurnId


@dataclass(frozen=True, slots=True)
class JudgePause:
    """Say how complete the utterance sounds at its pause number ``pause``."""

    turn: TurnId
    pause: int


@dataclass(frozen=True, slots=True)
class Recognize:
    """Turn what has been said so far into words, for this draft. Its audio is held back until ``Commit``.

    ``added``: an endpoint was taken back. Say also what was said after it, where that may stand for itself.
    """

    turn: TurnId
    draft: DraftId
    added: bool = False


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer ``question``, clause by clause. Held back until ``Commit``."""

    turn: TurnId
    draft: DraftId
    question: str
    history: tuple[Exchange, ...]
    aloud: bool


@dataclass(frozen=True, slots=True)
class Say:
    """Read ``text`` aloud as this turn's answer. Held back until ``Commit``."""

    turn: TurnId
    draft: DraftId
    text: str
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The user called and said no more: tell them that they are listened to. Held back until ``Commit``."""

    turn: TurnId
    draft: DraftId


@dataclass(frozen=True, slots=True)
class Duck:
    """Somebody may be speaking over this answer: play it quietly."""

    turn: TurnId
    draft: DraftId


@dataclass(frozen=True, slots=True)
class Hold:
    """Somebody speaks over this answer: silence, from which ``Resume`` goes on and ``Cancel`` never does."""

    turn: TurnId
    draft: DraftId


@dataclass(frozen=True, slots=True)
class Resume:
    """It was nothing: the answer goes on where it stopped, as loud as before."""

    turn: TurnId
    draft: DraftId


@dataclass(frozen=True, slots=True)
class Commit:
    """The draft is the turn's answer: let its audio out."""

    turn: TurnId
    draft: DraftId


@dataclass(frozen=True, slots=True)
class Excuse:
    """Tell the user why there is no answer: the message ``code``, once, aloud where the turn is aloud."""

    turn: TurnId
    draft: DraftId
    code: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nothing of this draft may be heard or computed any more: close its sockets, drop its audio."""

    turn: TurnId
    draft: DraftId


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn is over; write it down. ``draft``: the one that was its answer, if it came to that."""

    turn: TurnId
    draft: DraftId | None
    outcome: Outcome


Action: TypeAlias = (
    OpenUtterance
    | ReopenUtterance
    | CloseUtterance
    | HandOn
    | JudgePause
    | Recognize
    | Respond
    | Say
    | Acknowledge
    | Duck
    | Hold
    | Resume
    | Commit
    | Excuse
    | Cancel
    | EndTurn
)
