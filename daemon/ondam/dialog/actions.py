"""What the dialog machine wants done. The pipeline does it and answers with events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ondam.dialog.history import Exchange
from ondam.types import Language, TurnId

Outcome: TypeAlias = Literal[
    "answered",  # the answer was heard
    "said",  # a text was read aloud on request
    "no_speech",  # nothing was said, or nothing that has words
    "no_answer",  # the model had nothing that can be said
    "stopped",  # the user wanted silence, or went on speaking before the answer
    "failed",  # a stage failed; the user was told
    "lost",  # the microphone went away in the middle
]


@dataclass(frozen=True, slots=True)
class OpenUtterance:
    """Keep the user's voice from now on, with what came just before."""

    turn: TurnId
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Recognize:
    """The user has finished: close the utterance and turn it into words."""

    turn: TurnId


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer ``question``, clause by clause."""

    turn: TurnId
    question: str
    history: tuple[Exchange, ...]
    aloud: bool


@dataclass(frozen=True, slots=True)
class Say:
    """Read ``text`` aloud as this turn's answer."""

    turn: TurnId
    text: str
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class Excuse:
    """Tell the user why there is no answer: the message ``code``, once, aloud where the turn is aloud."""

    turn: TurnId
    code: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nothing of this turn may be heard or computed any more: close its sockets, drop its audio."""

    turn: TurnId


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn is over; write it down."""

    turn: TurnId
    outcome: Outcome


Action: TypeAlias = OpenUtterance | Recognize | Respond | Say | Excuse | Cancel | EndTurn
