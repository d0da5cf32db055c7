"""Servers that the user wrote into the configuration: watched, never started, never ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.fakes.engine.rig import FOLDER, settings, until

from ondam.places import Places
from ondam.planner.plan import OutsideEngine, Plan
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.status import Change
from ondam.types import Stage


@asynccontextmanager
async def server(socket: Path, stage: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, str(FOLDER / "serve.py"), "--socket", str(socket), "--threads", "1"],
        *["--report", str(socket) + ".json", "--model", "", "--device", "cpu"],
        *["--options", f'{{"stage": "{stage}"}}'],
    )
    try:
        await until(socket.exists)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        socket.unlink(missing_ok=True)  # noqa: ASYNC240


@pytest.mark.parametrize("stage", ["stt", "llm"])
async def test_an_outside_engine_is_ready_unreported_and_not_ours_to_end(home: Places, stage: Stage) -> None:
    socket = home.runtime / "theirs.sock"
    address = f"unix://{socket}"
    fleet = Fleet(home, settings(), {})
    changes: list[Change] = []
    fleet.subscribe(changes.append)

    def told() -> list[str]:
        return [change.fault.code for change in changes if change.fault]

    async with server(socket, stage) as process:
        await fleet.start(Plan((), (OutsideEngine(stage, address, "m"),)))
        engine = fleet.engine(stage)
        assert engine is not None
        assert (engine.name, engine.outside, engine.pid, engine.loads) == (address, True, None, None)
        assert [fault.code for fault in engine.faults] == ["engine_unreported"]
        process.kill()
        await until(lambda: told() == ["engine_outside_unreachable"])
        assert fleet.engine(stage) is None
        assert fleet.status()[0].faults[0].code == "engine_outside_unreachable"
    async with server(socket, stage) as process:
        await until(lambda: told()[-1] == f"engine_back_{stage}")
        await fleet.stop()
        assert process.returncode is None
