"""Servers that the user wrote into the configuration: watched, never started, never ended."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.fakes.engine.rig import FOLDER, WoundClock, settings, until

from ondam.places import Places
from ondam.planner.plan import OutsideEngine, Plan
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.status import Change
from ondam.types import Stage


@asynccontextmanager
async def server(socket: Path, stage: str, **how: object) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, str(FOLDER / "serve.py"), "--socket", str(socket), "--threads", "1"],
        *["--report", str(socket) + ".json", "--model", "", "--device", "cpu"],
        *["--options", json.dumps({"stage": stage, **how})],
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
        fleet.launch(Plan((), (OutsideEngine(stage, address, "m"),)))
        await until(lambda: fleet.engine(stage))
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


async def test_a_server_that_reasons_aloud_is_told_before_the_first_turn(home: Places) -> None:
    socket = home.runtime / "theirs.sock"
    fleet = Fleet(home, settings(), {})
    async with server(socket, "llm", thinks="field"):
        fleet.launch(Plan((), (OutsideEngine("llm", f"unix://{socket}", "m"),)))
        await until(lambda: fleet.engine("llm"))
        codes = [fault.code for fault in fleet.status()[0].faults]
        assert codes == ["engine_thinks", "engine_unreported"]
        await fleet.stop()


async def test_a_server_that_lists_models_and_answers_nothing_is_not_ready(home: Places) -> None:
    socket = home.runtime / "theirs.sock"
    fleet = Fleet(home, settings(), {})
    async with server(socket, "llm", refuse=True):
        fleet.launch(Plan((), (OutsideEngine("llm", f"unix://{socket}", "m"),)))
        await until(lambda: fleet.status()[0].state == "failed")
        assert fleet.status()[0].faults[0].code == "engine_no_answer"
        await fleet.stop()


async def test_a_server_that_knows_openais_fields_alone_is_asked_with_those(home: Places) -> None:
    socket = home.runtime / "theirs.sock"
    asked: list[bool] = []

    async def chat(request: web.Request) -> web.Response:
        asked.append("chat_template_kwargs" in await request.json())
        if asked[-1]:
            return web.json_response({"error": {"message": "unknown field"}}, status=400)
        return web.json_response({"choices": [{"message": {"role": "assistant", "content": "Hello."}}]})

    async def models(_request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    theirs = web.Application()
    theirs.router.add_get("/v1/models", models)
    theirs.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(theirs)
    await runner.setup()
    try:
        await web.UnixSite(runner, str(socket)).start()
        fleet = Fleet(home, settings(), {})
        fleet.launch(Plan((), (OutsideEngine("llm", f"unix://{socket}", "m"),)))
        await until(lambda: fleet.engine("llm"))
        assert asked == [True, False]
        await fleet.stop()
    finally:
        await runner.cleanup()


BROKEN = {
    "no type": b'{"hello": 1}\n',
    "no JSON": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a length beyond all memory": b'{"type": "info", "data_length": 1000000000000}\n',
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_an_outside_server_that_talks_nonsense_is_told_and_asked_again(
    home: Places, answer: bytes
) -> None:
    answers = [answer, answer, b'{"type": "transcript", "data": {"text": ""}}\n']
    told: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answers.pop(0) if len(answers) > 1 else answers[0])
        await writer.drain()
        await reader.read()  # keeps the line open: it is the answer that is judged, not its end
        writer.close()

    socket = home.runtime / "theirs.sock"
    fleet = Fleet(home, settings(), {})
    fleet.subscribe(lambda change: told.append(change.fault.code) if change.fault else None)
    async with await asyncio.start_unix_server(serve, socket):
        fleet.launch(Plan((), (OutsideEngine("stt", f"unix://{socket}", "m"),)))
        await until(lambda: told)
        assert fleet.engine("stt") is None
        assert fleet.status()[0].faults[0].code == "engine_broken_frame"
        await until(lambda: fleet.engine("stt"))
        assert told == ["engine_broken_frame", "engine_back_stt"]
        await fleet.stop()


async def test_an_outside_server_that_is_away_is_asked_less_and_less_often(home: Places) -> None:
    waits: list[float] = []

    class Clock(WoundClock):
        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)
            await super().sleep(seconds)

    changed = {"backoff_first_s": 1.0, "backoff_last_s": 5.0, "ping_timeout_s": 400.0}
    fleet = Fleet(home, settings(**changed), {}, clock=Clock())
    fleet.launch(Plan((), (OutsideEngine("tts", f"unix://{home.runtime}/nobody.sock", "m"),)))
    await until(lambda: len(waits) >= 10)
    await fleet.stop()
    assert [wait for wait in waits if wait != 400.0][:5] == [1.0, 2.0, 4.0, 5.0, 5.0]
