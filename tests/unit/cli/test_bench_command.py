"""``ondam bench`` against a fake daemon: the shape of what it prints, and what it says of what went wrong."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.fakes.engines import ScriptedEngines
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.config import load
from ondam.control import sound
from ondam.deploy import prepare
from ondam.errors import AudioError, ControlError
from ondam.journal.marks import STAGES
from ondam.measure import bench
from ondam.measure.clips import clips
from ondam.measure.raw import RawEngines

FIGURES = {"p50", "p90", "p95", "p99", "max", "n"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> ScriptedEngines:
    """No builds, no rests, and engines without a socket."""
    scripted = ScriptedEngines(stt_s=0.0, ttft_s=0.0, token_s=0.0, tts_s=0.0)

    def of(*_: Any) -> RawEngines:
        return RawEngines(scripted, scripted, scripted, config=load(None), language="en")

    monkeypatch.setattr(prepare, "prepare", lambda *_: None)
    monkeypatch.setattr(bench, "REST_S", 0.0)
    monkeypatch.setattr(RawEngines, "of", of)
    return scripted


async def test_the_json_has_turns_figures_and_conditions(daemon: FakeDaemon, ondam: Ondam) -> None:
    done = await ondam("bench", "--language", "en", "--turns", "3", "--settle", "1", "--json")
    assert done.code == 0, done.err
    told = done.json
    assert len(told["turns"]) == told["first_audio_ms"]["n"] == 3
    for name in ("first_audio_ms", "answer_ms", "engine_sum_ms", "engines_own_ms"):
        assert set(told[name]) == FIGURES, name
    assert set(told["stages_ms"]) == set(STAGES)
    assert all(set(figures) == FIGURES for figures in told["stages_ms"].values())
    assert (told["first_audio_ms"]["p50"], told["answer_ms"]["p50"]) == (640, 2400)
    assert told["engine_sum_ms"]["n"] == 3
    assert (told["over_budget"], told["failed"], told["raw_failed"]) == (0, 0, 0)
    run = told["conditions"]["run"]
    assert len(run["clips"]) >= 8
    assert all(len(clip["sha256"]) == 64 for clip in run["clips"])
    assert (run["turns_before"], run["settled_turns"], run["seed"], run["prompt"]) == (1, 3, 0, None)
    assert (run["prompt_tokens_p50"], run["cached_tokens_p50"], run["output_tokens_p50"]) == (42, 30, 9)
    assert (run["answer_s_p50"], run["budget_ms"]) == (1.5, 800)
    assert {"load_average_before", "load_average_after", "machine_uptime_s", "started_at"} <= set(run)
    assert told["prompts"] == {"prompt_tokens_p50": 42, "cached_tokens_p50": 30, "whole_from_cache": 0}
    assert "against" not in told


async def test_it_asks_in_the_language_of_the_daemon_that_runs_unless_told_otherwise(
    daemon: FakeDaemon, ondam: Ondam
) -> None:
    # Whoever types reads English; the daemon speaks Korean.
    own = await ondam("bench", "--turns", "1", "--settle", "0", "--json")
    assert "Asking in Korean, which the daemon that is running speaks" in own.err
    asked = {clip["sha256"] for clip in own.json["conditions"]["run"]["clips"]}
    assert asked == {sha256(clip.wav).hexdigest() for clip in clips("ko")}
    told = await ondam("bench", "--turns", "1", "--settle", "0", "--json", "--language", "en")
    assert "Asking in" not in told.err
    assert [call[3] for call in daemon.asked if call[0] == "wav_turn"] == ["ko", "en"]


async def test_each_question_is_a_conversation_of_its_own(daemon: FakeDaemon, ondam: Ondam) -> None:
    await ondam("bench", "--language", "en", "--turns", "9", "--settle", "0", "--json")
    turns = [call for call in daemon.asked if call[0] == "wav_turn"]
    assert len(turns) == 9
    assert all(call[3:] == ("en", True) for call in turns)
    assert len({call[1] for call in turns}) >= 8, "another question each time"


async def test_the_other_side_is_asked_on_the_same_daemon(daemon: FakeDaemon, ondam: Ondam) -> None:
    settings = "endpoint.mode=silence,drafts.most_per_turn=0"
    done = await ondam(
        "bench", "--language", "en", "--turns", "2", "--settle", "0", "--json", "--against", settings
    )
    other = {"endpoint": {"mode": "silence"}, "drafts": {"most_per_turn": 0}}
    assert done.json["against"]["settings"] == other
    assert done.json["difference_ms"]["n"] == 2
    assert [call[5:] for call in daemon.asked if call[0] == "wav_turn"] == [(), (other,), (other,), ()]


@pytest.mark.parametrize("wrong", ["llm.max_tokens=3", "endpoint.mode=never", "endpoint"])
async def test_what_cannot_differ_is_refused_before_anything_starts(
    daemon: FakeDaemon, ondam: Ondam, wrong: str
) -> None:
    done = await ondam("bench", "--language", "en", "--against", wrong)
    assert done.code == 3
    assert wrong.partition("=")[0].split(".")[0] in done.err
    assert daemon.asked == []


async def test_a_turn_that_fails_is_shown(daemon: FakeDaemon, ondam: Ondam) -> None:
    daemon.failing = AudioError("wav_without_speech")
    done = await ondam("bench", "--language", "en", "--turns", "2", "--settle", "0")
    assert done.code == 1, "not one was answered"
    assert "2 failed" in done.out
    assert ".wav: " in done.out


async def test_a_daemon_that_goes_away_ends_the_run(daemon: FakeDaemon, ondam: Ondam) -> None:
    daemon.failing = ControlError("daemon_gone", reason="EOF")
    done = await ondam("bench", "--language", "en", "--turns", "2", "--json")
    assert done.code == 4
    assert done.json["error"]["code"] == "daemon_gone"


async def test_engines_that_fail_without_the_daemon_are_shown(
    daemon: FakeDaemon, ondam: Ondam, at_once: ScriptedEngines
) -> None:
    at_once.breaks = {"stt"}
    done = await ondam("bench", "--language", "en", "--turns", "2", "--settle", "0")
    assert "failed 2 times" in done.out


async def test_settings_of_its_own_need_a_daemon_of_its_own(daemon: FakeDaemon, ondam: Ondam) -> None:
    done = await ondam("bench", "--language", "en", "--set", "drafts.after_ms=96")
    assert done.code == 4
    assert "ondam down" in done.err


async def test_a_folder_of_recordings_can_be_asked(daemon: FakeDaemon, ondam: Ondam, tmp_path: Path) -> None:
    import numpy as np

    from ondam.types import Audio

    (tmp_path / "one.wav").write_bytes(sound.encode(Audio(np.ones(800, np.int16), 8_000)))
    done = await ondam("bench", "--turns", "1", "--settle", "0", "--json", "--clips", str(tmp_path))
    assert done.json["turns"][0]["clip"] == "one.wav"
    assert done.json["turns"][0]["misheard"] is False
    (tmp_path / "two.wav").symlink_to(tmp_path / "gone")
    broken = await ondam("bench", "--clips", str(tmp_path))
    assert (broken.code, "two.wav" in broken.err, "expect" in broken.err) == (7, True, False)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert (await ondam("bench", "--clips", str(empty))).code == 7


async def test_a_table_is_drawn_for_people(daemon: FakeDaemon, ondam: Ondam) -> None:
    done = await ondam("bench", "--language", "en", "--turns", "2", "--settle", "0",
                       "--against", "drafts.after_ms=96")  # fmt: skip
    assert "B: drafts.after_ms=96" in done.out
    assert "first audio: 2 settled pairs" in done.out.lower()
    assert "engines in turn, without the daemon" in done.out
    assert "640" in done.out


async def test_the_same_profile_twice_has_no_winner(daemon: FakeDaemon, ondam: Ondam, tmp_path: Path) -> None:
    profile = tmp_path / "x.toml"
    profile.write_text("[drafts]\nafter_ms = 96\n", "utf-8")
    ab = ("--ab", str(profile), str(profile), "--turns", "12", "--settle", "0", "--seed", "3", "--json")
    done = await ondam("bench", "--language", "en", *ab)
    assert done.code == 0, done.err
    told = done.json
    assert told["comparison"]["first_audio_ms"] == {
        "method": "pairs",
        "count": 12,
        "ratio": 1.0,
        "interval": [1.0, 1.0],
        "confidence": 0.975,
        "verdict": "none",
        "reason": "within_noise",
    }
    assert told["against"]["profile"] == told["profile"] == str(profile)
    run = told["conditions"]["run"]
    assert (run["differ"], run["engines_resident"], run["seed"]) == ([], "one set", 3)
    asked = [call[5] for call in daemon.asked if call[0] == "wav_turn"]
    assert asked == [{"drafts": {"after_ms": 96}}] * 24
    assert (
        told["conditions"]["name"]
        == told["turns"][0]["conditions"]
        == told["against"]["turns"][0]["conditions"]
    )
    again = await ondam("bench", "--language", "en", *ab)
    assert [turn["clip"] for turn in again.json["turns"]] == [turn["clip"] for turn in told["turns"]]


async def test_the_sides_are_named_after_conditions_of_their_own(daemon: FakeDaemon, ondam: Ondam) -> None:
    ab = ("--ab", "shipped", "endpoint.mode=silence", "--turns", "1", "--settle", "0", "--json")
    told = (await ondam("bench", "--language", "en", *ab)).json
    other = told["against"]["conditions"]
    assert other["endpoint"] == {"mode": "silence"}
    assert other["name"] == told["against"]["turns"][0]["conditions"] != told["conditions"].get("name")


@pytest.mark.parametrize(
    "others", [("--ab", "shipped", "llm.max_tokens=3"), ("--prompt", "{folder}/p.txt")], ids=["ab", "prompt"]
)
async def test_what_needs_a_daemon_of_its_own_is_refused_while_one_runs(
    daemon: FakeDaemon, ondam: Ondam, tmp_path: Path, others: tuple[str, ...]
) -> None:
    (tmp_path / "p.txt").write_text("You are the front desk.", "utf-8")
    done = await ondam("bench", "--language", "en", *(each.format(folder=tmp_path) for each in others))
    assert done.code == 4
    assert "ondam down" in done.err
    assert daemon.asked == []


async def test_options_that_contradict_each_other_are_refused(daemon: FakeDaemon, ondam: Ondam) -> None:
    both = await ondam("bench", "--ab", "a", "b", "--against", "drafts.after_ms=96")
    assert (both.code, daemon.asked) == (2, [])
    assert (await ondam("bench", "--plot", "/nonexistent/run.svg")).code == 2
    assert (await ondam("bench", "--prompt", "/nonexistent")).code == 3


async def test_a_daemon_that_dies_leaves_what_was_measured(
    daemon: FakeDaemon, ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, asked = daemon.wav_turn, 0

    async def twice(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked > 2:
            daemon.failing = ControlError("daemon_gone", reason="EOF")
        return await ask(*arguments)

    monkeypatch.setattr(daemon, "wav_turn", twice)
    done = await ondam("bench", "--language", "en", "--turns", "5", "--settle", "0", "--json")
    assert done.code == 4
    assert done.json["stopped"]["code"] == "daemon_gone"
    assert len(done.json["turns"]) == done.json["first_audio_ms"]["n"] == 2


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ((), "llama_server did not start, so nothing was measured"),
        (("--ab", "shipped", "drafts.after_ms=96"), "llama_server did not start for side A (shipped)"),
    ],
)
async def test_an_engine_that_failed_is_named_with_its_side_and_the_end_of_its_log(
    daemon: FakeDaemon, ondam: Ondam, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...], said: str
) -> None:
    status = daemon.status()
    status["engines"][1]["state"] = "failed"
    status["engines"][1]["faults"] = [{"code": "engine_down", "text": "It ended with status 1.", "next": ""}]
    monkeypatch.setattr(daemon, "status", lambda language=None: status)
    done = await ondam("bench", "--language", "en", "--turns", "2", *others)
    assert done.code == 6
    assert said in done.err
    assert "It ended with status 1.\nloaded\nready" in done.err
    assert not [call for call in daemon.asked if call[0] == "wav_turn"]


async def test_a_plot_that_cannot_be_written_costs_no_figure(
    daemon: FakeDaemon, ondam: Ondam, tmp_path: Path
) -> None:
    done = await ondam("bench", "--language", "en", "--turns", "2", "--settle", "0", "--json",
                       "--plot", f"{tmp_path}/{'x' * 300}.svg")  # fmt: skip
    assert (done.code, done.json["first_audio_ms"]["n"]) == (1, 2)
    assert "could not be written" in done.err


async def test_a_run_without_an_answer_is_no_success(daemon: FakeDaemon, ondam: Ondam) -> None:
    daemon.failing = AudioError("wav_without_speech")
    done = await ondam("bench", "--language", "en", "--turns", "2", "--settle", "0", "--json")
    assert (done.code, done.json["failed"]) == (1, 2)


async def test_turns_before_the_engines_settled_are_pointed_out(
    daemon: FakeDaemon, ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = daemon.wav_turn

    async def cold(*arguments: Any) -> Any:
        turn, answer = await ask(*arguments)
        return {**turn, "settled": False, "population": "cold"}, answer

    monkeypatch.setattr(daemon, "wav_turn", cold)
    done = await ondam("bench", "--language", "en", "--turns", "2", "--settle", "1")
    assert "2 turns were answered before the engines had settled" in " ".join(done.out.split())


async def test_a_plot_is_drawn_beside_the_figures(daemon: FakeDaemon, ondam: Ondam, tmp_path: Path) -> None:
    plot = tmp_path / "run.svg"
    done = await ondam(
        "bench", "--language", "en", "--turns", "2", "--settle", "0", "--plot", str(plot), "--json"
    )
    assert done.json["first_audio_ms"]["n"] == 2
    assert ElementTree.parse(plot).getroot().tag == "{http://www.w3.org/2000/svg}svg"
