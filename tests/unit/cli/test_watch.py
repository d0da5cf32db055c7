"""`ondam status --watch`: lines, JSON and a screen; what it is told, and how it ends."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from rich.console import Console
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon, engine, turn, until

from ondam.cli.screen import growing, level_bar, screen
from ondam.cli.watch import Json, Lines, Output, Screen, connect, follow
from ondam.cli.watched import Watched
from ondam.control import wire
from ondam.control.server import Server
from ondam.errors import ControlError
from ondam.messages import catalog
from ondam.places import places


@asynccontextmanager
async def following(output: Output, daemon: FakeDaemon) -> AsyncIterator[None]:
    watching = asyncio.ensure_future(follow(output, connect))
    await until(lambda: daemon.broadcast.subscribers == 1 or watching.done())
    yield
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def lines() -> Lines:
    return Lines(lambda: "12:00:00")


async def test_every_event_is_one_line_with_its_time_its_name_and_its_words(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[str] = []

    def words() -> str:
        written.append(capsys.readouterr().out)
        return "".join(written)

    async with following(lines(), daemon):
        await until(lambda: "snapshot" in words())
        daemon.broadcast.publish({"type": "state", "session": "wav", "state": "thinking"})
        daemon.broadcast.publish({"type": "state", "session": "s", "state": "hearing"})
        daemon.broadcast.publish({"type": "transcript", "session": "s", "text": "몇 시야?\n지금?"})
        daemon.broadcast.publish({"type": "mode", "session": "s", "mode": "muted"})
        await until(lambda: "muted" in words())
        # Two of one code, each in the reader's language and with an end of its own.
        faults: list[wire.Fault] = [
            {"code": "f", "text": "No mic.", "next": "plug it in"},
            {"code": "f", "text": "No voice.", "next": ""},
        ]
        for now, text in ((faults, "No voice."), (faults[1:], "over: No mic.")):
            daemon.faults = now
            daemon.broadcast.publish({"type": "fault", "fault": {**faults[0], "text": "마이크 없음"}})
            await until(lambda text=text: text in words())  # type: ignore[misc]
        daemon.broadcast.publish({"type": "engine", "engine": engine()})
        daemon.broadcast.publish({"type": "turn", "session": "s", "turn": turn()})
        await until(lambda: "세 시" in words())
    assert words().splitlines() == [
        "12:00:00 snapshot      Ondam 0.1.0 · listening · Korean · up 1 h 02 min · pid 77",
        "12:00:00 state         hearing you",
        "12:00:00 transcript    You: 몇 시야? 지금?",
        "12:00:00 mode          muted: the microphone is closed",
        "12:00:00 fault         ! No mic. → plug it in",
        "12:00:00 fault         ! No voice.",
        "12:00:00 fault_cleared over: No mic.",
        "12:00:00 engine        faster_whisper: ready",
        "12:00:00 turn          Ondam: 세 시입니다. (first audio 640 ms after you had finished)",
    ]


async def test_as_json_each_event_is_what_the_daemon_sent_and_nothing_fleeting(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[str] = []

    def words() -> str:
        written.append(capsys.readouterr().out)
        return "".join(written)

    async with following(Json(), daemon):
        daemon.broadcast.publish({"type": "levels", "microphone_db": -40.0, "speaker_db": None})
        daemon.broadcast.publish({"type": "mode", "session": "s", "mode": "push"})
        await until(lambda: words().endswith('"push"}\n'))
    first, second = [json.loads(line) for line in words().splitlines()]
    assert (first["type"], first["status"]["pid"]) == ("snapshot", 77)
    assert second == {"type": "mode", "session": "s", "mode": "push"}


async def test_a_daemon_that_goes_away_is_told_once_and_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.cli.watch.AGAIN_S", 0.01)
    daemon = FakeDaemon()
    server = Server(daemon, places().control_socket)
    await server.start()
    written: list[str] = []

    def words() -> str:
        written.append(capsys.readouterr().out)
        return "".join(written)

    async with following(lines(), daemon):
        await until(lambda: "snapshot" in words())
        await server.stop()
        await until(lambda: "gone" in words())
        await asyncio.sleep(0.1)  # several attempts
        server = Server(daemon, places().control_socket)
        await server.start()
        await until(lambda: words().count("snapshot") == 2)
    await server.stop()
    assert [line.split()[1] for line in words().splitlines()] == ["snapshot", "gone", "snapshot"]


async def test_without_a_daemon_at_the_beginning_it_says_what_to_type(ondam: Ondam) -> None:
    done = await ondam("status", "--watch")
    assert (done.code, done.out) == (4, "")
    assert "ondam up" in done.err


async def test_plain_alone_makes_no_sense(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("status", "--plain")
    assert (done.code, done.out) == (2, "")
    assert "--watch" in done.err


async def test_asked_to_end_or_with_nobody_to_read_it_ends_at_once_with_code_0(daemon: FakeDaemon) -> None:
    """A process of its own for each way: signals and pipes are a process's."""

    def started() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ondam", "status", "--watch"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)

    def ended(process: subprocess.Popen[bytes], how: str) -> tuple[int, bytes]:
        assert process.stdout is not None and process.stderr is not None
        assert b"snapshot" in process.stdout.readline()
        if how == "pipe":
            process.stdout.close()
        else:
            process.send_signal(getattr(signal, how))
        code = process.wait(10)
        told = process.stderr.read()
        process.stderr.close()
        process.stdout.close()
        return code, told

    ways = ("SIGINT", "SIGTERM", "SIGHUP", "pipe")
    watching = [await asyncio.to_thread(started) for _ in ways]
    done = [await asyncio.to_thread(ended, *one) for one in zip(watching, ways, strict=True)]
    assert done == [(0, b"")] * len(ways)


def watched(status: wire.Status, *turns: wire.Turn) -> Watched:
    made = Watched()
    made.begin(status, turns)
    return made


def shown(watched: Watched, width: int = 140, height: int = 30) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    console.print(screen(watched, width, height))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_screen_shows_state_levels_the_running_turn_engines_and_the_last_turns() -> None:
    seen = watched(FakeDaemon().status(), turn(3), turn(2))
    for event in (
        wire.StateEvent(type="state", session="s", state="thinking"),
        wire.LevelsEvent(type="levels", microphone_db=-30.0, speaker_db=None),
        wire.TranscriptEvent(type="transcript", session="s", text="몇 시야?"),
        wire.MarkEvent(type="mark", turn=4, draft=None, name="last_voiced", at_ms=0.0),
        wire.MarkEvent(type="mark", turn=4, draft=None, name="endpoint", at_ms=200.0),
        wire.MarkEvent(type="mark", turn=4, draft=None, name="stt_sent", at_ms=200.0),
        wire.MarkEvent(type="mark", turn=4, draft=None, name="stt_final", at_ms=400.0),
        wire.PartialEvent(type="partial", turn=4, reply="세 시"),
    ):
        seen.take(event)
    lines = shown(seen)
    assert lines[0] == "◓ Ondam 0.1.0 · thinking · Korean · up 1 h 02 min · pid 77"
    assert lines[1] == f"Microphone  {'█' * 10}{'░' * 10}  -30 dB  내장 마이크 (ok)"
    assert lines[2].startswith(f"Speaker     {'╌' * 20}       –  default (")
    assert lines[4:6] == ["You: 몇 시야?", "Ondam: 세 시"]
    assert lines[6].split() == ["endpoint", "█" * 20, "200", "ms"]
    assert lines[7] == f"recognition{' ' * 22}{'█' * 20}  200 ms"
    assert any(line.startswith("stt  faster_whisper  ready  whisper-base") for line in lines)
    rows = [line for line in lines if "몇 시야?" in line and "640" in line]
    assert len(rows) == 2
    assert rows[0].split()[2:] == ["300◀", "5", "150", "80", "40", "35", "30", "몇", "시야?"]


def test_what_is_wrong_stands_above_everything_but_the_devices_and_what_to_do_beside_it() -> None:
    daemon = FakeDaemon(faults=[{"code": "f", "text": "No\nmic.", "next": "plug it in"}])
    seen = watched(daemon.status())
    assert shown(seen)[3] == "! No mic.  → plug it in"
    daemon.faults = []
    seen.refresh(daemon.status())
    assert not any(line.startswith("!") for line in shown(seen))


def test_on_80_columns_the_last_turn_has_its_stages_and_the_figures_are_there() -> None:
    status = FakeDaemon().status()
    figures = {"n": 20, "p50": 640.4, "p95": 1200.0, "over_budget": 3}
    none = {"n": 0, "p50": None, "p95": None, "over_budget": 0}
    status["report"] = {
        "populations": {"settled": {"first_audio_ms": none}, "cold": {"first_audio_ms": figures}}
    }
    status["conditions"] = {"budget_ms": 800}
    lines = shown(watched(status, *map(turn, range(32, 0, -1))), 80, 24)
    assert len(lines) == 23
    at = next(place for place, line in enumerate(lines) if line.startswith("first audio: p50"))
    assert lines[at] == "first audio: p50 640 ms, p95 1200 ms; 3 of 20 over the budget of 800 ms (cold)"
    assert lines[at + 2] == "the last turn: first audio 640 ms"
    assert [line.split()[-4:-1] for line in lines[at + 3 : at + 4]] == [["300", "ms", "◀"]]
    assert [line.split()[-2:] for line in lines[at + 4 : at + 10]] == [
        [ms, "ms"] for ms in ("5", "150", "80", "40", "35", "30")
    ]
    assert lines[-1].endswith("몇 시야?")


@pytest.mark.parametrize("height", [6, 10, 24])
@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("language", ["ko", "en"])
def test_a_screen_of_any_size_is_never_left(
    width: int, height: int, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", language)
    seen = watched(FakeDaemon().status(), *map(turn, range(32, 0, -1)))
    lines = shown(seen, width, height)
    # What does not fit is of the engines: the last turns take only what is left.
    assert len(lines) <= max(height, 9)
    assert all(len(line) <= width for line in lines)


def test_a_turn_that_is_over_goes_to_the_others_and_the_next_begins_empty() -> None:
    seen = watched(FakeDaemon().status())
    seen.take({"type": "transcript", "session": "s", "text": "몇 시야?"})
    seen.take({"type": "mark", "turn": 4, "draft": None, "name": "endpoint", "at_ms": 1.0})
    seen.take({"type": "turn", "session": "s", "turn": turn(4)})
    assert (seen.transcript, seen.reply, seen.turn, seen.marks_ms) == (None, "", None, {})
    assert [one["id"] for one in seen.turns] == [4]
    assert seen.status is not None and seen.status["turns"] == 4


def test_marks_of_another_turn_replace_those_of_the_one_before() -> None:
    seen = watched(FakeDaemon().status())
    seen.take({"type": "mark", "turn": 4, "draft": None, "name": "endpoint", "at_ms": 1.0})
    seen.take({"type": "mark", "turn": 5, "draft": None, "name": "stt_sent", "at_ms": None})
    assert (seen.turn, seen.marks_ms) == (5, {"stt_sent": None})


def test_marks_of_another_draft_replace_those_of_the_one_that_was_dropped() -> None:
    seen = watched(FakeDaemon().status())
    seen.take({"type": "mark", "turn": 4, "draft": 1, "name": "llm_sent", "at_ms": None})
    seen.take({"type": "mark", "turn": 4, "draft": 2, "name": "stt_sent", "at_ms": None})
    assert seen.marks_ms == {"stt_sent": None}


def test_a_turn_from_a_wav_is_one_of_the_last_and_nothing_that_is_heard_here() -> None:
    seen = watched(FakeDaemon().status())
    seen.take({"type": "transcript", "session": "s", "text": "몇 시야?"})
    seen.take({"type": "state", "session": "wav", "state": "hearing"})
    seen.take({"type": "transcript", "session": "wav", "text": "Of a file."})
    seen.take({"type": "turn", "session": "wav", "turn": turn(4)})
    assert seen.status is not None and seen.status["state"] == "listening"
    assert seen.transcript == "몇 시야?"
    assert [one["id"] for one in seen.turns] == [4]


def test_while_the_daemon_is_away_what_was_known_stays_and_no_level_is_claimed() -> None:
    seen = watched(FakeDaemon().status(), turn(3))
    seen.take({"type": "levels", "microphone_db": -20.0, "speaker_db": -20.0})
    seen.gone()
    lines = shown(seen)
    assert lines[0] == "✕ Ondam does not answer; it is waited for"
    assert "╌" in lines[1] and any("640" in line for line in lines)


@pytest.mark.parametrize(
    ("level", "bar"),
    [(None, "╌╌╌╌"), (-100.0, "░░░░"), (-60.0, "░░░░"), (-30.0, "██░░"), (0.0, "████"), (3.0, "████")],
)
def test_levels_are_bars(level: float | None, bar: str) -> None:
    assert level_bar(level, 4) == bar


def test_stages_grow_on_the_clock_of_the_latest_and_none_is_invisible() -> None:
    marks: dict[str, float | None] = {"last_voiced": 0.0, "endpoint": 100.0, "stt_sent": 100.0}
    assert growing(marks, 10) == [("endpoint", "█" * 10, 100.0)]
    marks |= {"stt_final": 101.0, "llm_sent": None}
    assert growing(marks, 10) == [("endpoint", "█" * 10, 100.0), ("stt", " " * 9 + "█", 1.0)]
    assert growing({"endpoint": None}, 10) == []


async def test_the_screen_is_drawn_for_what_is_new_and_asks_for_levels(daemon: FakeDaemon) -> None:
    drawn: list[tuple[str, float | None, list[str]]] = []

    def draw(watched: Watched) -> None:
        assert watched.status is not None
        faults = [fault["text"] for fault in watched.status["faults"]]
        drawn.append((watched.status["state"], watched.microphone_db, faults))

    async with following(Screen(draw), daemon):
        await until(lambda: bool(drawn))
        assert daemon.broadcast.followers == 1
        daemon.broadcast.publish({"type": "levels", "microphone_db": -12.5, "speaker_db": None})
        await until(lambda: drawn[-1][1] == -12.5)
        daemon.faults = [{"code": "f", "text": "No mic.", "next": ""}]
        daemon.broadcast.publish({"type": "fault", "fault": {**daemon.faults[0], "text": "마이크 없음"}})
        await until(lambda: drawn[-1][2] == ["No mic."])
    assert ("turns", 32) in daemon.asked
    assert daemon.read_in[1:] == ["en", "en"]  # the first is of the snapshot


def test_every_word_of_the_screen_is_there_in_both_languages() -> None:
    for code in ("watch_away", "watch_waiting", "watch_no_turn", "watch_plain_alone"):
        assert {"ko", "en"} <= catalog()[code].keys()


async def test_who_was_never_let_in_is_not_waited_for(daemon: FakeDaemon) -> None:
    daemon.failing = ControlError("control_not_permitted", uid=1, permission="read")
    with pytest.raises(ControlError):
        await asyncio.wait_for(follow(Screen(lambda watched: None), connect), 5)
