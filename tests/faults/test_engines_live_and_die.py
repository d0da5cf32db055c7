"""Engines that start, answer, misbehave and end: each in a real process over a real socket."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from tests.fakes.engine.rig import Rig, alive, planned, until

from ondam.messages import message
from ondam.places import Places
from ondam.supervisor.status import EngineStatus


def only(rig: Rig) -> EngineStatus:
    (status,) = rig.fleet.status()
    return status


def codes(status: EngineStatus) -> list[str]:
    return [fault.code for fault in status.faults]


def engines() -> list[psutil.Process]:
    """Those that live now, and not the warden."""
    children = psutil.Process().children()
    return [
        child for child in children if alive(child) and any("serve.py" in word for word in child.cmdline())
    ]


async def test_engines_of_every_stage_are_ready_after_a_real_answer(home: Places, tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.touch()
    async with Rig(home, planned("stt", model=weights), planned("llm"), planned("tts")) as rig:
        await rig.start()
        stt, llm, tts = rig.fleet.status()
        assert [stt.state, llm.state, tts.state] == ["ready", "ready", "ready"]
        assert (stt.loads, llm.loads, stt.device, stt.faults, stt.restarts) == (1, 0, "cpu", (), 0)
        assert stt.pid is not None
        assert stt.rss_mib is not None and 5 < stt.rss_mib < 100
        assert rig.fleet.engine("llm") == llm or rig.fleet.engine("llm") is not None
    assert [status.state for status in rig.fleet.status()] == ["stopped"] * 3
    assert not list(home.runtime.glob("*.sock")) and not list(home.runtime.glob("*.pid"))


async def test_engines_start_side_by_side(home: Places, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = [planned(stage, load_until=str(gate)) for stage in ("stt", "llm", "tts")]
    async with Rig(home, *slow) as rig:
        starting = asyncio.create_task(rig.start())
        await until(lambda: [s.state for s in rig.fleet.status()] == ["loading"] * 3)
        gate.touch()
        await starting
        assert [s.state for s in rig.fleet.status()] == ["ready"] * 3


async def test_an_engine_that_only_listens_is_not_ready(home: Places) -> None:
    async with Rig(home, planned("tts", deaf=True), ready_within_s=0.6) as rig:
        rig.fleet.launch(rig.plan)
        await until(lambda: home.engine_socket("tts").exists())
        assert only(rig).state == "loading"
        await rig.ready_or_failed()
        assert (only(rig).state, codes(only(rig))) == ("failed", ["engine_slow"])


async def test_an_engine_that_answers_with_an_error_is_not_ready(home: Places) -> None:
    async with Rig(home, planned("stt", refuse=True), planned("llm", refuse=True), restart_limit=2) as rig:
        await rig.start()
        for status in rig.fleet.status():
            assert (status.state, codes(status)) == ("failed", ["engine_no_answer"])


async def test_one_engine_that_never_starts_leaves_the_others_alone(home: Places) -> None:
    crash = planned("stt", flood=10, crash=3)
    async with Rig(home, crash, planned("tts"), restart_limit=3) as rig:
        await rig.start()
        stt, tts = rig.fleet.status()
        assert (stt.state, stt.restarts, codes(stt)) == ("failed", 2, ["engine_exited"])
        assert stt.faults[0].facts["status"] == 3
        told = message("engine_exited", "en", **stt.faults[0].facts).text
        assert told == "The engine stt ended by itself (status 3). The last it said: xxxxxxxxxx"
        assert (tts.state, rig.fleet.engine("stt")) == ("ready", None)
        assert rig.told == ["engine_restarting_stt", "engine_restarting_stt", "engine_down_stt"]


async def test_missing_weights_are_named_and_not_tried_again(home: Places, tmp_path: Path) -> None:
    async with Rig(home, planned("llm", model=tmp_path / "gone.gguf")) as rig:
        await rig.start()
        status = only(rig)
        assert (status.state, status.restarts, status.pid) == ("failed", 0, None)
        assert (codes(status), status.faults[0].facts["path"]) == (
            ["engine_model_missing"],
            tmp_path / "gone.gguf",
        )


async def test_a_killed_engine_comes_back_and_the_user_is_told(home: Places) -> None:
    async with Rig(home, planned("stt")) as rig:
        await rig.start()
        first = only(rig).pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: rig.fleet.engine("stt") is None)
        await until(lambda: rig.fleet.engine("stt") is not None)
        assert only(rig).pid != first and only(rig).restarts == 1
        assert rig.told == ["engine_restarting_stt", "engine_back_stt"]


async def test_an_engine_that_hangs_is_ended_and_started_again(home: Places, tmp_path: Path) -> None:
    hang = tmp_path / "hang"
    async with Rig(home, planned("llm", hang_when=str(hang))) as rig:
        await rig.start()
        first = only(rig).pid
        hang.touch()
        await until(lambda: only(rig).state != "ready")
        hang.unlink()
        await until(lambda: only(rig).state == "ready")
        assert only(rig).pid != first
        assert first is not None and not psutil.pid_exists(first)


async def test_a_stopped_process_counts_as_hung(home: Places) -> None:
    async with Rig(home, planned("tts")) as rig:
        await rig.start()
        first = only(rig).pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        await until(lambda: only(rig).restarts == 1 and only(rig).state == "ready")
        assert not psutil.pid_exists(first)


async def test_the_spare_voice_takes_over_and_says_so(home: Places) -> None:
    first, spare = planned("tts", "voice"), planned("tts", "spare", spare=True)
    async with Rig(home, spare, first, backoff_first_s=0.5) as rig:
        await rig.start()
        voice = rig.fleet.engine("tts")
        assert voice is not None and (voice.name, voice.spare) == ("voice", False)
        assert voice.pid is not None
        os.kill(voice.pid, signal.SIGKILL)
        await until(lambda: "engine_spare_speaks" in rig.told)
        voice = rig.fleet.engine("tts")
        assert voice is not None and (voice.name, voice.spare) == ("spare", True)
        await until(lambda: rig.told[-1] == "engine_back_tts")
        voice = rig.fleet.engine("tts")
        assert voice is not None and voice.name == "voice"


async def test_restart_on_demand_forgets_the_past(home: Places, tmp_path: Path) -> None:
    async with Rig(home, planned("stt", crash=1), restart_limit=1) as rig:
        await rig.start()
        assert only(rig).state == "failed"
        await rig.fleet.restart("stt")
        await until(lambda: rig.told == ["engine_down_stt"] * 2)
        assert (only(rig).state, only(rig).restarts) == ("failed", 1)
    async with Rig(home, planned("tts")) as rig:
        await rig.start()
        first = only(rig).pid
        await rig.fleet.restart("tts")
        await until(lambda: only(rig).state == "ready")
        assert only(rig).pid != first and only(rig).restarts == 1


async def test_two_restarts_at_once_leave_one_engine(home: Places) -> None:
    async with Rig(home, planned("tts")) as rig:
        await rig.start()
        await asyncio.gather(rig.fleet.restart("tts"), rig.fleet.restart("tts"))
        await until(lambda: only(rig).state == "ready")
        (engine,) = engines()
        assert engine.pid == only(rig).pid
    assert engines() == []


async def test_a_restart_that_meets_the_end_starts_nothing(home: Places) -> None:
    rig = Rig(home, planned("llm", ignore_sigterm=True))
    await rig.start()
    restarts = [asyncio.create_task(rig.fleet.restart("llm")) for _ in range(2)]
    await until(lambda: rig.fleet.engine("llm") is None)
    await asyncio.gather(rig.fleet.stop(), rig.fleet.stop())
    await asyncio.gather(*restarts)
    assert engines() == []
    assert "engine llm" not in {task.get_name() for task in asyncio.all_tasks()}
    assert not list(home.runtime.iterdir())


async def test_requests_left_unanswered_twice_in_a_row_are_a_hung_engine(home: Places) -> None:
    async with Rig(home, planned("llm"), ping_every_s=3600.0) as rig:
        await rig.start()
        first = only(rig).pid
        for code in ("llm_stalled", "engine_refused"):
            rig.fleet.note_failure("llm", code)
        rig.fleet.note_answer("llm")
        rig.fleet.note_failure("llm", "llm_no_first_token")
        await asyncio.sleep(0.05)
        assert (only(rig).state, only(rig).pid) == ("ready", first)
        rig.fleet.note_failure("llm", "llm_no_first_token")
        await until(lambda: rig.told == ["engine_restarting_llm"])
        assert codes(only(rig)) == ["engine_stuck"]
        await until(lambda: only(rig).state == "ready")
        assert (only(rig).pid != first, only(rig).restarts) == (True, 1)
        assert rig.told == ["engine_restarting_llm", "engine_back_llm"]


LIES = {
    "device": ({"device": "cuda:0"}, "engine_differs_device"),
    "provider": ({"providers": {"main": ["CUDAExecutionProvider"]}}, "engine_differs_provider"),
    "threads": ({"threads": 8}, "engine_differs"),
    "loads": ({"weight_loads": 2}, "engine_weight_loads"),
    "hash": ({"model": {"sha256": "f" * 64}}, "engine_wrong_model"),
    "schema": ({"schema": 9}, "engine_report_broken"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_what_differs_from_the_plan_is_a_fault(home: Places, tmp_path: Path, lie: str) -> None:
    weights = tmp_path / "weights"
    weights.touch()
    report, code = LIES[lie]
    lying = planned("stt", model=weights, sha256="0" * 64, report=report)
    async with Rig(home, lying) as rig:
        await rig.start()
        assert (only(rig).state, codes(only(rig))) == ("ready", [code])
        assert code in rig.told


async def test_what_differs_is_refused_where_the_plan_requires(home: Places) -> None:
    async with Rig(home, planned("stt", policy="require", report={"device": "cuda:0"})) as rig:
        await rig.start()
        assert (only(rig).state, codes(only(rig))) == (
            "failed",
            ["engine_refused_by_plan", "engine_differs_device"],
        )
        assert only(rig).restarts == 0 and only(rig).pid is None


async def test_a_fault_is_gone_when_the_report_is_right_again(home: Places) -> None:
    async with Rig(home, planned("tts")) as rig:
        await rig.start()
        path = home.engine_report("tts")
        truth = path.read_text()
        path.write_text(truth.replace('"weight_loads": 0', '"weight_loads": 1'))
        await until(lambda: codes(only(rig)) == ["engine_weight_loads"])
        path.write_text(truth)
        await until(lambda: codes(only(rig)) == [])


@pytest.mark.parametrize("how", ["tag", "field"])
async def test_an_answer_that_holds_reasoning_is_a_fault(home: Places, how: str) -> None:
    async with Rig(home, planned("llm", thinks=how)) as rig:
        await rig.start()
        assert (only(rig).state, codes(only(rig))) == ("ready", ["engine_thinks"])


async def test_a_flood_neither_fills_the_disk_nor_blocks_the_engine(home: Places) -> None:
    async with Rig(home, planned("tts", flood=5 * 2**20)) as rig:
        await rig.start()
        assert only(rig).state == "ready"
        files = list(home.logs.iterdir())
        assert sum(file.stat().st_size for file in files) < 7 * 2**20
        assert {file.name for file in files} == {f"engine-tts.log{end}" for end in ("", ".1", ".2")}


async def test_a_leak_shows(home: Places) -> None:
    async with Rig(home, planned("tts", leak_mib=50)) as rig:
        await rig.start()
        await until(lambda: (only(rig).rss_mib or 0) > 60)


async def test_answers_are_counted_since_ready(home: Places) -> None:
    async with Rig(home, planned("tts")) as rig:
        await rig.start()
        rig.fleet.note_answer("tts")
        rig.fleet.note_answer("tts")
        assert only(rig).answers == 2
        assert 0 < only(rig).ready_s < only(rig).uptime_s


async def test_engines_have_no_way_to_a_hub_and_an_output_that_is_kept(home: Places) -> None:
    async with Rig(home, planned("tts", flood=3)) as rig:
        await rig.start()
        pid = only(rig).pid
        assert pid is not None
        engine = psutil.Process(pid)
        environ = engine.environ()
        assert environ["HF_HUB_OFFLINE"] == environ["TRANSFORMERS_OFFLINE"] == "1"
        assert (environ["ONDAM_INSTANCE"], environ["ONDAM_ENGINE"]) == (home.runtime.name, "tts")
        assert os.getpgid(pid) == os.getsid(pid) == pid
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")  # noqa: ASYNC240
        path = only(rig).log
        assert path is not None and "xxx" in path.read_text().splitlines()


async def test_stop_takes_a_moment_in_any_state(home: Places) -> None:
    others = psutil.Process().children(recursive=True)  # a daemon that other tests share
    rig = Rig(
        home,
        planned("stt", "loading", load_until="/nowhere"),
        planned("llm", "stubborn", ignore_sigterm=True, grandchild=True),
        planned("tts", "crashing", crash=1),
        planned("tts", "hung", deaf=True),
        backoff_first_s=30.0,
        backoff_last_s=30.0,
        stop_timeout_s=2.0,
    )
    rig.fleet.launch(rig.plan)
    await until(
        lambda: rig.fleet.status()[1].state == "ready" and rig.fleet.status()[2].state == "restarting"
    )
    family = [process for process in psutil.Process().children(recursive=True) if process not in others]
    assert len(family) >= 5
    began = time.monotonic()
    await rig.fleet.stop()
    assert time.monotonic() - began < 4
    assert [process for process in family if alive(process)] == []
    await rig.fleet.stop()
