"""``ondam report`` for a person: settled turns first, differences before figures, findings and a way out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon, turn
from tests.unit.journal.rows import FACTS, row
from tests.unit.journal.test_report import sqlite

from ondam.cli.turns import table
from ondam.errors import JournalError
from ondam.journal.reading import Selection
from ondam.journal.steady import Steadiness
from ondam.journal.summary import Summary
from ondam.places import places


def stored(path: Path, rows: list[dict[str, Any]], **facts: Any) -> str:
    path.write_text(json.dumps({"conditions": {"name": "c1", **FACTS, **facts}, "turns": rows}), "utf-8")
    return str(path)


async def test_a_running_daemon_is_asked_with_the_selection(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam(
        "report", "--since", "2026-01-31T12:00+00:00", "--session", "s", "--plan", "c", "--json"
    )
    assert (done.code, done.json) == (0, {"turns": 0, "more": False, "skipped": 0, "groups": []})
    since = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert daemon.asked == [("report", Selection(since=since, session="s", plan="c"), "en")]


async def test_what_the_daemon_cannot_report_is_told(ondam: Ondam, daemon: FakeDaemon) -> None:
    daemon.failing = JournalError("report_failed", reason="the disk is gone")
    done = await ondam("report")
    assert (done.code, done.out) == (1, "")
    assert done.err == "The report could not be made: the disk is gone\n→ ondam report --journal FILE\n"


async def test_without_a_daemon_its_file_is_read(ondam: Ondam) -> None:
    assert (await ondam("report")).out == "The journal holds no turns yet.\n→ ondam up\n"
    assert (await ondam("report", "--since", "2h")).out == "No turn fits this selection.\n"
    journal = places().journal
    journal.parent.mkdir(parents=True)
    sqlite(journal, [row(n) for n in range(12)])
    (group,) = (await ondam("report", "--json")).json["groups"]
    assert (group["conditions"], group["turns"], group["facts"]) == ("c1", 12, FACTS)


async def test_a_wrong_moment_is_a_usage_error_with_what_is_wanted(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("report", "--until", "tomorrow")
    assert done.code == 2 and "--until: 2h, 7d, an ISO date" in done.err
    assert daemon.asked == []
    turned = await ondam("report", "--since", "1h", "--until", "2h")
    assert turned.code == 2 and "no moment lies between since 1h and until 2h" in turned.err
    assert daemon.asked == []
    assert (await ondam("report", "--journal", "a", "--run", "b")).code == 2


async def test_the_settled_come_first_and_findings_say_what_to_do(
    ondam: Ondam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    rows = [row(n, 400.0, population="cold") for n in range(3)] + [
        row(3 + n, underruns=int(n == 9)) for n in range(10)
    ]
    shown = (await ondam("report", "--run", stored(tmp_path / "run.json", rows))).out
    order = [
        "조건 c1: 13턴",
        "llm: llama_server, smollm2, cpu",
        "안정된 턴: 10턴",
        "엔진이 막 시작된 턴: 3턴",
        "살펴볼 점",
    ]
    places_ = [shown.index(part) for part in order]
    assert places_ == sorted(places_)
    assert (
        "  주의: 13턴 중 1턴에서 스피커 버퍼가 1번 비어 소리가 끊겼습니다.\n    → audio.speaker_latency_ms"
        in shown
    )


async def test_the_conditions_are_told_with_provider_graphs_and_how_long_it_had_run(
    ondam: Ondam, tmp_path: Path
) -> None:
    rows = [row(n, warmth={"answers": 20, "ready_s": 600.0 + n, "idle_s": 1.0}) for n in range(11)]
    rows.append(row(11, 900.0, outcome="interrupted"))
    engines = {
        "llm": {"name": "vllm", "device": "cuda:0", "cuda_graphs": False, "threads": 2},
        "tts": {"name": "piper", "providers": {"voice": ["CUDAExecutionProvider", "CPUExecutionProvider"]}},
        "stt": {"name": "tcp://10.0.0.2:1", "outside": True, "model": None},
    }
    shown = (await ondam("report", "--run", stored(tmp_path / "run.json", rows, engines=engines))).out
    assert "engines warm for 10 min at the median" in shown
    assert "llm: vllm, cuda:0, CUDA graphs off, threads 2\n" in shown
    assert "tts: piper, voice CUDAExecutionProvider+CPUExecutionProvider\n" in shown
    assert "stt: tcp://10.0.0.2:1, what it runs is reported by nobody\n" in shown
    assert "Spoken over by the user: 1." in shown and "Over budget: first audio; beside a stage" in shown


async def test_what_nobody_wrote_down_is_not_shown_as_dashes(ondam: Ondam, tmp_path: Path) -> None:
    turns = [
        {"outcome": "answered", "settled": True, "first_audio_ms": 500.0, "answer_ms": 900.0}
        for _ in range(12)
    ]
    (tmp_path / "turns.json").write_text(json.dumps(turns), "utf-8")
    shown = (await ondam("report", "--journal", str(tmp_path / "turns.json"))).out
    assert "Nobody wrote down the conditions" in shown and "endpoint" not in shown
    assert next(line.split() for line in shown.splitlines() if "whole answer" in line)[2:4] == ["12", "900"]


@pytest.mark.parametrize(
    "odd",
    [
        {"endpoint": "silence"},
        {"drafts": 8},
        {"budget_ms": "soon"},
        {"settling": {"steady_turns": None, "steady_within": 0.1}},
        {"settling": {"steady_turns": 5, "steady_within": "little"}},
        {"engines": {"llm": {"name": "vllm", "differs": [1]}, "stt": 3}},
    ],
    ids=str,
)
async def test_conditions_from_elsewhere_may_hold_anything(
    ondam: Ondam, tmp_path: Path, odd: dict[str, Any]
) -> None:
    run = stored(tmp_path / "run.json", [row(n) for n in range(12)], **odd)
    done = await ondam("report", "--run", run)
    assert (done.code, done.err) == (0, "") and "Settled: 12 turns" in done.out


async def test_a_session_is_not_looked_for_in_the_file_that_is_held_against(
    ondam: Ondam, tmp_path: Path
) -> None:
    one = stored(tmp_path / "one.json", [row(n, session="a-1") for n in range(10)])
    two = stored(tmp_path / "two.json", [row(n, session="b-1") for n in range(10)])
    assert (await ondam("report", "--run", one, "--session", "a", "--against", two)).code == 0


async def test_two_runs_say_what_differs_before_any_figure(ondam: Ondam, tmp_path: Path) -> None:
    one = stored(tmp_path / "one.json", [row(n, 500.0) for n in range(10)])
    two = stored(tmp_path / "two.json", [row(n, 900.0) for n in range(10)], max_tokens=32)
    shown = (await ondam("report", "--run", one, "--against", two)).out.splitlines()
    assert shown[:2] == ["Conditions differ: A = c1, B = c1", "  max_tokens  64  ≠  32"]
    figures = next(line.split() for line in shown if "first audio" in line)
    assert figures[2:] == ["10", "10", "500", "900", "500", "900"]
    held = (await ondam("report", "--run", one, "--against", two, "--json")).json["beside"]
    assert held["differs"] == [{"key": "max_tokens", "a": 64, "b": 32}]
    same = (await ondam("report", "--run", one, "--against", one)).out
    assert same.startswith("The conditions are the same.\n")


async def test_other_conditions_of_the_same_journal_can_be_held_against(ondam: Ondam, tmp_path: Path) -> None:
    rows = [row(n, 500.0) for n in range(10)] + [row(20 + n, 900.0, conditions="d2") for n in range(10)]
    journal = str(sqlite(tmp_path / "j.sqlite", rows))
    shown = (await ondam("report", "--journal", journal, "--against", "c1")).out
    # Nobody wrote down what d2 was.
    assert shown.startswith("The conditions of one side were not recorded")
    assert next(line.split()[4:6] for line in shown.splitlines() if "first audio" in line) == ["900", "500"]
    itself = await ondam("report", "--journal", journal, "--against", "d")
    assert itself.code == 1 and "both sides would be the same turns" in itself.err
    none = await ondam("report", "--journal", journal, "--against", "e3")
    assert none.code == 1 and 'no turn of "e3"' in none.err


def test_the_status_has_the_last_turns_in_a_few_figures() -> None:
    summary = Summary(Steadiness(5, 0.1))
    assert summary.as_json()["turns"] == 0
    for n in range(210):
        summary.add(row(n, 900.0 if n == 209 else 500.0))
    told = summary.as_json()
    assert (told["turns"], told["drifting"]) == (200, 0)
    first = told["populations"]["settled"]["first_audio_ms"]
    assert (first["n"], first["p50"], first["max"], first["over_budget"]) == (200, 500.0, 900.0, 1)
    assert told["populations"]["cold"]["turns"] == 0


def test_the_star_beside_a_turn_does_not_call_a_rest_a_start() -> None:
    rested: Any = {**turn(), "settled": False, "population": "after_idle"}
    *_, legend = table([rested])
    assert legend.startswith("* right after a start of the engines or a rest")
