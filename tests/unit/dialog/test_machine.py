"""The dialog machine, by hand and with random events."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

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
    Recognize,
    ReopenUtterance,
    Respond,
    Resume,
    Say,
)
from ondam.dialog.attention import Attention
from ondam.dialog.endpointing import NO_DRAFTS, Drafting, Silence, SmartTurn
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
from ondam.dialog.history import Exchange, History
from ondam.dialog.machine import Answering, Hearing, Listening, Recognizing, State, step
from ondam.dialog.phases import MOST_PIECES
from ondam.types import DraftId, TurnId

ONE, TWO = TurnId(1), TurnId(2)
A, B, C = DraftId(1), DraftId(2), DraftId(3)
MS = 1_000_000


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
        Transcribed(3, A, " What time is it? "),
        Heard(4, A, ""),
        Heard(5, A, "It is three."),
        Answered(6, A),
    )
    assert done == [
        OpenUtterance(ONE),
        Recognize(ONE, A),
        CloseUtterance(ONE),
        Commit(ONE, A),
        Respond(ONE, A, "What time is it?", (), aloud=True),
        EndTurn(ONE, A, "answered"),
    ]
    assert state.phase == Listening()
    assert state.history.exchanges == (Exchange("What time is it?", "It is three."),)


def test_a_pause_below_the_window_does_not_end_the_utterance() -> None:
    state, done = run(fresh(), SpeechStarted(0), Pause(1, 599.9))
    assert isinstance(state.phase, Hearing)
    assert done == [OpenUtterance(ONE)]


def test_other_engines_drop_the_draft_and_the_next_pause_begins_one_on_them() -> None:
    drafting = replace(fresh(), drafting=Drafting(after_ms=64, most=1, take_back_ms=0))
    state, done = run(drafting, SpeechStarted(0), Pause(1, 64), EnginesSwitched(2), Pause(3, 96))
    assert done == [OpenUtterance(ONE), Recognize(ONE, A), Cancel(ONE, A), Recognize(ONE, B)]
    # What comes of the first one after all is nothing to anybody.
    state, done = run(state, Transcribed(4, A, "old words"), Transcribed(5, B, "words"), Pause(6, 608))
    assert [action for action in done if isinstance(action, Respond)] == [
        Respond(ONE, B, "words", (), aloud=True)
    ]


def test_other_engines_are_no_affair_of_an_answer_under_way() -> None:
    for state in (fresh(), run(fresh(), Asked(0, "q", True))[0], sounding()):
        assert run(state, EnginesSwitched(9)) == (state, [])


def test_an_answer_of_which_no_word_was_heard_is_unheard_and_not_taken_for_none() -> None:
    for heard in ((), (Heard(2, A, ""),)):
        state, _ = run(fresh(), Asked(1, "What?", True), *heard)
        state, done = run(state, Answered(3, A, spoken=True))
        assert (state.phase, done) == (Listening(), [EndTurn(ONE, A, "unheard")])


def test_no_words_make_no_answer() -> None:
    state, done = run(fresh(), SpeechStarted(0), Pause(1, 600), Transcribed(2, A, "  "))
    assert done[-1] == EndTurn(ONE, A, "no_speech")
    assert state.history.exchanges == ()


def test_a_late_transcript_of_a_cancelled_turn_makes_no_second_answer() -> None:
    before, _ = run(fresh(), SpeechStarted(0), Pause(1, 600), SpeechStarted(2))
    assert before.phase == Hearing(TWO)
    assert run(before, Transcribed(3, A, "late")) == (before, [])


def sounding() -> State:
    """An answer whose first words were heard, and no endpoint to take back."""
    return run(smart(), Asked(0, "Count.", aloud=True), Heard(1, A, "One, two,"))[0]


def test_the_first_sign_of_a_voice_ducks_the_answer_and_its_end_brings_it_back() -> None:
    _, done = run(sounding(), VoiceNoticed(2), VoiceFaded(3))
    assert done == [Duck(ONE, A), Resume(ONE, A)]


def test_a_voice_over_an_answer_holds_it_and_words_end_it() -> None:
    state, done = run(
        sounding(), VoiceNoticed(2), SpeechStarted(3), Pause(4, 64), Transcribed(5, B, "No, wait.")
    )
    assert done == [
        Duck(ONE, A),
        Hold(ONE, A),
        OpenUtterance(TWO),
        Recognize(TWO, B),
        JudgePause(TWO, 0),
        Cancel(ONE, A),
        EndTurn(ONE, A, "interrupted"),
        Respond(TWO, B, "No, wait.", (Exchange("Count.", "One, two,"),), aloud=True),
    ]
    assert isinstance(state.phase, Hearing)


def test_a_listener_who_says_yes_or_coughs_lets_the_answer_go_on() -> None:
    for words in ("", "Mhm.", "Yeah, okay.", "응, 그래."):
        state, _ = run(sounding(), SpeechStarted(3), Pause(4, 64))
        state, done = run(state, Transcribed(5, B, words))
        assert done == [
            Cancel(TWO, B),
            CloseUtterance(TWO),
            EndTurn(TWO, None, "no_speech"),
            Resume(ONE, A),
        ]
        assert isinstance(state.phase, Answering)
        assert state.phase.draft == A
        state, done = run(state, Heard(6, A, "One, two, three."), Answered(7, A))
        assert state.history.exchanges == (Exchange("Count.", "One, two, three."),)


def test_enough_voice_over_an_answer_ends_it_before_its_words_are_known() -> None:
    state, done = run(sounding(), SpeechStarted(3), SpeechSure(4))
    assert done[-2:] == [Cancel(ONE, A), EndTurn(ONE, A, "interrupted")]
    assert isinstance(state.phase, Hearing)
    assert state.phase.over is None


def test_stop_said_over_an_answer_is_done_and_not_answered() -> None:
    for words in ("Stop.", "그만.", "조용히 해"):
        state, done = run(sounding(), SpeechStarted(3), Pause(4, 64), Transcribed(5, B, words))
        assert done[-5:] == [
            Cancel(ONE, A),
            EndTurn(ONE, A, "interrupted"),
            Cancel(TWO, B),
            CloseUtterance(TWO),
            EndTurn(TWO, None, "stopped"),
        ]
        assert state.phase == Listening()
        assert state.history.exchanges == (Exchange("Count.", "One, two,"),)


def test_in_name_mode_the_wish_for_silence_may_carry_the_name() -> None:
    for words in ("Ondam, stop.", "Stop it, Ondam!"):
        state, done = run(named(), SpeechStarted(3), Pause(4, 64), Transcribed(5, B, words))
        assert EndTurn(TWO, None, "stopped") in done
        assert state.phase == Listening()
    state, _ = run(named(), SpeechStarted(3), Pause(4, 64), Transcribed(5, B, "Stop it, Peter!"))
    assert isinstance(state.phase, Answering), "that was not meant for us"


def test_without_drafts_the_answer_is_held_until_the_words_are_known() -> None:
    state, _ = run(fresh(), Asked(0, "Count.", aloud=True), Heard(1, A, "One,"))
    state, done = run(state, SpeechStarted(3), Pause(4, 600))
    assert done == [Hold(ONE, A), OpenUtterance(TWO), Recognize(TWO, B), CloseUtterance(TWO)]
    nothing, done = run(state, Transcribed(5, B, "mhm"))
    assert done == [Cancel(TWO, B), EndTurn(TWO, None, "no_speech"), Resume(ONE, A)]
    assert isinstance(nothing.phase, Answering)
    _, done = run(state, Transcribed(5, B, "What?"))
    assert done[:3] == [Cancel(ONE, A), EndTurn(ONE, A, "interrupted"), Commit(TWO, B)]


def test_going_on_right_after_the_endpoint_over_the_answer_makes_one_utterance_of_both_pieces() -> None:
    state, _ = run(
        smart(), SpeechStarted(0), Pause(1, 192), Judged(2, ONE, 0, 0.9), Transcribed(3, A, "Turn off")
    )
    state, _ = run(state, Ready(3, A), Heard(4, A, "Sure,"))
    state, done = run(state, SpeechStarted(1000 * MS))
    assert done == [Hold(ONE, A), ReopenUtterance(ONE)]
    again, done = run(state, Pause(6, 64), Transcribed(7, B, "Turn off the light."))
    assert done[-2:] == [Cancel(ONE, A), Respond(ONE, B, "Turn off the light.", (), aloud=True)]
    # A cough adds no words: the answer goes on, and the utterance stays what it was.
    _, done = run(state, Pause(6, 64), Transcribed(7, B, "Turn off"))
    assert done[-3:] == [Cancel(ONE, B), CloseUtterance(ONE, meant=False), Resume(ONE, A)]
    assert isinstance(again.phase, Hearing)


def begun() -> State:
    """An answer whose first word has just been heard."""
    state, _ = run(
        smart(), SpeechStarted(0), Pause(1, 192), Judged(2, ONE, 0, 0.9), Transcribed(3, A, "Turn off")
    )
    return run(state, Ready(3, A), Heard(4, A, "Sure,"))[0]


def test_stop_right_after_the_endpoint_stops_the_answer_and_nothing_is_asked() -> None:
    state, done = run(begun(), SpeechStarted(1000 * MS), Pause(6, 64))
    assert done[-2:] == [Recognize(ONE, B, added=True), JudgePause(ONE, 0)]
    state, done = run(state, Transcribed(7, B, "Turn off. Stop.", added="Stop."))
    assert done == [Cancel(ONE, A), Cancel(ONE, B), CloseUtterance(ONE), EndTurn(ONE, A, "stopped")]
    assert state.phase == Listening()
    assert state.history.exchanges == (Exchange("Turn off", "Sure,"),), "it was heard"


def test_stop_with_so_much_voice_that_it_ended_the_answer_keeps_what_was_heard_of_it() -> None:
    state, done = run(begun(), SpeechStarted(1000 * MS), SpeechSure(5), Pause(6, 64))
    assert Cancel(ONE, A) in done
    state, done = run(state, Transcribed(7, B, "Turn off. Stop talking.", added="Stop talking."))
    assert done == [Cancel(ONE, B), CloseUtterance(ONE), EndTurn(ONE, A, "stopped")]
    assert state.history.exchanges == (Exchange("Turn off", "Sure,"),)


def test_stop_before_the_answer_is_heard_takes_the_question_back() -> None:
    state, _ = run(smart(), SpeechStarted(0), Pause(1, 600), Transcribed(3, A, "Turn off"))
    state, done = run(state, SpeechStarted(1000 * MS), Pause(1001 * MS, 64))
    assert done == [Cancel(ONE, A), ReopenUtterance(ONE), Recognize(ONE, B, added=True), JudgePause(ONE, 0)]
    state, done = run(state, Transcribed(7, B, "Turn off. 그만.", added="그만."))
    assert done == [Cancel(ONE, B), CloseUtterance(ONE), EndTurn(ONE, None, "stopped")]
    assert (state.phase, state.history.exchanges) == (Listening(), ())


def test_stop_without_drafts_right_after_the_endpoint_is_done_when_its_words_are_known() -> None:
    state, _ = run(begun(), SpeechStarted(1000 * MS))
    state, done = run(replace(state, drafting=NO_DRAFTS), Pause(6, 600))
    assert done[0] == JudgePause(ONE, 0)
    assert done[1:] == [Recognize(ONE, B, added=True), CloseUtterance(ONE)]
    state, done = run(state, Transcribed(7, B, "Turn off. Stop.", added="Stop."))
    assert done == [Cancel(ONE, A), Cancel(ONE, B), EndTurn(ONE, A, "stopped")]
    assert state.phase == Listening()


def test_words_that_end_like_the_wish_for_silence_are_the_rest_of_the_question() -> None:
    for text, added in (
        ("Turn off when I say stop.", "when I say stop."),
        ("Turn off. Thanks.", "Thanks."),
        ("예약 취소", "취소"),
    ):
        state, _ = run(begun(), SpeechStarted(1000 * MS), Pause(6, 64))
        _, done = run(state, Transcribed(7, B, text, added=added))
        assert done == [Cancel(ONE, A), Respond(ONE, B, text, (), aloud=True)]


def test_a_question_that_ends_like_a_wish_to_stop_is_a_question() -> None:
    state, _ = run(begun(), SpeechStarted(1000 * MS), Pause(6, 64))
    for text, added in (("그거 됐어?", "됐어?"), ("When does the rain stop?", "stop?")):
        _, done = run(state, Transcribed(7, B, text, added=added))
        assert done[-1] == Respond(ONE, B, text, (), aloud=True)


def test_noise_before_a_question_does_not_end_it_while_its_pause_is_judged() -> None:
    state, _ = run(smart(), SpeechStarted(0), UtteranceFull(1), Pause(2, 64))
    _, done = run(state, PieceHeard(3, ONE, ""), Transcribed(4, A, "Turn off"))
    assert done == [Respond(ONE, A, "Turn off", (), aloud=True)]


def test_a_sign_of_listening_over_the_beginning_of_the_answer_does_not_end_it() -> None:
    state, _ = run(begun(), SpeechStarted(1000 * MS), Pause(6, 64))
    heard, done = run(state, Transcribed(7, B, "Turn off. Okay.", added="Okay."))
    assert done == [Cancel(ONE, B), CloseUtterance(ONE, meant=False), Resume(ONE, A)]
    assert isinstance(heard.phase, Answering)
    _, done = run(state, Transcribed(7, B, "Turn off, okay?", added="Okay?"))
    assert done[-1] == Respond(ONE, B, "Turn off, okay?", (), aloud=True)


def test_the_wish_for_silence_may_carry_the_name_in_any_mode() -> None:
    for mode in ("open", "name"):
        attention = Attention("name" if mode == "name" else "open", ("Ondam",), "en")
        state = replace(sounding(), attention=attention)
        state, done = run(state, SpeechStarted(3), Pause(4, 64), Transcribed(5, B, "Ondam, stop!"))
        assert EndTurn(TWO, None, "stopped") in done
        assert state.phase == Listening()


def test_an_answer_whose_speaker_goes_while_it_is_held_ends_and_the_user_is_heard() -> None:
    state, done = run(sounding(), SpeechStarted(3), Answered(4, A, spoken=True))
    assert done[-1] == EndTurn(ONE, A, "answered")
    assert state.phase == Hearing(TWO)


def named() -> State:
    return replace(sounding(), attention=Attention("name", ("Ondam",), "en"))


def test_in_name_mode_only_what_is_addressed_is_answered() -> None:
    state = replace(smart(), attention=Attention("name", ("Ondam",), "en"))
    spoken = (SpeechStarted(0), Pause(1, 64))
    _, done = run(state, *spoken, Transcribed(2, A, "Pass me the salt."), Pause(3, 600))
    assert done[-3:] == [Cancel(ONE, A), CloseUtterance(ONE), EndTurn(ONE, A, "not_addressed")]
    _, done = run(state, *spoken, Transcribed(2, A, "Ondam, what time is it?"), Pause(3, 600))
    assert done[-3:] == [
        Respond(ONE, A, "what time is it?", (), aloud=True),
        CloseUtterance(ONE),
        Commit(ONE, A),
    ]


def test_after_a_bare_call_the_next_utterance_needs_no_name() -> None:
    state = replace(smart(), attention=Attention("name", ("Ondam",), "en"))
    state, done = run(state, SpeechStarted(0), Pause(1, 64), Transcribed(2, A, "Ondam!"), Pause(3, 600))
    assert done[-3:] == [Acknowledge(ONE, A), CloseUtterance(ONE), Commit(ONE, A)]
    state, done = run(state, Heard(4, A, "Yes?"), Answered(5, A))
    assert done == [EndTurn(ONE, A, "said")]
    late, _ = run(state, SpeechStarted(8001 * MS))
    assert late.phase == Hearing(TWO)
    state, done = run(state, SpeechStarted(7999 * MS), Pause(1, 64), Transcribed(2, B, "What time is it?"))
    assert done[-1] == Respond(TWO, B, "What time is it?", (), aloud=True)


def test_in_name_mode_a_conversation_nearby_only_makes_the_answer_quieter() -> None:
    state, done = run(named(), SpeechStarted(3), SpeechSure(4), Pause(5, 64))
    assert done[:2] == [Duck(ONE, A), OpenUtterance(TWO)]
    state, done = run(state, Transcribed(6, B, "Did you see the game?"))
    assert done[-2:] == [EndTurn(TWO, None, "not_addressed"), Resume(ONE, A)]
    assert isinstance(state.phase, Answering)


def test_in_name_mode_a_voice_nearby_does_not_cost_an_answer_that_is_still_being_made() -> None:
    thinking, _ = run(
        replace(smart(), attention=Attention("name", ("Ondam",), "en")), Asked(0, "q", aloud=True)
    )
    state, done = run(thinking, SpeechStarted(1), Pause(2, 64), Transcribed(3, B, "Pass me the salt."))
    assert Cancel(ONE, A) not in done
    assert state.phase == thinking.phase
    state, done = run(thinking, SpeechStarted(1), Heard(2, A, "Well,"), Pause(3, 64))
    _, done = run(state, Transcribed(4, B, "Ondam, never mind that, what time is it?"))
    assert done[:2] == [Cancel(ONE, A), EndTurn(ONE, A, "interrupted")]


def test_a_button_that_is_held_ends_the_utterance_only_when_it_is_let_go() -> None:
    state = replace(smart(), attention=Attention("push"))
    assert run(state, SpeechStarted(0)) == (state, []), "a voice alone opens nothing"
    state, done = run(state, Pressed(1), Pause(2, 99_999, voiced=False), Pause(3, 64), Pause(4, 5000))
    assert done == [OpenUtterance(ONE, by_hand=True), Recognize(ONE, A), JudgePause(ONE, 0)]
    _, done = run(state, Released(5))
    assert done == [CloseUtterance(ONE), Commit(ONE, A)]
    assert run(replace(state, phase=Listening()), Released(5))[1] == []


def test_a_button_over_an_answer_ends_it_at_once() -> None:
    _, done = run(sounding(), Pressed(2))
    assert done == [Cancel(ONE, A), EndTurn(ONE, A, "stopped"), OpenUtterance(TWO, by_hand=True)]


def test_muting_drops_what_is_being_said_and_lets_a_held_answer_go_on() -> None:
    _, done = run(smart(), SpeechStarted(0), ModeSet(1, "muted"))
    assert done[-2:] == [CloseUtterance(ONE), EndTurn(ONE, None, "stopped")]
    state, done = run(sounding(), SpeechStarted(3), ModeSet(4, "muted"))
    assert done[-2:] == [EndTurn(TWO, None, "stopped"), Resume(ONE, A)]
    assert run(state, SpeechStarted(5))[1] == []


def test_a_voice_before_the_answer_sounds_holds_it_and_ends_it_when_it_is_meant() -> None:
    state, _ = run(fresh(), SpeechStarted(0), Pause(1, 600), Transcribed(2, A, "one"))
    state, done = run(state, SpeechStarted(3))
    assert done == [Hold(ONE, A), OpenUtterance(TWO)]
    state, done = run(state, SpeechSure(4))
    assert done == [Cancel(ONE, A), EndTurn(ONE, A, "interrupted")]
    assert state.history.exchanges == ()


def test_a_cough_before_the_answer_sounds_does_not_cost_it() -> None:
    state, _ = run(fresh(), Asked(0, "one", aloud=True), SpeechStarted(3), Pause(4, 600))
    state, done = run(state, Transcribed(5, B, ""))
    assert done == [Cancel(TWO, B), EndTurn(TWO, None, "no_speech"), Resume(ONE, A)]
    assert isinstance(state.phase, Answering)
    assert state.phase.draft == A


def test_a_voice_over_an_answer_that_turns_out_to_be_none_lets_it_go_on() -> None:
    state, done = run(fresh(), Asked(0, "q", aloud=False), SpeechStarted(0), Pause(1, 32.0, voiced=False))
    assert done[-3:] == [CloseUtterance(TWO), EndTurn(TWO, None, "no_speech"), Resume(ONE, A)]
    assert isinstance(state.phase, Answering) and state.phase.turn == ONE


def test_a_cough_over_the_end_of_an_answer_does_not_make_it_be_said_again() -> None:
    for said, asked in (("one", "one"), ("Ondam", None)):
        state = replace(smart(), attention=Attention("name", ("Ondam",), "en"))
        words = "Ondam" if asked is None else "Ondam, one"
        state, _ = run(state, SpeechStarted(0), Pause(1, 600), Transcribed(2, A, words), Heard(3, A, said))
        state, done = run(state, SpeechStarted(4), Answered(5, A, spoken=True))
        assert done == [Duck(ONE, A), ReopenUtterance(ONE)]
        state, done = run(state, Pause(6, 600), Transcribed(7, B, words))
        assert [action for action in done if isinstance(action, EndTurn | Respond | Acknowledge)] == [
            EndTurn(ONE, A, "answered" if asked else "said")
        ]
        assert state.phase == Listening()
        assert state.history.exchanges == ((Exchange(asked, said),) if asked else ())


def test_more_words_over_the_end_of_an_answer_are_answered_with_the_first_ones() -> None:
    state, _ = run(smart(), SpeechStarted(0), Pause(1, 600), Transcribed(2, A, "one"), Heard(3, A, "1"))
    state, _ = run(state, SpeechStarted(4), Answered(5, A, spoken=True), Pause(6, 600))
    state, done = run(state, Transcribed(7, B, "one and two"))
    assert done == [Cancel(ONE, A), Commit(ONE, B), Respond(ONE, B, "one and two", (), aloud=True)]


def test_stopping_while_an_answer_is_held_that_may_be_taken_back_keeps_what_was_heard() -> None:
    state, _ = run(smart(), SpeechStarted(0), Pause(1, 600), Transcribed(2, A, "one"), Heard(3, A, "1"))
    state, done = run(state, SpeechStarted(4), StopRequested(5))
    assert done[-1] == EndTurn(ONE, A, "stopped")
    assert state.history.exchanges == (Exchange("one", "1"),)
    assert state.phase == Listening()


def test_a_button_that_comes_after_the_first_words_makes_them_count_without_a_name() -> None:
    for button in (Pressed(3), ListenRequested(3, 5000)):
        state = replace(smart(), attention=Attention("name", ("Ondam",), "en"))
        state, _ = run(state, SpeechStarted(0), Pause(1, 64), Transcribed(2, A, "What time is it?"))
        state, done = run(state, button, Released(4), Pause(4, 600), Transcribed(5, B, "What time is it?"))
        assert done[0] == Cancel(ONE, A)
        assert done[-1] == Respond(ONE, B, "What time is it?", (), aloud=True)


def test_stopping_keeps_in_history_only_what_was_heard() -> None:
    state, done = run(fresh(), Asked(0, "Count.", aloud=True), Heard(1, A, "One, two,"), StopRequested(2))
    assert done[-2:] == [Cancel(ONE, A), EndTurn(ONE, A, "stopped")]
    assert state.history.exchanges == (Exchange("Count.", "One, two,"),)


def test_stopping_before_anything_was_heard_leaves_no_trace() -> None:
    state, _ = run(fresh(), Asked(0, "Count.", aloud=True), StopRequested(1))
    assert state.history.exchanges == ()


def test_a_failed_stage_is_excused_once_and_not_remembered() -> None:
    state, done = run(
        fresh(),
        SpeechStarted(0),
        Pause(1, 600),
        Failed(2, A, "stt_down"),
        Heard(3, A, "I cannot hear"),
        Answered(4, A),
    )
    assert done[4:] == [Excuse(ONE, A, "stt_down"), EndTurn(ONE, A, "failed")]
    assert state.history.exchanges == ()


def test_an_answer_that_breaks_off_keeps_what_was_heard() -> None:
    state, done = run(fresh(), Asked(0, "q", aloud=True), Heard(1, A, "Well,"), Failed(2, A, "llm_stalled"))
    assert done[-1] == Excuse(ONE, A, "llm_stalled")
    assert state.history.exchanges == (Exchange("q", "Well,"),)


def test_an_excuse_that_fails_too_ends_the_turn() -> None:
    _, done = run(fresh(), Asked(0, "q", aloud=True), Failed(1, A, "llm_down"), Failed(2, A, "tts_down"))
    assert done[-2:] == [Excuse(ONE, A, "llm_down"), EndTurn(ONE, A, "failed")]


def test_b05_an_answer_that_cannot_be_said_is_excused_once() -> None:
    state, done = run(fresh(), Asked(0, "q", aloud=True), Answered(1, A))
    assert done[-1] == Excuse(ONE, A, "no_answer")
    state, done = run(state, Heard(2, A, "I have no answer"), Answered(3, A))
    assert done == [EndTurn(ONE, A, "no_answer")]
    assert state.history.exchanges == ()


def test_push_to_talk_waits_for_a_voice_and_then_gives_up() -> None:
    state, done = run(fresh(), ListenRequested(0, patience_ms=8_000), Pause(1, 7_999, voiced=False))
    assert done == [OpenUtterance(ONE, by_hand=True)]
    _, done = run(state, Pause(2, 8_000, voiced=False))
    assert done == [CloseUtterance(ONE), EndTurn(ONE, None, "no_speech")]


def test_a_lost_microphone_drops_the_half_sentence() -> None:
    state, done = run(fresh(), SpeechStarted(0), MicrophoneLost(1))
    assert done[-2:] == [CloseUtterance(ONE), EndTurn(ONE, None, "lost")]
    assert state.phase == Listening()


def test_an_utterance_that_is_full_is_handed_on_and_goes_on_in_the_same_turn() -> None:
    state, done = run(fresh(), SpeechStarted(0), UtteranceFull(1), PieceHeard(2, ONE, "Once upon"))
    assert done == [OpenUtterance(ONE), HandOn(ONE)]
    state, done = run(state, UtteranceFull(3), PieceHeard(4, ONE, "a time"), Pause(5, 600))
    assert done == [HandOn(ONE), Recognize(ONE, A), CloseUtterance(ONE), Commit(ONE, A)]
    assert isinstance(state.phase, Recognizing)


def test_nothing_is_cut_off_in_a_pause_which_ends_or_goes_on_at_once() -> None:
    state, done = run(smart(), SpeechStarted(0), Pause(1, 64), UtteranceFull(2))
    assert HandOn(ONE) not in done
    _, done = run(state, SpeechResumed(3), UtteranceFull(4))
    assert done == [Cancel(ONE, A), HandOn(ONE)]
    held, _ = run(fresh(), Pressed(0), Pause(1, 64))
    assert run(held, UtteranceFull(2))[1] == [HandOn(ONE)], "a held button may be silent for ever"


def test_a_piece_without_words_is_noise_and_ends_the_turn() -> None:
    state, done = run(smart(), SpeechStarted(0), UtteranceFull(1), PieceHeard(2, ONE, ""))
    assert done[-2:] == [CloseUtterance(ONE), EndTurn(ONE, None, "no_speech")]
    assert state.phase == Listening()
    # What was said before the noise is answered.
    state, _ = run(smart(), SpeechStarted(0), UtteranceFull(1), PieceHeard(2, ONE, "one"))
    state, done = run(state, UtteranceFull(3), PieceHeard(4, ONE, ""))
    assert done == [HandOn(ONE), Recognize(ONE, A), CloseUtterance(ONE), Commit(ONE, A)]
    assert run(state, SpeechStarted(5))[1] == [], "the noise that goes on does not cost it"
    # A button that is held says that there is more to come; of another turn it says nothing.
    for begun in (Pressed(0), SpeechStarted(0)):
        turn = ONE if isinstance(begun, Pressed) else TWO
        assert run(fresh(), begun, UtteranceFull(1), PieceHeard(2, turn, ""))[1][2:] == []
    # An answer that it was near goes on.
    over, _ = run(named(), SpeechStarted(3), UtteranceFull(4))
    _, done = run(over, PieceHeard(5, TWO, ""))
    assert done == [CloseUtterance(TWO), EndTurn(TWO, None, "no_speech"), Resume(ONE, A)]


def test_an_utterance_of_too_many_pieces_is_answered() -> None:
    state, done = run(fresh(), SpeechStarted(0), *[UtteranceFull(1)] * (MOST_PIECES + 1))
    assert done[1:] == [HandOn(ONE)] * MOST_PIECES + [
        Recognize(ONE, A),
        CloseUtterance(ONE),
        Commit(ONE, A),
    ]
    assert run(state, SpeechStarted(2)) == (state, []), "more of the same"
    state, _ = run(state, Transcribed(3, A, "q"))
    assert run(state, SpeechStarted(4))[1] == [Hold(ONE, A), OpenUtterance(TWO)]


def test_the_number_of_pieces_is_kept_when_an_endpoint_is_taken_back() -> None:
    state, _ = run(smart(), SpeechStarted(0), UtteranceFull(1), Pause(2, 600), SpeechStarted(3))
    assert isinstance(state.phase, Hearing)
    assert state.phase.handed == 1


def test_who_lets_go_of_the_button_in_the_last_syllable_loses_nothing() -> None:
    state, _ = run(smart(), Pressed(0), Released(1), SpeechStarted(2))
    assert isinstance(state.phase, Hearing)
    assert (state.phase.turn, state.phase.pressed, state.phase.to_us) == (ONE, False, True)
    pushed = replace(smart(), attention=Attention("push"))
    _, done = run(pushed, Pressed(0), Released(1), SpeechStarted(2))
    assert done[-1] == Commit(ONE, A), "where a voice alone counts for nothing"


def test_a_text_read_aloud_is_no_exchange() -> None:
    state, done = run(fresh(), SayRequested(0, "Hello."), Heard(1, A, "Hello."), Answered(2, A))
    assert done == [Say(ONE, A, "Hello."), Commit(ONE, A), EndTurn(ONE, A, "said")]
    assert state.history.exchanges == ()


def smart() -> State:
    """Drafts after 64 ms, smart-turn: 192 ms where the utterance sounds complete, 1,400 where it does not."""
    policy = SmartTurn(
        threshold=0.5, sure=0.8, sure_ms=192, complete_ms=512, incomplete_ms=1400, unsure_ms=600
    )
    return State(policy, History(limit=6), Drafting(after_ms=64, most=3, take_back_ms=1500))


def test_a_pause_begins_a_draft_and_asks_for_a_verdict_once() -> None:
    state, done = run(smart(), SpeechStarted(0), Pause(1, 32), Pause(2, 64), Pause(3, 96))
    assert done == [OpenUtterance(ONE), JudgePause(ONE, 0), Recognize(ONE, A)]
    assert isinstance(state.phase, Hearing)


def test_a_voice_that_falls_away_begins_a_draft_where_that_is_wanted() -> None:
    eager = replace(smart(), drafting=replace(smart().drafting, at_fall=True))
    state, done = run(eager, SpeechStarted(0), VoiceFell(1), VoiceFell(2), Pause(3, 64))
    assert done == [OpenUtterance(ONE), Recognize(ONE, A), JudgePause(ONE, 0)], "the pause keeps the draft"
    state, done = run(state, SpeechResumed(4), VoiceFell(5))
    assert done == [Cancel(ONE, A), Recognize(ONE, B)]
    assert run(smart(), SpeechStarted(0), VoiceFell(1))[1] == [OpenUtterance(ONE)]


def test_a_complete_utterance_is_committed_after_the_short_window_and_its_draft_is_kept() -> None:
    state, done = run(
        smart(),
        SpeechStarted(0),
        Pause(1, 64),
        Judged(2, ONE, 0, 0.9),
        Transcribed(3, A, "What time is it?"),
        Ready(4, A),
        Pause(4, 160),
        Pause(5, 192),
    )
    assert done[3:] == [
        Respond(ONE, A, "What time is it?", (), aloud=True),
        CloseUtterance(ONE),
        Commit(ONE, A),
    ]
    assert isinstance(state.phase, Answering)
    assert state.phase.question == "What time is it?"


def test_a_verdict_that_comes_after_its_window_ends_the_utterance_at_once() -> None:
    state, done = run(smart(), SpeechStarted(0), Pause(1, 544), Judged(2, ONE, 0, 0.9))
    assert done[-1] == Commit(ONE, A)
    assert state.phase == Recognizing(ONE, A, endpoint_ns=2, made=1)


def test_a_complete_utterance_ends_when_its_answer_is_ready_or_could_be_waited_for_no_longer() -> None:
    state, _ = run(smart(), SpeechStarted(0), Pause(1, 64), Judged(2, ONE, 0, 0.9), Transcribed(3, A, "q"))
    state, done = run(state, Pause(4, 300))
    assert done == [], "whoever goes on now is not cut off, and nobody waits"
    assert run(state, Ready(5, B))[1] == [], "of another draft"
    ready, done = run(state, Ready(5, A))
    assert done == [CloseUtterance(ONE), Commit(ONE, A)]
    assert isinstance(ready.phase, Answering)
    assert ready.phase.endpoint_ns == 5
    assert run(state, Pause(6, 512))[1] == done
    # Complete, but not for sure: it is waited a little longer.
    likely, _ = run(smart(), SpeechStarted(0), Pause(1, 64), Judged(2, ONE, 0, 0.7), Transcribed(3, A, "q"))
    likely, done = run(likely, Ready(4, A), Pause(5, 511))
    assert done == []
    assert run(likely, Pause(6, 512))[1] == [CloseUtterance(ONE), Commit(ONE, A)]
    # Where no answer is in the making, waiting brings it no nearer.
    _, done = run(
        replace(smart(), drafting=NO_DRAFTS), SpeechStarted(0), Judged(2, ONE, 0, 0.9), Pause(3, 192)
    )
    assert done[-1] == Commit(ONE, A)


def test_an_incomplete_utterance_waits_longer() -> None:
    state, _ = run(smart(), SpeechStarted(0), Pause(1, 64), Judged(2, ONE, 0, 0.1), Pause(3, 1399))
    assert isinstance(state.phase, Hearing)
    state, _ = run(state, Pause(4, 1400))
    assert isinstance(state.phase, Recognizing)


def test_without_a_verdict_the_plain_window_counts() -> None:
    state, _ = run(smart(), SpeechStarted(0), Pause(1, 599))
    assert isinstance(state.phase, Hearing)
    state, _ = run(state, Pause(2, 600))
    assert isinstance(state.phase, Recognizing)


def test_going_on_drops_the_draft_and_its_verdict() -> None:
    state, done = run(
        smart(),
        SpeechStarted(0),
        Pause(1, 64),
        Transcribed(2, A, "What"),
        SpeechResumed(3),
        Judged(4, ONE, 0, 0.99),
        Pause(5, 192),
    )
    assert Cancel(ONE, A) in done
    assert done[-2:] == [Recognize(ONE, B), JudgePause(ONE, 1)]
    assert isinstance(state.phase, Hearing)
    assert state.phase.complete is None
    # What the dropped draft still says changes nothing.
    assert run(state, Transcribed(6, A, "What"), Answered(7, A), Failed(8, A, "llm_down")) == (state, [])


def test_a_turn_makes_no_more_drafts_than_it_may() -> None:
    happened: list[Event] = [SpeechStarted(0)]
    for _ in range(9):
        happened += [Pause(1, 64), SpeechResumed(2)]
    _, done = run(smart(), *happened)
    assert [type(action) for action in done].count(Recognize) == 3


def test_a_false_endpoint_is_taken_back_and_both_pieces_are_one_turn() -> None:
    state, done = run(
        smart(),
        SpeechStarted(0),
        Pause(1, 64),
        Judged(2, ONE, 0, 0.9),
        Transcribed(3, A, "Turn off the light"),
        Ready(3, A),
        Pause(1000 * MS, 192),
        SpeechStarted(2400 * MS),
    )
    assert done[-2:] == [Cancel(ONE, A), ReopenUtterance(ONE)]
    assert isinstance(state.phase, Hearing)
    state, done = run(
        state,
        Pause(3000 * MS, 600),
        Transcribed(4, B, "Turn off the light in the kitchen."),
        Heard(5, B, "Done."),
        Answered(6, B),
    )
    assert done[-1] == EndTurn(ONE, B, "answered")
    assert state.history.exchanges == (Exchange("Turn off the light in the kitchen.", "Done."),)


def test_what_is_said_later_than_the_take_back_window_is_a_new_turn() -> None:
    state, _ = run(smart(), SpeechStarted(0), Pause(0, 600), Transcribed(1, A, "one"))
    _, done = run(state, SpeechStarted(1501 * MS))
    assert done == [Hold(ONE, A), OpenUtterance(TWO)]


def test_a_draft_that_failed_is_excused_only_once_the_user_has_finished() -> None:
    state, done = run(smart(), SpeechStarted(0), Pause(1, 64), Failed(2, A, "stt_down"), Pause(3, 128))
    assert not [action for action in done if isinstance(action, Excuse)]
    _, done = run(state, Pause(4, 600))
    assert done == [CloseUtterance(ONE), Commit(ONE, A), Excuse(ONE, A, "stt_down")]


def test_a_draft_without_words_makes_no_turn() -> None:
    _, done = run(smart(), SpeechStarted(0), Pause(1, 64), Transcribed(2, A, ""), Pause(3, 600))
    assert done[-3:] == [Cancel(ONE, A), CloseUtterance(ONE), EndTurn(ONE, A, "no_speech")]


def test_a_draft_that_cannot_be_said_is_excused_after_the_endpoint() -> None:
    _, done = run(
        smart(), SpeechStarted(0), Pause(1, 64), Transcribed(2, A, "q"), Answered(3, A), Pause(4, 600)
    )
    assert done[-3:] == [CloseUtterance(ONE), Commit(ONE, A), Excuse(ONE, A, "no_answer")]


turns = st.integers(1, 6).map(TurnId)
drafts = st.integers(1, 12).map(DraftId)
events = st.one_of(
    st.just(VoiceNoticed(0)),
    st.just(VoiceFaded(0)),
    st.builds(SpeechStarted, st.sampled_from([0, 1000 * MS, 5000 * MS])),
    st.builds(Pause, st.just(0), st.sampled_from([32.0, 64.0, 192.0, 600.0, 9000.0]), st.booleans()),
    st.just(VoiceFell(0)),
    st.just(EnginesSwitched(0)),
    st.just(SpeechResumed(0)),
    st.just(SpeechSure(0)),
    st.builds(Judged, st.just(0), turns, st.integers(0, 2), st.sampled_from([0.1, 0.9])),
    st.just(UtteranceFull(0)),
    st.builds(PieceHeard, st.just(0), turns, st.sampled_from(["", "words"])),
    st.just(MicrophoneLost(0)),
    st.just(ListenRequested(0)),
    st.just(Pressed(0)),
    st.just(Released(0)),
    st.builds(ModeSet, st.just(0), st.sampled_from(["open", "name", "push", "muted"])),
    st.builds(Asked, st.just(0), st.just("q"), st.booleans()),
    st.just(SayRequested(0, "s")),
    st.just(StopRequested(0)),
    st.builds(
        Transcribed,
        st.just(0),
        drafts,
        st.sampled_from(["", "words", "mhm", "stop", "Ondam", "Ondam, words"]),
        st.sampled_from(["", "words", "mhm", "stop", "Ondam, stop"]),
    ),
    st.builds(Ready, st.just(0), drafts),
    st.builds(Heard, st.just(0), drafts, st.sampled_from(["", "said"])),
    st.builds(Answered, st.just(0), drafts, st.booleans()),
    st.builds(Failed, st.just(0), drafts, st.just("llm_down")),
)


class Watcher:
    """Follows the actions as a person in the room would, and objects."""

    def __init__(self) -> None:
        self.turns: list[TurnId] = []
        """Under way: one, and while a voice is over its answer that of the voice."""
        self.ended: set[TurnId] = set()
        self.drafts: dict[DraftId, TurnId] = {}
        self.dropped: set[DraftId] = set()
        self.let_out: DraftId | None = None
        self.held = False

    def see(self, action: Action) -> None:
        match action:
            case OpenUtterance():
                assert not self.turns or self.let_out, "two turns, and no answer to speak over"
                self.turns.append(action.turn)
            case Recognize() | Say() | Respond() | Acknowledge():
                if not self.turns:
                    self.turns.append(action.turn)
                assert action.turn in self.turns
                assert action.draft not in self.dropped
                self.drafts[action.draft] = action.turn
                others = set(self.drafts) - {action.draft, self.let_out}
                assert not others, "two answers in the making"
            case Commit():
                assert action.draft in self.drafts
                assert self.let_out is None, "two answers at once"
                self.let_out = action.draft
            case Cancel():
                assert action.draft in self.drafts
                del self.drafts[action.draft]
                self.dropped.add(action.draft)
                if action.draft == self.let_out:
                    self.let_out, self.held = None, False
            case Excuse():
                assert action.draft == self.let_out
            case Duck() | Hold() | Resume():
                assert action.draft == self.let_out
                self.held = isinstance(action, Hold)
            case EndTurn():
                assert action.turn in self.turns
                assert action.turn not in self.ended
                self.turns.remove(action.turn)
                self.ended.add(action.turn)
                self.drafts = {d: turn for d, turn in self.drafts.items() if turn != action.turn}
                if self.let_out not in self.drafts:
                    self.let_out, self.held = None, False
            case CloseUtterance() | ReopenUtterance() | JudgePause() | HandOn():
                assert action.turn in self.turns


@given(st.lists(events, max_size=80), st.booleans())
def test_whatever_happens_one_answer_at_a_time_and_no_dropped_draft_is_ever_let_out(
    happened: list[Event], drafting: bool
) -> None:
    attention = Attention(names=("Ondam",))
    state = replace(smart() if drafting else fresh(), attention=attention)
    state = replace(state, drafting=replace(state.drafting, at_fall=drafting))
    watcher = Watcher()
    for event in (*happened, StopRequested(0)):
        state, actions = step(state, event)
        for action in actions:
            watcher.see(action)
        phase = state.phase
        assert isinstance(phase, Listening) == (not watcher.turns)
        over = phase.over if isinstance(phase, Hearing | Recognizing) else None
        assert not watcher.held or over, "an answer is held for ever"
        assert len(watcher.turns) <= 1 + (over is not None)
    assert state.phase == Listening(), "always back to listening"
    # A dropped draft leaves no trace: what history holds was heard.
    assert all(exchange.answer == "said" for exchange in state.history.exchanges)
