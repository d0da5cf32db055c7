"""``ondam budget``: for a person, for a program, with a daemon and without."""

from __future__ import annotations

import pytest
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon
from tests.unit.journal.test_report import sqlite
from tests.unit.measure.test_budget_answer import turn

from ondam.errors import ControlError
from ondam.measure.budget import Load
from ondam.measure.budget_answer import Wanted
from ondam.places import places


async def test_without_a_daemon_a_preset_is_one_json_object(ondam: Ondam) -> None:
    told = (await ondam("budget", "--preset", "embedded-cpu", "--set", "stt=250", "--json")).json
    assert [stage["stage"] for stage in told["stages"]] == [
        *("endpoint", "ipc", "stt", "llm_first_token", "first_clause", "tts_first_audio", "playback_buffer")
    ]
    # 83 + 13 + 250 + 72 + 105 + 221 + 11
    assert (told["total_ms"], told["zone"], told["bottleneck"]) == (755.0, "conversational", "endpoint")


async def test_a_preset_asks_no_daemon_and_this_machine_does(ondam: Ondam, daemon: FakeDaemon) -> None:
    assert (await ondam("budget", "--preset", "h100", "--json")).code == 0
    assert daemon.asked == []
    done = await ondam("budget", "--load", "3", "--every", "20", "--no-drafts", "--language", "ko", "--json")
    assert done.json["title"] == "기본 엔진, CPU 두 코어"
    assert daemon.asked == [("budget", Wanted(drafts=False, load=Load(3, 20.0)), "ko")]


async def test_this_machine_without_turns_says_what_to_do(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("budget", "--preset", "this-machine")
    assert (done.code, done.out) == (2, "")
    assert "Talk with it (ondam up), or name another preset" in done.err
    shown = (await ondam("budget")).out
    assert shown.startswith("This machine's journal has 0 settled spoken turns")


async def test_without_a_daemon_the_journal_is_read(ondam: Ondam) -> None:
    journal = places().journal
    journal.parent.mkdir(parents=True)
    sqlite(journal, [turn(n) for n in range(12)])
    told = (await ondam("budget", "--json")).json
    assert (told["preset"], told["total_ms"]) == ("this-machine", 512.0)
    shown = (await ondam("budget")).out
    assert "First audio, measured in 12 turns: 512 ms at the median (conversational), 95 of 100" in shown
    assert "By the model, from the medians above: 512 ms" in shown


async def test_a_daemon_that_may_not_be_asked_is_told(ondam: Ondam, daemon: FakeDaemon) -> None:
    daemon.failing = ControlError("control_not_permitted", uid=1, permission="read")
    assert (await ondam("budget")).code == 4


async def test_two_presets_stand_beside_each_other(ondam: Ondam, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = (await ondam("budget", "--preset", "h100", "--against", "h200", "--load", "40")).out
    (voice,) = (line.split() for line in shown.splitlines()[-6:] if "first sound" in line)
    assert voice == ["first", "sound", "100", "673", "+573", "0", "388", "+388"]
    assert "A conversational, B beyond conversation" in shown
    assert "M/M/c: Saturated: with 40 speakers" in shown and "more comes to the voice than" in shown
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    korean = (await ondam("budget", "--preset", "process-per-utterance")).out
    assert "효과가 큰 순서로 할 수 있는 일" in korean and "644 ms 단축, 음성 인식" in korean


async def test_where_the_figures_are_from_is_told_to_whoever_asks(ondam: Ondam) -> None:
    shown = (await ondam("budget", "--preset", "h100")).out
    assert "published 2026-01\n" in shown and "ondam budget --sources" in shown
    told = (await ondam("budget", "--preset", "h100", "--against", "laptop", "--sources")).out
    assert "recognition: published, 2026-01: faster-whisper in a Korean phone agent on one H100 80 GB" in told
    assert "first sound: published, read 2026-11-30: first piece of synthesised sound after 80 to 200" in told
    assert "natural: gaps between turns are about 200 ms" in told and "drafts are off on battery" in told
    korean = (await ondam("budget", "--preset", "h100", "--sources", "--language", "ko")).out
    assert "음성 인식: 발표된 수치, 2026-01: H100 80 GB 한 장의 한국어 전화 에이전트" in korean


async def test_wrong_wishes_are_usage_errors(ondam: Ondam) -> None:
    done = await ondam("budget", "--set", "latency=3")
    assert done.code == 2 and "Known: endpoint, ipc" in done.err
    wrong = await ondam("budget", "--preset", "h2000", "--json")
    assert wrong.code == 2 and 'did you mean "h200"' in wrong.json["error"]["text"]
