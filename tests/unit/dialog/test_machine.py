"""The dialog machine, by hand and with random events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ondam.dialog.actions import (
    Action,
    Cancel,
    EndTurn,
    Excuse,
    OpenUtterance,
    Recognize,
    Respond,
    Say,
)
from ondam.dialog.endpointing import Silence
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
from ondam.dialog.history import Exchange, History
from ondam.dialog.machine import Answering, Hearing, Listening, Recognizing, State, step
from ondam.types import TurnId

ONE, TWO = TurnId(1), TurnId(2)


def fresh() -> State:
    return State(Silence(window_ms=600), History(limit=6))


def run(state: State, *events: Event) -> tuple[State, list[Action]]:
    done: list[Action] = []
    for event in events:
        state, actions = step(state, event)
        done.extend(actions)
    return state, done


def test_a_whole_turn_goes_from_voice_to_history() -> None:
    state, done = run(
        fresh(),
        SpeechStarted(0),
        Pause(1, 320),
        Pause(2, 608),
        Transcribed(3, ONE, " What time is it? "),
        Heard(4, ONE, ""),
        Heard(5, ONE, "It is three."),
        Answered(6, ONE),
    )
    assert done == [
        OpenUtterance(ONE),
        Recognize(ONE),
        Respond(ONE, "What time is it?", (), aloud=True),
        EndTurn(ONE, "answered"),
    ]
    assert state.phase == Listening()
    assert state.history.exchanges == (Exchange("What time is it?", "It is three."),)


def test_a_pause_below_the_window_does_not_end_the_utterance() -> None:
    state, done = run(fresh(), SpeechStarted(0), Pause(1, 599.9))
    assert state.phase == Hearing(ONE)
    assert done == [OpenUtterance(ONE)]


def test_no_words_make_no_answer() -> None:
    state, done = run(fresh(), SpeechStarted(0), Pause(1, 600), Transcribed(2, ONE, "  "))
    assert done[-1] == EndTurn(ONE, "no_speech")
    assert state.history.exchanges == ()


def test_a_late_transcript_of_a_cancelled_turn_makes_no_second_answer() -> None:
    state, _ = run(fresh(), SpeechStarted(0), Pause(1, 600), SpeechStarted(2))
    assert state.phase == Hearing(TWO)
    state, done = run(state, Transcribed(3, ONE, "late"))
    assert done == []
    assert state.phase == Hearing(TWO)


def test_voice_while_the_answer_sounds_is_our_own_voice() -> None:
    state, _ = run(fresh(), Asked(0, "q", aloud=True), Heard(1, ONE, ""))
    after, done = run(state, SpeechStarted(2))
    assert (after, done) == (state, [])


def test_going_on_before_the_answer_sounds_cancels_it() -> None:
    state, _ = run(fresh(), SpeechStarted(0), Pause(1, 600), Transcribed(2, ONE, "one"))
    state, done = run(state, SpeechStarted(3))
    assert done == [Cancel(ONE), EndTurn(ONE, "stopped"), OpenUtterance(TWO)]


def test_stopping_keeps_in_history_only_what_was_heard() -> None:
    state, done = run(fresh(), Asked(0, "Count.", aloud=True), Heard(1, ONE, "One, two,"), StopRequested(2))
    assert done[-2:] == [Cancel(ONE), EndTurn(ONE, "stopped")]
    assert state.history.exchanges == (Exchange("Count.", "One, two,"),)


def test_stopping_before_anything_was_heard_leaves_no_trace() -> None:
    state, _ = run(fresh(), Asked(0, "Count.", aloud=True), StopRequested(1))
    assert state.history.exchanges == ()


def test_a_failed_stage_is_excused_once_and_not_remembered() -> None:
    state, done = run(
        fresh(),
        SpeechStarted(0),
        Pause(1, 600),
        TurnFailed(2, ONE, "stt_down"),
        Heard(3, ONE, "I cannot hear"),
        Answered(4, ONE),
    )
    assert done[2:] == [Excuse(ONE, "stt_down"), EndTurn(ONE, "failed")]
    assert state.history.exchanges == ()


def test_an_answer_that_breaks_off_keeps_what_was_heard() -> None:
    state, done = run(
        fresh(), Asked(0, "q", aloud=True), Heard(1, ONE, "Well,"), TurnFailed(2, ONE, "llm_stalled")
    )
    assert done[-1] == Excuse(ONE, "llm_stalled")
    assert state.history.exchanges == (Exchange("q", "Well,"),)


def test_an_excuse_that_fails_too_ends_the_turn() -> None:
    _, done = run(
        fresh(), Asked(0, "q", aloud=True), TurnFailed(1, ONE, "llm_down"), TurnFailed(2, ONE, "tts_down")
    )
    assert done[-2:] == [Excuse(ONE, "llm_down"), EndTurn(ONE, "failed")]


def test_b05_an_answer_that_cannot_be_said_is_excused_once() -> None:
    state, done = run(fresh(), Asked(0, "q", aloud=True), Answered(1, ONE))
    assert done[-1] == Excuse(ONE, "no_answer")
    state, done = run(state, Heard(2, ONE, "I have no answer"), Answered(3, ONE))
    assert done == [EndTurn(ONE, "no_answer")]
    assert state.history.exchanges == ()


def test_push_to_talk_waits_for_a_voice_and_then_gives_up() -> None:
    state, done = run(fresh(), ListenRequested(0, patience_ms=8_000), Pause(1, 7_999, voiced=False))
    assert done == [OpenUtterance(ONE, by_hand=True)]
    _, done = run(state, Pause(2, 8_000, voiced=False))
    assert done == [Cancel(ONE), EndTurn(ONE, "no_speech")]


def test_a_lost_microphone_drops_the_half_sentence() -> None:
    state, done = run(fresh(), SpeechStarted(0), MicrophoneLost(1))
    assert done[-2:] == [Cancel(ONE), EndTurn(ONE, "lost")]
    assert state.phase == Listening()


def test_an_utterance_that_is_full_is_recognized() -> None:
    state, done = run(fresh(), SpeechStarted(0), UtteranceFull(1))
    assert done[-1] == Recognize(ONE)
    assert state.phase == Recognizing(ONE)


def test_a_text_read_aloud_is_no_exchange() -> None:
    state, done = run(fresh(), SayRequested(0, "Hello."), Heard(1, ONE, "Hello."), Answered(2, ONE))
    assert done == [Say(ONE, "Hello."), EndTurn(ONE, "said")]
    assert state.history.exchanges == ()


turns = st.integers(1, 6).map(TurnId)
events = st.one_of(
    st.just(SpeechStarted(0)),
    st.builds(Pause, st.just(0), st.sampled_from([32.0, 600.0, 9000.0]), st.booleans()),
    st.just(UtteranceFull(0)),
    st.just(MicrophoneLost(0)),
    st.just(ListenRequested(0)),
    st.builds(Asked, st.just(0), st.just("q"), st.booleans()),
    st.just(SayRequested(0, "s")),
    st.just(StopRequested(0)),
    st.builds(Transcribed, st.just(0), turns, st.sampled_from(["", "words"])),
    st.builds(Heard, st.just(0), turns, st.sampled_from(["", "said"])),
    st.builds(Answered, st.just(0), turns),
    st.builds(TurnFailed, st.just(0), turns, st.just("llm_down")),
)


@given(st.lists(events, max_size=60))
def test_whatever_happens_one_turn_at_a_time_begins_and_ends_once(happened: list[Event]) -> None:
    state = fresh()
    open_turn: TurnId | None = None
    ended: set[TurnId] = set()
    for event in happened:
        state, actions = step(state, event)
        for action in actions:
            match action:
                case OpenUtterance(turn) | Say(turn):
                    assert open_turn is None
                    open_turn = turn
                case Respond(turn):
                    assert open_turn in {None, turn}
                    open_turn = turn
                case EndTurn(turn):
                    assert open_turn == turn
                    assert turn not in ended
                    ended.add(turn)
                    open_turn = None
                case Recognize(turn) | Cancel(turn) | Excuse(turn):
                    assert open_turn == turn
    assert isinstance(state.phase, Listening) == (open_turn is None)
    state, actions = step(state, StopRequested(0))
    assert state.phase == Listening()
    assert isinstance(state.phase, Listening) or not isinstance(state.phase, Answering)
