"""What the tray's menu says, as values."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from tests.unit.ui.tray_status import engine, microphones, seen, status, turn

from ondam.control import wire
from ondam.messages import Message
from ondam_ui.tray.menu import (
    COLUMNS,
    DEVICES,
    FAULT_LINES,
    FIGURE,
    STAGES,
    WIDE,
    Do,
    Entry,
    icon,
    shown,
    slowest,
    wrapped,
)
from ondam_ui.tray.seen import Remark, Seen, Today, fold, known, lost, today


def read(given: Seen, language: str = "en") -> list[str]:
    """What a person reads, without lines of figures' spaces."""
    made = shown(given, cast("Any", language))
    return [e.text.replace(FIGURE, " ") for e in made.entries if e.visible and not e.separator]


def entry(given: Seen, key: str) -> Entry:
    return next(e for e in shown(given, "en").walk() if e.key == key)


def inside(given: Seen, key: str) -> list[str]:
    return [e.text for e in entry(given, key).inside if e.visible]


def test_the_menu_in_english() -> None:
    devices = microphones("built-in", "headset", chosen="headset")
    assert read(seen(devices=devices)) == [
        "Ondam: no faults",
        "Listening: just speak",
        "Last answer: 0.9 s after your last word, most delayed: the answer's first word",
        "   224 ms  noticing that you finished  (target 296)",
        "     4 ms  handing over in between  (target 8)",
        "   190 ms  recognizing your words  (target 144, +46)",
        "   312 ms  the answer's first word  ◀ most delayed (target 160, +152)",
        "    40 ms  the answer's first phrase  (target 64)",
        "   110 ms  the voice's first sound  (target 104, +6)",
        "    20 ms  sound output  (target 24)",
        "Today, warmed up (23 answers): usually 0.6 s, 1 in 20 over 0.9 s",
        "Models: hearing whisper-base (CPU) · answers qwen3-4b (GPU) · voice joe (CPU)",
        "Listen to one question now",
        "Stop the answer",
        "Mute (Ondam stops listening)",
        "Listening mode: always",
        "Microphone: Headset",
        "Speaker: The system's",
        "Open the Ondam window",
        "Copy diagnostics (no audio, no words)",
        "Show this icon at login",
        "Hide this icon (Ondam keeps listening)",
        "Quit Ondam (stops listening)",
    ]


def test_the_menu_in_korean() -> None:
    muted = seen(status=status(mode="muted"), last=turn(first_audio_ms=512.0, over=False))
    assert read(muted, "ko")[:6] == [
        "온담: 고장 없음",
        "음소거 상태라 말씀을 듣지 않습니다",
        "마지막 대답: 말씀이 끝나고 0.5초 뒤, 제때",
        "   224 ms  말씀이 끝났는지 살피기",
        "     4 ms  단계 사이의 전달",
        "   190 ms  말씀 알아듣기",
    ]
    assert read(muted, "ko")[10] == "오늘(준비를 마친 뒤) 대답 23회: 보통 0.6초, 20번 중 1번은 0.9초 이상"
    assert "마이크 음소거(온담이 듣지 않음)" in read(muted, "ko")
    assert "듣기 방식: 듣지 않음(음소거)" in read(muted, "ko")
    slow = read(seen(last=turn()), "ko")
    assert slow[2] == "마지막 대답: 말씀이 끝나고 0.9초 뒤(가장 늦어진 단계: 답의 첫 단어)"
    assert slow[6] == "   312 ms  답의 첫 단어  ◀ 가장 늦어짐 (목표 160, +152)"


def test_what_was_done_while_the_user_spoke_is_said_so_only_of_a_draft_that_was_kept() -> None:
    drafted = read(seen(last=turn(stt=0.0, playback_buffer=0.2, made_drafts=2)))
    assert "    <1 ms  recognizing your words  (done meanwhile)" in drafted
    assert "    <1 ms  sound output  (target 24)" in drafted
    assert "    <1 ms  recognizing your words  (target 144)" in read(seen(last=turn(stt=0.0, made_drafts=1)))


def test_what_goes_on_without_the_icon_is_said_as_it_is() -> None:
    assert entry(Seen(), "quit").text == "Hide this icon"
    muted = seen(status=status(mode="muted"))
    assert entry(muted, "quit").text == "Hide this icon (Ondam keeps running)"


@pytest.mark.parametrize(
    ("state", "wanted"), [("listening", False), ("thinking", True), ("speaking", True), ("fault", False)]
)
def test_an_answer_can_be_stopped_only_while_there_is_one(state: str, wanted: bool) -> None:
    assert entry(seen(status=status(state=state)), "stop").enabled == wanted


def test_one_answer_is_no_answers_and_one_device_is_said_once() -> None:
    first = seen(
        today=Today("cold", 1, 3958.0, 3958.0, 3958.0),
        status=status(engines=[engine("stt", "whisper-base"), engine("tts", "joe"), engine("tts", "mira")]),
    )
    assert read(first)[10:12] == [
        "Today, just started: one answer, after 4.0 s",
        "On the CPU: hearing whisper-base · answers – · voice joe + mira",
    ]


def test_of_one_or_two_answers_nothing_is_usual() -> None:
    one = seen(today=Today("settled", 1, 640.0, 640.0, 640.0))
    assert read(one, "ko")[10] == "오늘(준비를 마친 뒤) 대답 1회: 0.6초"
    # 0.9 s and 1.5 s: the middle is 1.2 s.
    two = seen(today=Today("settled", 2, 1200.0, 1470.0, 1500.0))
    assert entry(two, "today").text == "Today, warmed up: two answers, after 0.9 s and 1.5 s"
    assert read(two, "ko")[10] == "오늘(준비를 마친 뒤) 대답 2회: 0.9초와 1.5초"
    three = seen(today=Today("settled", 3, 1200.0, 1470.0, 1500.0))
    assert entry(three, "today").text == "Today, warmed up (3 answers): usually 1.2 s, slowest 1.5 s"


def test_fewer_than_twenty_answers_have_a_slowest_and_no_one_in_twenty() -> None:
    few = seen(today=Today("settled", 19, 640.0, 910.0, 1700.0))
    assert entry(few, "today").text == "Today, warmed up (19 answers): usually 0.6 s, slowest 1.7 s"
    assert read(few, "ko")[10] == "오늘(준비를 마친 뒤) 대답 19회: 보통 0.6초, 가장 느릴 때 1.7초"
    enough = seen(today=Today("settled", 20, 640.0, 910.0, 1700.0))
    assert entry(enough, "today").text == "Today, warmed up (20 answers): usually 0.6 s, 1 in 20 over 0.9 s"


@pytest.mark.parametrize(
    ("mode", "state", "asking", "wanted"),
    [
        ("open", "listening", False, False),
        ("open", "listening", True, True),  # chosen, and not yet heard of: it can be taken back
        ("open", "speaking", False, True),
        ("name", "listening", False, True),
        ("push", "listening", False, True),
        ("muted", "listening", False, False),
    ],
)
def test_one_question_is_offered_unless_whatever_is_said_is_heard_anyway(
    mode: str, state: str, asking: bool, wanted: bool
) -> None:
    assert entry(seen(status=status(mode=mode, state=state), asking=asking), "listen").enabled == wanted


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_widest_line_fits_a_small_screen(language: str, stage: str) -> None:
    slowest_there: Any = {stage: 9999.0}
    slow = seen(last=turn(first_audio_ms=12345.0, **slowest_there), today=Today("cold", 9999, 1e4, 1e5, 1e5))
    for line in read(slow, language):
        assert wrapped(line.strip(), WIDE)[1:] == []


def test_a_stage_over_its_share_is_no_fault_of_a_turn_within_its_budget() -> None:
    quick = seen(last=turn(over=False))
    assert slowest(quick) is None
    assert not any("◀" in line for line in read(quick))
    assert slowest(seen(last=turn(stt=500.0))) == "stt"


def test_a_stage_that_a_turn_did_not_have_keeps_its_place() -> None:
    canned = seen(last=turn(llm_first_token=None, first_clause=None))
    assert "     – ms  the answer's first word" in read(canned)
    assert "     – ms  recognizing your words" in read(Seen())


def test_no_line_of_the_menu_comes_or_goes_under_the_hand() -> None:
    fault = {"code": "x", "text": "The microphone is gone.", "next": "ondam doctor"}
    nothing = read(Seen())
    for other in (seen(), seen(status=status(faults=[fault])), seen(remark=Remark("No.")), seen(last=None)):
        assert len(read(other)) == len(nothing)


def test_faults_come_first_in_words_with_what_to_do() -> None:
    fault = {"code": "x", "text": "The microphone is gone.", "next": "ondam doctor"}
    both = seen(status=status(faults=[fault], engines=[engine("stt", "a", faults=[fault])]))
    assert read(both)[:2] == ["⚠ The microphone is gone.", "Listening: just speak"]
    assert inside(both, "faults") == ["⚠ The microphone is gone.", "    → ondam doctor"]


def test_a_long_fault_is_cut_in_its_line_and_whole_inside() -> None:
    words = "Something is wrong with " + "the very long name of this thing " * 4
    long = seen(status=status(faults=[{"code": "x", "text": words, "next": "Do this. " * 12}] * 2))
    assert read(long)[0] == "⚠ Something is wrong with the very long name of this thing…"
    assert "".join(inside(long, "faults")).replace(" ", "").startswith("⚠" + words.replace(" ", ""))
    other = {"code": "y", "text": "Another.", "next": ""}
    assert read(seen(status=status(faults=[other, {**other, "text": "Third."}])))[0] == "⚠ Another. (+1)"


def test_of_a_fault_in_sentences_the_first_stands_in_the_line_and_all_inside() -> None:
    told = 'There is no microphone "usb". Ondam uses it as soon as it appears.'
    one = seen(status=status(faults=[{"code": "x", "text": told, "next": ""}]))
    assert read(one)[0] == '⚠ There is no microphone "usb"'
    assert " ".join(" ".join(inside(one, "faults")).split()) == f"⚠ {told}"


def test_what_a_click_came_to_is_said_in_its_place_or_like_a_fault() -> None:
    assert entry(seen(remark=Remark("Copied.", "diagnostics")), "diagnostics").text == "Copied."
    assert read(seen(remark=Remark("You may not do this.")))[0] == "⚠ You may not do this."


def test_more_faults_than_there_are_lines_for_are_said_to_be_more() -> None:
    faults = [{"code": str(n), "text": f"Fault {n}.", "next": ""} for n in range(30)]
    lines = inside(seen(status=status(faults=faults)), "faults")
    assert lines[FAULT_LINES - 2 :] == [f"⚠ Fault {FAULT_LINES - 2}.", "… more in the Ondam window"]


def test_without_a_daemon_it_says_why_and_offers_nothing_that_needs_one() -> None:
    gone = lost(
        seen(devices=microphones("a")), Message("daemon_not_running", "It is not running.", "ondam up")
    )
    assert read(gone)[:2] == [
        "⚠ It is not running.",
        "Not running: it cannot hear you (start it with: ondam up)",
    ]
    assert inside(gone, "faults") == ["⚠ It is not running.", "    → ondam up"]
    usable = {e.key for e in shown(gone, "en").walk() if e.visible and e.enabled and not e.separator}
    assert {"panel", "login", "quit", "state"} <= usable
    assert (
        usable & {"listen", "stop", "mute", "mode", "microphone", "speaker", "diagnostics", "shutdown"}
        == set()
    )


@pytest.mark.parametrize(
    ("changed", "wanted", "said"),
    [
        ({"state": "starting"}, "starting", "Starting: it cannot hear you yet"),
        ({}, "listening", "Listening: just speak"),
        ({"mode": "name"}, "listening", "Listening for its name only"),
        ({"mode": "push"}, "listening", "Waiting for the talk button"),
        (
            {"mode": "muted", "microphone": {"name": "a", "state": "muted"}},
            "muted",
            "Muted: it cannot hear you",
        ),
        ({"state": "hearing"}, "hearing", "Hearing you: go on"),
        ({"state": "recognizing"}, "thinking", "Working out what you said"),
        ({"state": "thinking"}, "thinking", "Thinking of an answer"),
        ({"state": "speaking"}, "speaking", "Speaking"),
        ({"state": "switching"}, "switching", "Changing a model, one moment"),
        ({"state": "fault"}, "fault", "Something is wrong: it cannot answer"),
        (
            {"microphone": {"name": "a", "state": "missing"}},
            "fault",
            "The microphone is not connected: it cannot hear you",
        ),
        (
            {"faults": [{"code": "microphone_silent", "text": "Silence.", "next": ""}]},
            "fault",
            "The microphone gives only silence: it hears nothing",
        ),
        (
            {"microphone": {"name": "none", "state": "none"}},
            "muted",
            "It has no microphone: it cannot hear you",
        ),
    ],
)
def test_the_picture_and_the_words_of_each_state(changed: dict[str, Any], wanted: str, said: str) -> None:
    now = seen(status=status(**changed))
    assert icon(now) == wanted
    assert entry(now, "state").text == said
    assert shown(now, "en").title == f"Ondam: {said}"


@pytest.mark.parametrize("code", ["daemon_not_running", "daemon_gone"])
def test_a_daemon_that_is_gone_is_said_not_to_hear(code: str) -> None:
    gone = lost(seen(), Message(code, "Gone.", "ondam up"))
    assert entry(gone, "state").text == "Not running: it cannot hear you (start it with: ondam up)"


@pytest.mark.parametrize(
    "code", ["control_socket_closed_to_you", "daemon_silent", "daemon_failed", "cli_unexpected"]
)
def test_of_a_daemon_that_only_cannot_be_reached_nothing_is_claimed(code: str) -> None:
    far = lost(seen(), Message(code, "No.", ""))
    assert icon(far) == "offline"
    assert entry(far, "state").text == "Not reachable: whether it hears you is not known"


def test_entries_keep_their_place_and_kind_whatever_happens() -> None:
    """Else a host would close the menu under the hand."""
    faults = [{"code": str(n), "text": "가" * 200, "next": "b"} for n in range(9)]
    known_states = [
        Seen(),
        seen(),
        seen(status=status(faults=faults), devices=microphones(*"abcdefghijklmnopq", chosen="c")),
        seen(devices=microphones("a", gone="a"), remark=Remark("Copied."), asking=True, at_login=True),
        seen(last=None, today=None),
    ]

    def skeleton(given: Seen) -> list[tuple[str, bool, bool, bool, bool]]:
        entries = shown(given, "ko").walk()
        return [(e.key, e.separator, e.marked is None, e.radio, bool(e.inside)) for e in entries]

    first = skeleton(known_states[0])
    assert len({key for key, *_ in first}) == len(first)
    for given in known_states[1:]:
        assert skeleton(given) == first


def test_devices_are_radio_buttons_with_the_systems_first() -> None:
    two = seen(devices=microphones("built-in", "usb", chosen="usb", gone="usb"))
    rows = [(e.text, e.marked, e.does) for e in entry(two, "microphone").inside if e.visible]
    assert rows == [
        ("The system's (Built-In)", False, Do("microphone", None)),
        ("Built-In", False, Do("microphone", "built-in")),
        ("Usb (not connected)", True, Do("microphone", "usb")),
    ]
    assert entry(two, "microphone").text == "Microphone: Usb (not connected)"
    unchosen = seen(devices=microphones("built-in", "usb"))
    assert entry(unchosen, "microphone.default").marked
    assert entry(unchosen, "microphone").text == "Microphone: The system's (Built-In)"
    many = seen(devices=microphones(*(f"m{n}" for n in range(40))))
    assert sum(e.visible for e in entry(many, "microphone").inside) == DEVICES + 1
    last = entry(seen(devices=microphones(*(f"m{n}" for n in range(40)), chosen="m39")), "microphone")
    assert [e.text for e in last.inside if e.marked] == ["M39"], "also where there are more than have a place"


def test_lines_are_cut_between_words_and_hangul_takes_two_columns() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("가나다 라마", 7) == ["가나다", "라마"]
    assert wrapped("/a/very/long/path", 8) == ["/a/very/", "long/pat", "h"]
    assert wrapped("") == []
    assert all(len(line) <= COLUMNS for line in wrapped("word " * 100))


def test_events_change_what_is_seen() -> None:
    now = known(Seen(), status(last_turn=turn(first_audio_ms=None)))
    assert now.last is None, "a written turn tells nothing of the wait"
    now = fold(now, {"type": "state", "session": "a", "state": "hearing"})
    now = fold(now, {"type": "mode", "session": "a", "mode": "push"})
    assert now.status is not None
    assert (now.status["state"], now.status["mode"]) == ("hearing", "push")
    heard = turn()
    assert fold(now, {"type": "turn", "session": "a", "turn": heard}).last == heard
    gone = lost(fold(now, {"type": "turn", "session": "a", "turn": heard}), Message("a", "Gone.", ""))
    assert (gone.status, gone.last) == (None, heard)
    assert fold(gone, {"type": "state", "session": "a", "state": "hearing"}) == gone


def test_todays_figures_are_of_one_kind_of_turn_and_never_an_average_of_two() -> None:
    def of(**turns: int) -> wire.Report:
        populations = {
            name: {"first_audio_ms": {"n": turns.get(name, 0), "p50": 500.0, "p95": 700.0, "max": 900.0}}
            for name in ("settled", "after_idle", "cold")
        }
        return cast("wire.Report", json.loads(json.dumps({"groups": [{"populations": populations}]})))

    settled, cold = today(of(settled=3, cold=90)), today(of(cold=2))
    assert settled is not None
    assert (settled.population, settled.turns) == ("settled", 3)
    assert cold is not None
    assert (cold.population, cold.turns, cold.slowest_ms) == ("cold", 2, 900.0)
    assert today(of()) is None
    assert today(cast("wire.Report", {"groups": []})) is None
