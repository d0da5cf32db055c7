"""``ondam bench --cold``, ``--concurrency``, ``--quality`` against a fake daemon."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fakes.engines import ScriptedEngines
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.audio import write_wav
from ondam.cli.bench.cold import _Ways
from ondam.cli.bench.modes import Table
from ondam.config import load
from ondam.deploy import prepare
from ondam.measure import concurrency
from ondam.measure.raw import RawEngines
from ondam.places import places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.launch import Home
from ondam.types import Audio


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> ScriptedEngines:
    scripted = ScriptedEngines(heard="Hello.", stt_s=0.0, tts_s=0.0)

    def of(*_: Any) -> RawEngines:
        return RawEngines(scripted, scripted, scripted, config=load(None), language="en")

    monkeypatch.setattr(prepare, "prepare", lambda *_: None)
    monkeypatch.setattr(concurrency, "STAGGER_S", 0.01)
    monkeypatch.setattr(concurrency, "PAUSE_S", (0.0, 0.01))
    monkeypatch.setattr(RawEngines, "of", of)
    return scripted


@pytest.mark.parametrize(("setting", "network"), [("possible", "none"), ("off", "open")])
def test_a_process_per_utterance_has_the_network_that_the_resident_engine_has(
    monkeypatch: pytest.MonkeyPatch, setting: str, network: str
) -> None:
    planned = PlannedEngine("piper", "tts", "", Path("/voice"), None, "cpu", 1, "en")
    monkeypatch.setattr("ondam.app.planned", lambda *_: SimpleNamespace(launched=(planned,)))
    monkeypatch.setattr("ondam.supervisor.environment.installed", lambda *_: Home(Path("/py"), Path("/e")))
    config = load(None, {"supervisor": {"isolation": setting}})
    running: Any = SimpleNamespace(here=places(), config=config)
    resident: Any = {"name": "piper", "report": None}
    launch = _Ways(running).launch(resident)
    assert launch is not None
    assert launch.network == network


async def test_a_step_for_each_number_of_sessions(daemon: FakeDaemon, ondam: Ondam) -> None:
    done = await ondam(
        "bench", "--language", "en", "--concurrency", "2,1", "--turns", "4", "--settle", "0", "--json"
    )
    assert done.code == 0, done.err
    told = done.json
    assert told["mode"] == "concurrency"
    assert [step["sessions"] for step in told["steps"]] == [1, 2]
    assert [step["first_audio_ms"]["n"] for step in told["steps"]] == [4, 4]
    assert (told["serves"], told["stops_at"]) == (2, None)
    assert told["conditions"]["run"]["turns_each"] == 4
    assert told["conditions"]["run"]["prompts"] == {"answered": 8, "whole_from_cache": 0}
    assert {"p50", "p90", "p95"} <= set(told["steps"][0]["waited_ms"]["stt"])


async def test_every_way_to_measure_asks_in_the_language_of_the_daemon_that_runs(
    daemon: FakeDaemon, ondam: Ondam
) -> None:
    done = await ondam("bench", "--concurrency", "1", "--turns", "1", "--settle", "0", "--json")
    assert "Asking in Korean" in done.err
    await ondam("bench", "--concurrency", "1", "--turns", "1", "--settle", "0", "--language", "en")
    assert list(dict.fromkeys(call[3] for call in daemon.asked if call[0] == "wav_turn")) == ["ko", "en"]


@pytest.mark.parametrize("wrong", ["0", "", "1000", "two", "1,,2", "1.5", "-1", "1;2"])
async def test_a_list_that_makes_no_sense_is_refused(daemon: FakeDaemon, ondam: Ondam, wrong: str) -> None:
    done = await ondam("bench", f"--concurrency={wrong}")
    assert done.code == 2
    assert "1,2,4,8" in done.err
    assert daemon.asked == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--cold", "--quality"], "one at a time"),
        (["--cold", "--against", "drafts.after_ms=96"], "--against"),
        (["--quality", "--stub", "stt=1,ttft=1,clause=1,tts=1"], "--stub"),
        (["--concurrency", "1", "--ab", "shipped", "shipped"], "--ab"),
        (["--names", "Seoul"], "--quality"),
    ],
)
async def test_what_does_not_go_together_is_refused(
    daemon: FakeDaemon, ondam: Ondam, given: list[str], told: str
) -> None:
    done = await ondam("bench", *given)
    assert done.code == 2
    assert told in done.err
    assert daemon.asked == []


async def test_errors_stand_beside_the_latency(daemon: FakeDaemon, ondam: Ondam, tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", Audio(np.zeros(8000, np.int16), 16_000))
    (tmp_path / "a.txt").write_text("Hello there.", "utf-8")
    given = ["bench", "--language", "en", "--quality", "--clips", str(tmp_path), "--names", "Ada, Bo"]
    done = await ondam(*given, "--json")
    assert done.code == 0, done.err
    told = done.json
    assert (told["names"], told["stt"]["without_names"]["wer"]) == (["Ada", "Bo"], 0.5)
    assert told["stt"]["with_names"]["ms"]["n"] == told["round_trip"]["first_audio_ms"]["n"] == 1
    shown = await ondam(*given)
    assert "50.0 %" in shown.out
    assert '"Hello there." was heard as "Hello."' in shown.out


async def test_a_missing_transcript_is_told_before_anything_starts(
    daemon: FakeDaemon, ondam: Ondam, tmp_path: Path
) -> None:
    write_wav(tmp_path / "a.wav", Audio(np.zeros(8000, np.int16), 16_000))
    done = await ondam("bench", "--quality", "--clips", str(tmp_path))
    assert done.code == 7
    assert "a.txt" in done.err
    assert daemon.asked == []


async def test_a_table_for_each_step_is_drawn_for_people(daemon: FakeDaemon, ondam: Ondam) -> None:
    done = await ondam("bench", "--language", "en", "--concurrency", "1", "--turns", "2", "--settle", "0")
    assert done.code == 0, done.err
    assert "640" in done.out
    assert "goes on scaling" in done.out


def test_a_table_breaks_its_titles_between_words_and_no_figure(capsys: pytest.CaptureFixture[str]) -> None:
    Table(["sessions", "waits for STT p50, p90", "MiB"], [[1, "8, 9", 98.5], [16, "105, 1780", None]]).print()
    assert capsys.readouterr().out.splitlines() == [
        "          waits for",
        "           STT p50,",
        "sessions        p90   MiB",
        "1              8, 9  98.5",
        "16        105, 1780     –",
    ]
