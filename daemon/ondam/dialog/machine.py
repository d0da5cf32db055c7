"""The dialog machine: the only place that decides what happens next in a conversation.

``step`` is a pure function of the state and one event. It returns the new state and what is to be done;
events of a turn that is no longer current change nothing, so a late transcript or a late failure of a
cancelled turn can never make a second answer.

    Listening ──SpeechStarted──► Hearing ──pause is over──► Recognizing ──words──► Answering ──► Listening
                                                                          ╰─none──► Listening
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from ondam.dialog.actions import (
    Action,
    Cancel,
    EndTurn,
    Excuse,
    OpenUtterance,
    Outcome,
    Recognize,
    Respond,
    Say,
)
from ondam.dialog.endpointing import Endpointing
from ondam.dialog.events import (
    Answered,
    Asked,
    Event,
    Heard,
    ListenRequested,
    MicrophoneLost,
    Pause,
    SayRequested,
    SpeechStarted,
    StopRequested,
    Transcribed,
    TurnFailed,
    UtteranceFull,
)
from ondam.dialog.history import History
from ondam.types import TurnId


@dataclass(frozen=True, slots=True)
class Listening:
    """Nobody speaks."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """The user speaks. ``patience_ms``: how long an utterance opened by hand waits for its first voice."""

    turn: TurnId
    patience_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Recognizing:
    """The user has finished; the words are not known yet."""

    turn: TurnId


@dataclass(frozen=True, slots=True)
class Answering:
    """An answer is being made or played.

    ``question`` is None for a text that is only read aloud. ``heard`` is None until the first sample was
    heard. ``excuse`` is how the turn ends once the user has been told why there is no answer.
    """

    turn: TurnId
    question: str | None
    aloud: bool
    heard: str | None = None
    excuse: Outcome | None = None


FIRST_TURN = TurnId(1)

Phase: TypeAlias = Listening | Hearing | Recognizing | Answering


@dataclass(frozen=True, slots=True)
class State:
    """A conversation between two events."""

    endpointing: Endpointing
    history: History
    phase: Phase = Listening()
    next_turn: TurnId = FIRST_TURN


def step(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """What ``event`` does to the conversation: the state after it, and what is to be done now."""
    phase = state.phase
    match event:
        case SpeechStarted():
            return _speech_started(state)
        case Pause():
            if isinstance(phase, Hearing) and not event.voiced and event.silence_ms >= phase.patience_ms:
                return _over(state, phase.turn, "no_speech", cancel=True)
            if isinstance(phase, Hearing) and event.voiced and state.endpointing.finished(event):
                return replace(state, phase=Recognizing(phase.turn)), (Recognize(phase.turn),)
        case UtteranceFull():
            if isinstance(phase, Hearing):
                return replace(state, phase=Recognizing(phase.turn)), (Recognize(phase.turn),)
        case MicrophoneLost():
            # A sentence cut off by a fault is not what the user meant to say.
            if isinstance(phase, Hearing):
                return _over(state, phase.turn, "lost", cancel=True)
        case ListenRequested():
            state, actions = _silenced(state)
            state, turn = _new_turn(state)
            hearing = Hearing(turn, event.patience_ms)
            return replace(state, phase=hearing), (*actions, OpenUtterance(turn, by_hand=True))
        case Asked():
            state, actions = _silenced(state)
            state, turn = _new_turn(state)
            answering = Answering(turn, event.text, event.aloud)
            respond = Respond(turn, event.text, state.history.exchanges, event.aloud)
            return replace(state, phase=answering), (*actions, respond)
        case SayRequested():
            state, actions = _silenced(state)
            state, turn = _new_turn(state)
            return replace(state, phase=Answering(turn, None, aloud=True)), (
                *actions,
                Say(turn, event.text, event.language),
            )
        case StopRequested():
            return _silenced(state)
        case Transcribed():
            if isinstance(phase, Recognizing) and phase.turn == event.turn:
                return _transcribed(state, event)
        case Heard():
            if isinstance(phase, Answering) and phase.turn == event.turn:
                return replace(state, phase=replace(phase, heard=event.text)), ()
        case Answered():
            if isinstance(phase, Answering) and phase.turn == event.turn:
                return _answered(state, phase)
        case TurnFailed():
            return _failed(state, event)
        case _:
            assert_never(event)
    return state, ()


def _new_turn(state: State) -> tuple[State, TurnId]:
    return replace(state, next_turn=TurnId(state.next_turn + 1)), state.next_turn


def _over(
    state: State, turn: TurnId, outcome: Outcome, *, cancel: bool = False
) -> tuple[State, tuple[Action, ...]]:
    end = EndTurn(turn, outcome)
    return replace(state, phase=Listening()), (Cancel(turn), end) if cancel else (end,)


def _silenced(state: State) -> tuple[State, tuple[Action, ...]]:
    """Whatever turn is under way ends here; the history keeps what was heard of it."""
    match state.phase:
        case Listening():
            return state, ()
        case Hearing(turn=turn) | Recognizing(turn=turn):
            return _over(state, turn, "stopped", cancel=True)
        case Answering(turn=turn) as phase:
            return _over(_remembering(state, phase), turn, "stopped", cancel=True)
        case _:
            assert_never(state.phase)


def _speech_started(state: State) -> tuple[State, tuple[Action, ...]]:
    match state.phase:
        case Hearing():
            return state, ()
        case Answering(heard=str()):
            # Half-duplex: while the answer sounds, what the microphone hears may be the answer itself.
            return state, ()
        case Listening() | Recognizing() | Answering():
            # The user goes on before anything was answered: what they said first waits for no one.
            state, actions = _silenced(state)
            state, turn = _new_turn(state)
            return replace(state, phase=Hearing(turn)), (*actions, OpenUtterance(turn))
        case _:
            assert_never(state.phase)


def _transcribed(state: State, event: Transcribed) -> tuple[State, tuple[Action, ...]]:
    question = event.text.strip()
    if not question:
        return _over(state, event.turn, "no_speech")
    answering = Answering(event.turn, question, aloud=True)
    respond = Respond(event.turn, question, state.history.exchanges, aloud=True)
    return replace(state, phase=answering), (respond,)


def _remembering(state: State, phase: Answering) -> State:
    """History holds what was played of an answer; an excuse is no answer."""
    if phase.question is None or phase.excuse:
        return state
    return replace(state, history=state.history.with_exchange(phase.question, phase.heard or ""))


def _answered(state: State, phase: Answering) -> tuple[State, tuple[Action, ...]]:
    if phase.excuse:
        return _over(state, phase.turn, phase.excuse)
    if phase.question is None:
        return _over(state, phase.turn, "said")
    if not (phase.heard or "").strip():
        return _excusing(state, phase, "no_answer", "no_answer")
    return _over(_remembering(state, phase), phase.turn, "answered")


def _failed(state: State, event: TurnFailed) -> tuple[State, tuple[Action, ...]]:
    match state.phase:
        case Recognizing(turn) if turn == event.turn:
            return _excusing(state, Answering(turn, None, aloud=True), event.code, "failed")
        case Answering(turn=turn) as phase if turn == event.turn:
            if phase.excuse:  # The excuse itself could not be played; the fault is shown all the same.
                return _over(state, turn, phase.excuse)
            return _excusing(_remembering(state, phase), phase, event.code, "failed")
        case _:
            return state, ()


def _excusing(
    state: State, phase: Answering, code: str, outcome: Outcome
) -> tuple[State, tuple[Action, ...]]:
    return replace(state, phase=replace(phase, excuse=outcome)), (Excuse(phase.turn, code),)
