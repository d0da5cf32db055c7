"""A stop that takes seconds, never minutes; an engine that dies with status 0 is missed like any other."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
from tests.fakes.engine.rig import Rig, alive, planned, until

from ondam.places import Places
from ondam.supervisor.readiness import ask


async def test_b30_an_engine_that_ignores_sigterm_is_ended_in_time(home: Places) -> None:
    others = psutil.Process().children(recursive=True)  # a daemon that other tests share
    rig = Rig(home, planned("tts", ignore_sigterm=True, grandchild=True), stop_timeout_s=1.0)
    await rig.start()
    family = [process for process in psutil.Process().children(recursive=True) if process not in others]
    began = time.monotonic()
    await rig.fleet.stop()
    assert 1.0 <= time.monotonic() - began < 3.0
    assert not [process for process in family if alive(process)]
    assert not home.engine_socket("tts").exists()


async def test_b30_an_engine_that_ends_with_status_0_is_started_again(home: Places) -> None:
    async with Rig(home, planned("stt", exit_after=2, exit_status=0), ping_every_s=5.0) as rig:
        await rig.start()
        first = rig.fleet.engine("stt")
        assert first is not None
        await ask(first.address, "wyoming", "stt", "", "en")
        await until(lambda: rig.fleet.status()[0].state == "restarting")
        assert rig.fleet.status()[0].faults[0].facts["status"] == 0
        await until(lambda: rig.fleet.engine("stt") is not None)
        again = rig.fleet.engine("stt")
        assert again is not None and again.pid != first.pid


async def test_b30_an_engine_that_always_ends_stays_down_after_the_limit(home: Places) -> None:
    async with Rig(home, planned("llm", crash=0), restart_limit=3) as rig:
        await rig.start()
        (status,) = rig.fleet.status()
        assert (status.state, status.restarts) == ("failed", 2)
        log = status.log
        assert log is not None and log.read_text().count("started as") == 3


async def test_b30_stop_while_loading_and_while_waiting_to_restart(home: Places, tmp_path: Path) -> None:
    loading = planned("stt", load_until=str(tmp_path / "never"))
    rig = Rig(home, loading, planned("llm", crash=0), backoff_first_s=60.0, backoff_last_s=60.0)
    rig.fleet.launch(rig.plan)
    await until(lambda: [s.state for s in rig.fleet.status()] == ["loading", "restarting"])
    began = time.monotonic()
    await rig.fleet.stop()
    assert time.monotonic() - began < 2.0
    assert [s.state for s in rig.fleet.status()] == ["stopped", "stopped"]
