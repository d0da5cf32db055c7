"""``kill -9`` of each engine in each moment of a turn: the daemon lives, says so, the next turn works."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from ondam.control import wire
from ondam.errors import ControlError
from ondam.measure.clips import clips
from tests.scenarios.house import House, engine

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

STAGES = {"stt": "faster_whisper", "llm": "llama_server", "tts": "piper"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    home = House(
        tmp_path_factory.mktemp("dying"),
        {
            "language": "en",
            # Killed again and again, an engine must not reach its limit of restarts.
            "supervisor.restart_limit": "100",
            "supervisor.backoff_last_s": "1.0",
            # One stage after the other, so that each can be met.
            "drafts.most_per_turn": "0",
        },
    )
    home.open()
    await home.ready()
    yield home
    assert home.close() == 0
    assert home.family() == []


async def kill_at(house: House, moment: str, name: str) -> int:
    """Kill the engine as soon as a turn reaches ``moment``; returns the pid that was killed."""
    async with house.client() as client:
        pid = engine(await client.status(), name)["pid"]
        assert pid is not None
        if moment != "idle":
            async for event in client.events():
                if event["type"] == "state" and event["state"] == moment:
                    break
        os.kill(pid, signal.SIGKILL)
    return pid


async def well_again(house: House, name: str, killed: int) -> wire.EngineStatus:
    deadline = time.monotonic() + 60
    while True:
        async with house.client() as client:
            now = engine(await client.status(), name)
        if now["state"] == "ready" and now["pid"] != killed:
            return now
        assert time.monotonic() < deadline, now
        await asyncio.sleep(0.1)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("moment", ["idle", "recognizing", "thinking", "speaking"])
@pytest.mark.parametrize("stage", ["stt", "llm", "tts"])
async def test_the_daemon_outlives_any_engine(house: House, stage: str, moment: str) -> None:
    name = STAGES[stage]
    question = clips("en")[0].wav
    killing = asyncio.create_task(kill_at(house, moment, name))
    if moment == "idle":
        killed = await killing
    async with house.client() as client:
        turn, _ = await client.wav_turn(question, "en", reset_history=True)
        if moment != "idle":
            killed = await killing
        # Either what was needed had been done already (or the spare voice spoke), or the user was told.
        assert turn["outcome"] in {"answered", "failed"}
        if turn["outcome"] == "failed":
            assert turn["fault"]
            assert turn["audio"]["seconds"] > 0.5, "the excuse is aloud"
        status = await client.status()
        assert status["pid"] == house.process.pid if house.process else False
    now = await well_again(house, name, killed)
    assert now["loads"] == 1
    async with house.client() as client:
        again, _ = await client.wav_turn(question, "en", reset_history=True)
        assert again["outcome"] == "answered"
        assert again["voice"] == "piper"
        status = await client.status()
        assert not [fault for fault in status["faults"] if name in fault["text"]]
        ours = {e["pid"] for e in status["engines"]}
    assert {process.pid for process in house.family()} - {house.process.pid if house.process else 0} >= ours


async def test_b26_killing_the_daemon_leaves_no_engine_and_the_next_start_works(tmp_path: Path) -> None:
    house = House(tmp_path / "first", {"language": "en"})
    other = House(tmp_path / "second", {"language": "en"})
    house.open()
    other.open()
    try:
        await house.ready()
        before = await other.ready()
        assert house.process is not None
        async with house.client() as client:
            asking = asyncio.create_task(client.wav_turn(clips("en")[0].wav, "en"))
            async for event in client.events():
                if event["type"] == "state" and event["state"] == "speaking":
                    break
            house.process.kill()
            with pytest.raises(ControlError):
                await asking
        house.process.wait()
        for _ in range(50):
            if not house.family():
                break
            await asyncio.sleep(0.1)
        assert house.family() == []
        house.open()
        await house.ready()
        async with house.client() as client:
            turn, _ = await client.wav_turn(clips("en")[0].wav, "en")
        assert turn["outcome"] == "answered"
        async with other.client() as client:
            after = await client.status()
        assert [e["pid"] for e in after["engines"]] == [e["pid"] for e in before["engines"]]
    finally:
        codes = house.close(), other.close()
    assert codes == (0, 0)
