"""Whose turn is it? A pure function from a state and an event to the next state and what is to be done.

One answer at a time. An answer is begun as a draft in the user's pauses and becomes the answer at the
endpoint; a user who goes on drops it, and one who goes on right after the endpoint takes that back. A voice
over an answer holds it until it is certain whether it is meant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, assert_never

from ondam.dialog.actions import (
    Acknowledge,
    Action,
    Cancel,
    CloseUtterance,
    Commit,
    Duck,
    EndTurn,
    Excuse,
    HandOn,
    Hold,
    JudgePause,
    OpenUtterance,
    Outcome,
    Recognize,
    ReopenUtterance,
    Respond,
    Resume,
    Say,
)
from ondam.dialog.events import (
    Answered,
    Asked,
    EnginesSwitched,
    Event,
    Failed,
    Heard,
    Judged,
    ListenRequested,
    MicrophoneLost,
    ModeSet,
    Pause,
    PieceHeard,
    Pressed,
    Ready,
    Released,
    SayRequested,
    SpeechResumed,
    SpeechStarted,
    SpeechSure,
    StopRequested,
    Transcribed,
    UtteranceFull,
    VoiceFaded,
    VoiceFell,
    VoiceNoticed,
)
from ondam.dialog.phases import (
    MOST_PIECES,
    Answering,
    Draft,
    Hearing,
    Listening,
    Phase,
    Recognizing,
    State,
)
from ondam.types import DraftId, Nanoseconds, TurnId

__all__ = ["Answering", "Draft", "Hearing", "Listening", "Phase", "Recognizing", "State", "step"]

Step: TypeAlias = "tuple[State, tuple[Action, ...]]"


def step(state: State, event: Event) -> Step:
    """What ``event`` does to the conversation: the state after it, and what is to be done now."""
    match event:
        case VoiceNoticed() | VoiceFaded():
            return _noticed(state, event)
        case SpeechStarted():
            return _speech_started(state, event.at_ns) if state.attention.hears else (state, ())
        case (
            Pause()
            | VoiceFell()
            | SpeechResumed()
            | SpeechSure()
            | Judged()
            | UtteranceFull()
            | PieceHeard()
            | MicrophoneLost()
        ):
            return _hearing(state, state.phase, event) if isinstance(state.phase, Hearing) else (state, ())
        case Released():
            if isinstance(state.phase, Hearing) and state.phase.pressed:
                # Who lets go in their last syllable, where a voice alone counts too, has that taken back.
                return _endpoint(state, state.phase, event.at_ns)
            return state, ()
        case ListenRequested() | Pressed():
            return _by_hand(state, event)
        case ModeSet():
            return _mode_set(state, event)
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
        case EnginesSwitched():
            if not isinstance(state.phase, Hearing) or state.phase.draft is None:
                return state, ()
            # It was not the user who made it useless: it does not count. The next pause begins another.
            made = max(0, state.phase.made - 1)
            return replace(state, phase=replace(state.phase, draft=None, made=made)), _dropped(state.phase)
        case Transcribed():
            return _transcribed(state, event)
        case Ready():
            return _ready(state, event)
        case Heard() | Answered() | Failed():
            return _of_an_answer(state, event)
        case _:
            assert_never(event)


def _new_turn(state: State) -> tuple[State, TurnId]:
    return replace(state, next_turn=TurnId(state.next_turn + 1)), state.next_turn


def _new_draft(state: State) -> tuple[State, DraftId]:
    return replace(state, next_draft=DraftId(state.next_draft + 1)), state.next_draft


def _silenced(state: State) -> Step:
    """Whatever turn is under way ends here; the history keeps what was heard of it."""
    match state.phase:
        case Listening():
            return state, ()
        case Hearing() as phase:
            begun = _begun_in(phase)
            state = _remembering(state, begun) if begun else state
            state, stopped = _stopped_over(state, phase)
            state, actions = _unheard(state, phase, "stopped", begun.draft if begun else None)
            return state, (*stopped, *actions)
        case Recognizing(turn=turn, draft=draft) as phase:
            begun = _begun_in(phase)
            state = _remembering(state, begun) if begun else state
            state, stopped = _stopped_over(state, phase)
            listening = replace(state, phase=Listening())
            told = begun.draft if begun else draft
            return listening, (*stopped, Cancel(turn, draft), EndTurn(turn, told, "stopped"))
        case Answering(turn=turn, draft=draft) as phase:
            remembering = replace(_remembering(state, phase), phase=Listening())
            return remembering, (Cancel(turn, draft), EndTurn(turn, draft, "stopped"))
        case _:
            assert_never(state.phase)


def _begun_in(phase: Hearing | Recognizing) -> Answering | None:
    """The answer of this very turn, where one is held or was ended by the voice over it."""
    return phase.over if phase.over and phase.over.turn == phase.turn else phase.first


def _unheard(state: State, phase: Hearing, outcome: Outcome, told: DraftId | None = None) -> Step:
    """The turn ends before its endpoint. ``told``: the draft that something was heard of."""
    return replace(state, phase=Listening()), (
        *_dropped(phase),
        CloseUtterance(phase.turn),
        EndTurn(phase.turn, told, outcome),
    )


def _nothing_came(state: State, phase: Hearing, outcome: Outcome) -> Step:
    """The same; an answer over which it was goes on."""
    return _resumed_over(state, phase, outcome) if phase.over else _unheard(state, phase, outcome)


def _dropped(phase: Hearing) -> tuple[Action, ...]:
    return (Cancel(phase.turn, phase.draft.id),) if phase.draft else ()


# The user's voice.


def _noticed(state: State, event: VoiceNoticed | VoiceFaded) -> Step:
    phase = state.phase
    if not (isinstance(phase, Answering) and phase.heard is not None and state.attention.hears):
        return state, ()
    done = Duck if isinstance(event, VoiceNoticed) else Resume
    return state, (done(phase.turn, phase.draft),)


def _speech_started(state: State, at_ns: Nanoseconds) -> Step:
    phase = state.phase
    to_us = state.called_until_ns is not None and at_ns <= state.called_until_ns
    match phase:
        case Hearing() | Recognizing(endpoint_ns=None):
            # Of an utterance that was ended by its length this is more of the same.
            return state, ()
        case Recognizing() | Answering() if _unheard_yet(state, phase) and _can_be_taken_back(
            state, phase, at_ns
        ):
            # A false endpoint: both pieces are one utterance, one turn.
            over = phase.over if isinstance(phase, Recognizing) else None
            first = phase.first if isinstance(phase, Recognizing) else None
            hearing = _again(phase, over, first)
            return replace(state, phase=hearing), (
                Cancel(phase.turn, phase.draft),
                ReopenUtterance(phase.turn),
            )
        case Answering():
            # Also before it is heard: the voice may be a cough, or meant for somebody else.
            quieter = Duck if state.attention.picky else Hold
            held = quieter(phase.turn, phase.draft)
            if _can_be_taken_back(state, phase, at_ns):
                return replace(state, phase=_again(phase, phase)), (held, ReopenUtterance(phase.turn))
            state, turn = _new_turn(state)
            return replace(state, phase=Hearing(turn, to_us=to_us, over=phase)), (held, OpenUtterance(turn))
        case Listening() | Recognizing():
            state, silenced = _silenced(state)
            state, turn = _new_turn(state)
            return replace(state, phase=Hearing(turn, to_us=to_us)), (*silenced, OpenUtterance(turn))
        case _:
            assert_never(phase)


def _again(phase: Recognizing | Answering, over: Answering | None, first: Answering | None = None) -> Hearing:
    """The user goes on with the utterance that was closed."""
    return Hearing(
        phase.turn,
        to_us=phase.to_us,
        made=phase.made,
        over=over,
        taken_back=True,
        first=first,
        handed=phase.handed,
    )


def _unheard_yet(state: State, phase: Recognizing | Answering) -> bool:
    """Nothing would be lost if it were begun anew, and whoever speaks now goes on."""
    return isinstance(phase, Recognizing) or (phase.heard is None and not state.attention.picky)


def _can_be_taken_back(state: State, phase: Recognizing | Answering, at_ns: Nanoseconds) -> bool:
    return phase.endpoint_ns is not None and (at_ns - phase.endpoint_ns) / 1e6 <= state.drafting.take_back_ms


def _by_hand(state: State, event: ListenRequested | Pressed) -> Step:
    pressed = isinstance(event, Pressed)
    if isinstance(state.phase, Hearing):
        # Who was quicker than their finger has begun already.
        state, stopped = _stopped_over(state, state.phase)
        phase = state.phase
        assert isinstance(phase, Hearing)
        if phase.draft and phase.draft.unmeant:  # its words count after all
            stopped, phase = (*stopped, *_dropped(phase)), replace(phase, draft=None)
        return replace(state, phase=replace(phase, pressed=phase.pressed or pressed, to_us=True)), stopped
    state, silenced = _silenced(state)
    state, turn = _new_turn(state)
    patience_ms = float("inf") if isinstance(event, Pressed) else event.patience_ms
    hearing = Hearing(turn, patience_ms, pressed, to_us=True)
    return replace(state, phase=hearing), (*silenced, OpenUtterance(turn, by_hand=True))


def _mode_set(state: State, event: ModeSet) -> Step:
    attention = replace(state.attention, mode=event.mode)
    state = replace(state, attention=attention, called_until_ns=None)
    phase = state.phase
    if not isinstance(phase, Hearing) or attention.hears or (event.mode == "push" and phase.to_us):
        return state, ()
    return _nothing_came(state, phase, "stopped")


def _hearing(
    state: State,
    phase: Hearing,
    event: Pause
    | VoiceFell
    | SpeechResumed
    | SpeechSure
    | Judged
    | UtteranceFull
    | PieceHeard
    | MicrophoneLost,
) -> Step:
    match event:
        case Pause():
            if not event.voiced:
                patient = event.silence_ms < phase.patience_ms
                return (state, ()) if patient else _nothing_came(state, phase, "no_speech")
            return _paused(state, replace(phase, silence_ms=event.silence_ms), event.at_ns)
        case VoiceFell():
            if not state.drafting.at_fall or phase.draft or phase.made >= state.drafting.most:
                return state, ()
            return _with_draft(state, phase)
        case SpeechResumed():
            going_on = replace(
                phase, silence_ms=0.0, pause=phase.pause + 1, judging=False, complete=None, draft=None
            )
            return replace(state, phase=going_on), _dropped(phase)
        case SpeechSure():
            if state.attention.picky and not phase.to_us:
                return state, ()
            return _stopped_over(state, phase)
        case Judged():
            if (event.turn, event.pause) != (phase.turn, phase.pause):
                return state, ()
            return _perhaps_finished(state, replace(phase, complete=event.complete), event.at_ns)
        case UtteranceFull():
            if phase.silence_ms > 0 and not phase.pressed:
                return state, ()  # it goes on or ends within moments: nothing is cut off from its end
            if phase.handed >= MOST_PIECES:
                # Voice that goes on is more of the same: this endpoint is not taken back.
                return _endpoint(state, phase, event.at_ns, final=True)
            handed = replace(phase, handed=phase.handed + 1)
            return replace(state, phase=handed), (HandOn(phase.turn),)
        case PieceHeard():
            if event.turn != phase.turn or event.text or phase.pressed or phase.silence_ms > 0:
                return state, ()  # in a pause it is no noise that never ends: what came after it may be words
            # Noise that never ends. What was said before it is answered.
            if phase.handed > 1:
                return _endpoint(state, phase, event.at_ns, final=True)
            return _nothing_came(state, phase, "no_speech")
        case MicrophoneLost():
            # A sentence cut off by a fault is not what the user meant to say.
            return _nothing_came(state, phase, "lost")
        case _:
            assert_never(event)


def _paused(state: State, phase: Hearing, at_ns: Nanoseconds) -> Step:
    begun: tuple[Action, ...] = ()
    if phase.draft is None and state.drafting.begins(phase.silence_ms, phase.made):
        state, begun = _with_draft(state, phase)
        assert isinstance(state.phase, Hearing)
        phase = state.phase
    if state.endpointing.judges and not phase.judging:
        phase = replace(phase, judging=True)
        begun = (*begun, JudgePause(phase.turn, phase.pause))
    state, actions = _perhaps_finished(state, phase, at_ns)
    return state, (*begun, *actions)


def _ready(state: State, event: Ready) -> Step:
    phase = state.phase
    if not (isinstance(phase, Hearing) and phase.draft and phase.draft.id == event.draft):
        return state, ()
    return _perhaps_finished(state, replace(phase, draft=replace(phase.draft, ready=True)), event.at_ns)


def _with_draft(state: State, phase: Hearing) -> Step:
    state, draft = _new_draft(state)
    drafting = replace(phase, draft=Draft(draft), made=phase.made + 1)
    return replace(state, phase=drafting), (Recognize(phase.turn, draft, phase.taken_back),)


def _perhaps_finished(state: State, phase: Hearing, at_ns: Nanoseconds) -> Step:
    draft = phase.draft
    # Where no answer is in the making, it begins at the endpoint and not before.
    ready = draft is None or draft.ready or draft.over or draft.failure is not None or draft.words == ""
    if not phase.pressed and state.endpointing.finished(phase.silence_ms, phase.complete, ready=ready):
        return _endpoint(state, phase, at_ns)
    return replace(state, phase=phase), ()


def _endpoint(state: State, phase: Hearing, at_ns: Nanoseconds, *, final: bool = False) -> Step:
    """The user has finished. A draft becomes the answer; without one, recognition begins now."""
    turn, draft = phase.turn, phase.draft
    endpoint_ns = None if final else at_ns
    if draft is None:
        state, number = _new_draft(state)
        recognizing = Recognizing(
            turn,
            number,
            endpoint_ns,
            phase.made + 1,
            phase.to_us,
            phase.over,
            phase.first,
            phase.handed,
        )
        begun = (Recognize(turn, number, phase.taken_back), CloseUtterance(turn))
        let_out = () if phase.over else (Commit(turn, number),)
        return replace(state, phase=recognizing), (*begun, *let_out)
    recognizing = Recognizing(
        turn, draft.id, endpoint_ns, phase.made, phase.to_us, phase.over, phase.first, phase.handed
    )
    state = replace(state, phase=recognizing)
    closed: tuple[Action, ...] = (CloseUtterance(turn),)
    if phase.over is None:
        closed = (*closed, Commit(turn, draft.id))
    if draft.failure is not None and draft.words is None:
        state, actions = _failed(state, Failed(at_ns, draft.id, draft.failure))
        return state, (*closed, *actions)
    if draft.words is None:
        return state, closed
    if not draft.words:
        return replace(state, phase=Listening()), (
            Cancel(turn, draft.id),
            CloseUtterance(turn),
            EndTurn(turn, draft.id, "not_addressed" if draft.unmeant else "no_speech"),
        )
    answering = _answering(recognizing, None if draft.called else draft.words)
    state, actions = replace(_called(state, draft, at_ns), phase=answering), ()
    if draft.failure is not None:
        state, actions = _failed(state, Failed(at_ns, draft.id, draft.failure))
    elif draft.over:
        state, actions = _of_an_answer(state, Answered(at_ns, draft.id))
    return state, (*closed, *actions)


def _answering(phase: Recognizing, question: str | None) -> Answering:
    return Answering(
        phase.turn,
        phase.draft,
        question,
        aloud=True,
        endpoint_ns=phase.endpoint_ns,
        made=phase.made,
        to_us=phase.to_us,
        handed=phase.handed,
    )


def _called(state: State, draft: Draft, at_ns: Nanoseconds) -> State:
    """After a bare call what follows needs no name; anything else that was meant for us ends that."""
    until_ns = at_ns + round(state.attention.called_ms * 1e6) if draft.called else None
    return replace(state, called_until_ns=until_ns)


# A voice over an answer.


def _stopped_over(state: State, phase: Hearing | Recognizing) -> Step:
    """It is meant: nothing more of the answer is heard, and history keeps what was."""
    over = phase.over
    if over is None:
        return state, ()
    if over.turn == phase.turn:
        state = replace(state, phase=replace(phase, over=None, first=over))
        return state, (Cancel(over.turn, over.draft),)
    state = replace(state, phase=replace(phase, over=None))
    outcome = over.excuse or "interrupted"
    return _remembering(state, over), (
        Cancel(over.turn, over.draft),
        EndTurn(over.turn, over.draft, outcome),
    )


def _resumed_over(state: State, phase: Hearing | Recognizing, outcome: Outcome) -> Step:
    """It was nothing: the answer goes on where it stopped."""
    over = phase.over
    assert over is not None
    draft = phase.draft.id if isinstance(phase, Hearing) and phase.draft else None
    if isinstance(phase, Recognizing):
        draft = phase.draft
    actions: tuple[Action, ...] = (Cancel(phase.turn, draft),) if draft is not None else ()
    if isinstance(phase, Hearing):
        actions = (*actions, CloseUtterance(phase.turn, meant=over.turn != phase.turn))
    if over.turn != phase.turn:
        actions = (*actions, EndTurn(phase.turn, None, outcome))
    if over.done:
        ended = over.excuse or ("said" if over.question is None else "answered")
        state = replace(_remembering(state, over), phase=Listening())
        return state, (*actions, EndTurn(over.turn, over.draft, ended))
    return replace(state, phase=over), (*actions, Resume(over.turn, over.draft))


def _means_it(state: State, over: Answering, turn: TurnId, question: str | None) -> bool:
    """Whether these words, said over an answer, are meant."""
    if question is None or not state.attention.interrupts(question):
        return False
    # With the same words as before nothing was added to the question, or the call, that is being answered.
    return over.turn != turn or (question or None) != over.question


def _listens(state: State, over: Answering, event: Transcribed) -> bool:
    """Whether what was added to the question, over the beginning of its answer, is a listener's "mhm"."""
    return over.heard is not None and state.attention.listens(event.added)


# What comes of it.


def _transcribed(state: State, event: Transcribed) -> Step:
    match state.phase:
        case Hearing(draft=Draft(id=draft)) as phase if draft == event.draft:
            return _drafted(state, phase, event)
        case Recognizing(draft=draft) as recognizing if draft == event.draft:
            return _recognized(state, recognizing, event)
        case _:
            return state, ()


def _drafted(state: State, phase: Hearing, event: Transcribed) -> Step:
    """The words are known before it is certain that the user has finished."""
    assert phase.draft is not None
    drafted = phase.draft
    question = state.attention.question(event.text, to_us=phase.to_us)
    stopped: tuple[Action, ...] = ()
    if state.attention.stops(event.added):
        return _silenced(state)
    if phase.over is not None:
        if not _means_it(state, phase.over, phase.turn, question) or _listens(state, phase.over, event):
            return _resumed_over(state, phase, _why_not(event, question))
        if question is not None and state.attention.dismisses(question):
            return _silenced(state)
        state, stopped = _stopped_over(state, phase)
        assert isinstance(state.phase, Hearing)
        phase = state.phase
    draft = replace(
        drafted,
        words=event.text.strip() if question == "" else question or "",
        called=question == "",
        unmeant=question is None and bool(event.text.strip()),
    )
    state = replace(state, phase=replace(phase, draft=draft))
    return state, (*stopped, *_begun(state, phase.turn, draft))


def _recognized(state: State, phase: Recognizing, event: Transcribed) -> Step:
    question = state.attention.question(event.text, to_us=phase.to_us)
    stopped: tuple[Action, ...] = ()
    if state.attention.stops(event.added):
        return _silenced(state)
    if phase.over is not None:
        if not _means_it(state, phase.over, phase.turn, question) or _listens(state, phase.over, event):
            return _resumed_over(state, phase, _why_not(event, question))
        if question is not None and state.attention.dismisses(question):
            return _silenced(state)
        state, stopped = _stopped_over(state, phase)
        stopped = (*stopped, Commit(phase.turn, phase.draft))
    if question is None:
        ended = EndTurn(phase.turn, phase.draft, _why_not(event, question))
        return replace(state, phase=Listening()), (*stopped, ended)
    draft = Draft(phase.draft, event.text.strip() if question == "" else question, called=question == "")
    answering = _answering(phase, None if draft.called else draft.words)
    state = replace(_called(state, draft, event.at_ns), phase=answering)
    return state, (*stopped, *_begun(state, phase.turn, draft))


def _why_not(event: Transcribed, question: str | None) -> Outcome:
    return "not_addressed" if question is None and event.text.strip() else "no_speech"


def _begun(state: State, turn: TurnId, draft: Draft) -> tuple[Action, ...]:
    if draft.called:
        return (Acknowledge(turn, draft.id),)
    if not draft.words:
        return ()
    return (Respond(turn, draft.id, draft.words, state.history.exchanges, aloud=True),)


def _remembering(state: State, phase: Answering) -> State:
    """History holds what was played of an answer; an excuse is no answer."""
    if phase.question is None or phase.excuse:
        return state
    return replace(state, history=state.history.with_exchange(phase.question, phase.heard or ""))


def _of_an_answer(state: State, event: Heard | Answered | Failed) -> Step:
    phase = state.phase
    if isinstance(phase, Hearing | Recognizing) and phase.over and phase.over.draft == event.draft:
        return _of_the_held(state, phase, phase.over, event)
    match event:
        case Heard():
            if isinstance(phase, Answering) and phase.draft == event.draft:
                return replace(state, phase=replace(phase, heard=event.text)), ()
            return state, ()
        case Answered():
            return _answered(state, event)
        case Failed():
            return _failed(state, event)
        case _:
            assert_never(event)


def _of_the_held(
    state: State, phase: Hearing | Recognizing, over: Answering, event: Heard | Answered | Failed
) -> Step:
    """The answer that is held may still come to its end, say because its speaker is gone."""
    if isinstance(event, Heard) or over.turn != phase.turn:
        after, actions = _of_an_answer(replace(state, phase=over), event)
        left = after.phase if isinstance(after.phase, Answering) else None
        return replace(after, phase=replace(phase, over=left)), actions
    if isinstance(event, Answered) and (over.heard or over.excuse):
        # It is the answer, unless the user says more.
        return replace(state, phase=replace(phase, over=replace(over, done=True))), ()
    return replace(state, phase=replace(phase, over=None)), (Cancel(over.turn, over.draft),)


def _answered(state: State, event: Answered) -> Step:
    match state.phase:
        case Hearing(draft=Draft(id=draft)) as phase if phase.draft and draft == event.draft:
            return replace(state, phase=replace(phase, draft=replace(phase.draft, over=True))), ()
        case Answering(turn=turn, draft=draft) as answering if draft == event.draft:
            if answering.excuse:
                return replace(state, phase=Listening()), (EndTurn(turn, draft, answering.excuse),)
            if event.spoken and not (answering.heard or "").strip():
                # Not a word of it: the speaker went away before the first one was whole.
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
            state, stopped = _stopped_over(state, recognizing)
            let_out = (Commit(turn, draft),) if recognizing.over else ()
            answering = Answering(turn, draft, None, aloud=True, endpoint_ns=recognizing.endpoint_ns)
            state, excused = _excusing(state, answering, event.code, "failed")
            return state, (*stopped, *let_out, *excused)
        case Answering(turn=turn, draft=draft) as answering if draft == event.draft:
            if answering.excuse:  # The excuse itself could not be played; the fault is shown all the same.
                return replace(state, phase=Listening()), (EndTurn(turn, draft, answering.excuse),)
            return _excusing(_remembering(state, answering), answering, event.code, "failed")
        case _:
            return state, ()


def _excusing(state: State, phase: Answering, code: str, outcome: Outcome) -> Step:
    return replace(state, phase=replace(phase, excuse=outcome)), (Excuse(phase.turn, phase.draft, code),)
