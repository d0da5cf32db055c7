"""The dialog machine: the only place that decides what happens next in a conversation.

``step`` is a pure function of the state and one event. It returns the new state and what is to be done;
events of a draft that is no longer current change nothing, so a late transcript or a late failure of a
cancelled draft can never make a second answer. See docs/dialog.md for its table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from ondam.dialog.actions import (
    Action,
    Cancel,
    CloseUtterance,
    Commit,
    EndTurn,
    Excuse,
    JudgePause,
    OpenUtterance,
    Outcome,
    Recognize,
    ReopenUtterance,
    Respond,
    Say,
)
from ondam.dialog.endpointing import NO_DRAFTS, Drafting, Endpointing
from ondam.dialog.events import (
    Answered,
    Asked,
    Event,
    Failed,
    Heard,
    Judged,
    ListenRequested,
    MicrophoneLost,
    Pause,
    SayRequested,
    SpeechResumed,
    SpeechStarted,
    StopRequested,
    Transcribed,
    UtteranceFull,
)
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
    """None until they are known."""
    failure: str | None = None
    """Message code; the draft is kept so that the same pause does not fail again and again."""
    over: bool = False
    """Nothing more will come of it, and nothing of it can be said."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """The user speaks."""

    turn: TurnId
    patience_ms: float = 0.0
    """How long an utterance that was opened by hand waits for its first voice."""
    silence_ms: float = 0.0
    """Of the pause that is going on; 0 in the middle of speech."""
    pause: int = 0
    """Its number. A verdict on an earlier pause is worth nothing."""
    judging: bool = False
    complete: float | None = None
    draft: Draft | None = None
    made: int = 0
    """Drafts begun in this turn."""


@dataclass(frozen=True, slots=True)
class Recognizing:
    """The user has finished; the words are not known yet."""

    turn: TurnId
    draft: DraftId
    endpoint_ns: Nanoseconds | None
    """None for an endpoint that is not to be taken back."""
    made: int = 1


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


Phase: TypeAlias = Listening | Hearing | Recognizing | Answering
Step: TypeAlias = "tuple[State, tuple[Action, ...]]"

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


def step(state: State, event: Event) -> Step:
    """What ``event`` does to the conversation: the state after it, and what is to be done now."""
    match event:
        case SpeechStarted():
            return _speech_started(state, event.at_ns)
        case Pause() | SpeechResumed() | Judged() | UtteranceFull() | MicrophoneLost():
            return _hearing(state, state.phase, event) if isinstance(state.phase, Hearing) else (state, ())
        case ListenRequested():
            state, silenced = _silenced(state)
            state, turn = _new_turn(state)
            hearing = Hearing(turn, event.patience_ms)
            return replace(state, phase=hearing), (*silenced, OpenUtterance(turn, by_hand=True))
        case Asked():
            state, silenced = _silenced(state)
            state, turn = _new_turn(state)
            state, draft = _new_draft(state)
            answering = Answering(turn, draft, event.text, event.aloud)
            respond = Respond(turn, draft, event.text, state.history.exchanges, event.aloud)
            return replace(state, phase=answering), (*silenced, respond, Commit(turn, draft))
        case SayRequested():
            state, silenced = _silenced(state)
            state, turn = _new_turn(state)
            state, draft = _new_draft(state)
            say = Say(turn, draft, event.text, event.language)
            answering = Answering(turn, draft, None, aloud=True)
            return replace(state, phase=answering), (*silenced, say, Commit(turn, draft))
        case StopRequested():
            return _silenced(state)
        case Transcribed():
            return _transcribed(state, event)
        case Heard():
            if isinstance(state.phase, Answering) and state.phase.draft == event.draft:
                return replace(state, phase=replace(state.phase, heard=event.text)), ()
        case Answered():
            return _answered(state, event)
        case Failed():
            return _failed(state, event)
        case _:
            assert_never(event)
    return state, ()


def _new_turn(state: State) -> tuple[State, TurnId]:
    return replace(state, next_turn=TurnId(state.next_turn + 1)), state.next_turn


def _new_draft(state: State) -> tuple[State, DraftId]:
    return replace(state, next_draft=DraftId(state.next_draft + 1)), state.next_draft


def _silenced(state: State) -> Step:
    """Whatever turn is under way ends here; the history keeps what was heard of it."""
    listening = replace(state, phase=Listening())
    match state.phase:
        case Listening():
            return state, ()
        case Hearing() as phase:
            return _unheard(listening, phase, "stopped")
        case Recognizing(turn=turn, draft=draft):
            return listening, (Cancel(turn, draft), EndTurn(turn, draft, "stopped"))
        case Answering(turn=turn, draft=draft) as phase:
            remembering = replace(_remembering(state, phase), phase=Listening())
            return remembering, (Cancel(turn, draft), EndTurn(turn, draft, "stopped"))
        case _:
            assert_never(state.phase)


def _unheard(state: State, phase: Hearing, outcome: Outcome) -> Step:
    """The turn ends before its endpoint."""
    dropped = (Cancel(phase.turn, phase.draft.id),) if phase.draft else ()
    return replace(state, phase=Listening()), (
        *dropped,
        CloseUtterance(phase.turn),
        EndTurn(phase.turn, None, outcome),
    )


def _speech_started(state: State, at_ns: Nanoseconds) -> Step:
    phase = state.phase
    match phase:
        case Hearing():
            return state, ()
        case Answering(heard=str()):
            # Half-duplex: while the answer sounds, what the microphone hears may be the answer itself.
            return state, ()
        case Recognizing() | Answering() if _can_be_taken_back(state, phase, at_ns):
            # A false endpoint: both pieces are one utterance, one turn.
            hearing = Hearing(phase.turn, made=phase.made)
            return replace(state, phase=hearing), (
                Cancel(phase.turn, phase.draft),
                ReopenUtterance(phase.turn),
            )
        case Listening() | Recognizing() | Answering():
            state, silenced = _silenced(state)
            state, turn = _new_turn(state)
            return replace(state, phase=Hearing(turn)), (*silenced, OpenUtterance(turn))
        case _:
            assert_never(phase)


def _can_be_taken_back(state: State, phase: Recognizing | Answering, at_ns: Nanoseconds) -> bool:
    return phase.endpoint_ns is not None and (at_ns - phase.endpoint_ns) / 1e6 <= state.drafting.take_back_ms


def _hearing(
    state: State, phase: Hearing, event: Pause | SpeechResumed | Judged | UtteranceFull | MicrophoneLost
) -> Step:
    match event:
        case Pause():
            if not event.voiced:
                patient = event.silence_ms < phase.patience_ms
                return (state, ()) if patient else _unheard(state, phase, "no_speech")
            return _paused(state, replace(phase, silence_ms=event.silence_ms), event.at_ns)
        case SpeechResumed():
            dropped = (Cancel(phase.turn, phase.draft.id),) if phase.draft else ()
            going_on = Hearing(phase.turn, phase.patience_ms, pause=phase.pause + 1, made=phase.made)
            return replace(state, phase=going_on), dropped
        case Judged():
            if (event.turn, event.pause) != (phase.turn, phase.pause):
                return state, ()
            return _perhaps_finished(state, replace(phase, complete=event.complete), event.at_ns)
        case UtteranceFull():
            # Voice that goes on is more of the same noise: this endpoint is not taken back.
            return _endpoint(state, phase, event.at_ns, final=True)
        case MicrophoneLost():
            # A sentence cut off by a fault is not what the user meant to say.
            return _unheard(state, phase, "lost")
        case _:
            assert_never(event)


def _paused(state: State, phase: Hearing, at_ns: Nanoseconds) -> Step:
    begun: tuple[Action, ...] = ()
    if phase.draft is None and state.drafting.begins(phase.silence_ms, phase.made):
        state, draft = _new_draft(state)
        phase = replace(phase, draft=Draft(draft), made=phase.made + 1)
        begun = (Recognize(phase.turn, draft),)
    if state.endpointing.judges and not phase.judging:
        phase = replace(phase, judging=True)
        begun = (*begun, JudgePause(phase.turn, phase.pause))
    state, actions = _perhaps_finished(state, phase, at_ns)
    return state, (*begun, *actions)


def _perhaps_finished(state: State, phase: Hearing, at_ns: Nanoseconds) -> Step:
    if state.endpointing.finished(phase.silence_ms, phase.complete):
        return _endpoint(state, phase, at_ns)
    return replace(state, phase=phase), ()


def _endpoint(state: State, phase: Hearing, at_ns: Nanoseconds, *, final: bool = False) -> Step:
    """The user has finished. A draft becomes the answer; without one, recognition begins now."""
    turn, draft = phase.turn, phase.draft
    endpoint_ns = None if final else at_ns
    if draft is None:
        state, number = _new_draft(state)
        recognizing = Recognizing(turn, number, endpoint_ns, phase.made + 1)
        begun = (Recognize(turn, number), CloseUtterance(turn), Commit(turn, number))
        return replace(state, phase=recognizing), begun
    closed = (CloseUtterance(turn), Commit(turn, draft.id))
    recognizing = Recognizing(turn, draft.id, endpoint_ns, phase.made)
    state = replace(state, phase=recognizing)
    if draft.failure is not None and draft.words is None:
        state, actions = _failed(state, Failed(at_ns, draft.id, draft.failure))
        return state, (*closed, *actions)
    if draft.words is None:
        return state, closed
    if not draft.words:
        state, actions = _no_words(state, recognizing)
        return state, (*closed, *actions)
    answering = Answering(turn, draft.id, draft.words, True, endpoint_ns=endpoint_ns, made=phase.made)
    state, actions = replace(state, phase=answering), ()
    if draft.failure is not None:
        state, actions = _failed(state, Failed(at_ns, draft.id, draft.failure))
    elif draft.over:
        state, actions = _answered(state, Answered(at_ns, draft.id))
    return state, (*closed, *actions)


def _no_words(state: State, phase: Recognizing) -> Step:
    return replace(state, phase=Listening()), (EndTurn(phase.turn, phase.draft, "no_speech"),)


def _transcribed(state: State, event: Transcribed) -> Step:
    words = event.text.strip()
    match state.phase:
        case Hearing(draft=Draft(id=draft)) as phase if phase.draft and draft == event.draft:
            state = replace(state, phase=replace(phase, draft=replace(phase.draft, words=words)))
            if not words:
                return state, ()
            return state, (Respond(phase.turn, draft, words, state.history.exchanges, aloud=True),)
        case Recognizing(draft=draft) as recognizing if draft == event.draft:
            if not words:
                return _no_words(state, recognizing)
            answering = Answering(
                recognizing.turn,
                draft,
                words,
                aloud=True,
                endpoint_ns=recognizing.endpoint_ns,
                made=recognizing.made,
            )
            respond = Respond(recognizing.turn, draft, words, state.history.exchanges, aloud=True)
            return replace(state, phase=answering), (respond,)
        case _:
            return state, ()


def _remembering(state: State, phase: Answering) -> State:
    """History holds what was played of an answer; an excuse is no answer."""
    if phase.question is None or phase.excuse:
        return state
    return replace(state, history=state.history.with_exchange(phase.question, phase.heard or ""))


def _answered(state: State, event: Answered) -> Step:
    match state.phase:
        case Hearing(draft=Draft(id=draft)) as phase if phase.draft and draft == event.draft:
            return replace(state, phase=replace(phase, draft=replace(phase.draft, over=True))), ()
        case Answering(turn=turn, draft=draft) as answering if draft == event.draft:
            if answering.excuse:
                return replace(state, phase=Listening()), (EndTurn(turn, draft, answering.excuse),)
            if event.spoken and answering.heard is None:
                return replace(state, phase=Listening()), (EndTurn(turn, draft, "unheard"),)
            if answering.question is None:
                return replace(state, phase=Listening()), (EndTurn(turn, draft, "said"),)
            if not (answering.heard or "").strip():
                return _excusing(state, answering, "no_answer", "no_answer")
            state = replace(_remembering(state, answering), phase=Listening())
            return state, (EndTurn(turn, draft, "answered"),)
        case _:
            return state, ()


def _failed(state: State, event: Failed) -> Step:
    match state.phase:
        case Hearing(draft=Draft(id=draft)) as phase if phase.draft and draft == event.draft:
            # Perhaps the user goes on; if not, the endpoint will tell.
            failed = replace(phase.draft, failure=event.code)
            return replace(state, phase=replace(phase, draft=failed)), ()
        case Recognizing(turn=turn, draft=draft) as recognizing if draft == event.draft:
            answering = Answering(turn, draft, None, aloud=True, endpoint_ns=recognizing.endpoint_ns)
            return _excusing(state, answering, event.code, "failed")
        case Answering(turn=turn, draft=draft) as answering if draft == event.draft:
            if answering.excuse:  # The excuse itself could not be played; the fault is shown all the same.
                return replace(state, phase=Listening()), (EndTurn(turn, draft, answering.excuse),)
            return _excusing(_remembering(state, answering), answering, event.code, "failed")
        case _:
            return state, ()


def _excusing(state: State, phase: Answering, code: str, outcome: Outcome) -> Step:
    return replace(state, phase=replace(phase, excuse=outcome)), (Excuse(phase.turn, phase.draft, code),)
