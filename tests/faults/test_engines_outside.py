"""Servers that the user wrote into the configuration: watched, never started, never ended."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

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
        assert fleet.status()[0].faults[0].code in {"llm_refused", "llm_failed"}
        await fleet.stop()


STREAMED = """data: {"choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}]}

data: [DONE]

"""


class Theirs:
    """A language server of somebody else's, which knows a turn's request: a stream, with a system prompt."""

    def __init__(self, *, base: str = "/v1", models: int = 200, words: str = STREAMED) -> None:
        self.words = words
        self.asked: list[dict[str, Any]] = []
        self.app = web.Application()
        self.app.router.add_get(f"{base}/models", self._models)
        self.app.router.add_post(f"{base}/chat/completions", self._chat)
        self._status = models

    async def _models(self, _request: web.Request) -> web.Response:
        headers = {"Location": "/elsewhere"} if self._status == 307 else {}
        return web.json_response({"data": [{"id": "m"}]}, status=self._status, headers=headers)

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        if error := self.refuses(body):
            return web.json_response({"error": {"message": error}}, status=400)
        return web.Response(text=self.words, content_type="text/event-stream")

    def refuses(self, body: dict[str, Any]) -> str | None:
        """What it says to requests that it does not take."""
        return None if body["stream"] is True and body["messages"][0]["role"] == "system" else "no"


@asynccontextmanager
async def watched(home: Places, theirs: Theirs, path: str = "") -> AsyncIterator[Fleet]:
    runner = web.AppRunner(theirs.app)
    await runner.setup()
    fleet = Fleet(home, settings(), {})
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        outside = OutsideEngine("llm", f"http://127.0.0.1:{port}{path}", "m", temperature=0.7)
        fleet.launch(Plan((), (outside,)))
        yield fleet
        await fleet.stop()
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("path", ["", "/v1", "/v1/", "/v3", "/proxy/v1", "/v1beta/openai"])
async def test_it_is_asked_where_a_turn_asks_and_as_a_turn_does(home: Places, path: str) -> None:
    theirs = Theirs(base=path.rstrip("/") or "/v1")
    async with watched(home, theirs, path) as fleet:
        await until(lambda: fleet.engine("llm"))
        assert [(body["temperature"], body["model"]) for body in theirs.asked] == [(0.7, "m")]


async def test_routes_below_another_path_than_the_turns_do_not_count(home: Places) -> None:
    async with watched(home, Theirs(base="/proxy/v1"), "/proxy") as fleet:
        await until(lambda: fleet.status()[0].state == "failed")
        assert [fault.code for fault in fleet.status()[0].faults] == ["llm_refused", "engine_unreported"]


@pytest.mark.parametrize("status", [307, 401, 404, 500, 503])
async def test_a_server_without_a_list_of_models_serves_and_stays(home: Places, status: int) -> None:
    theirs = Theirs(models=status)
    async with watched(home, theirs) as fleet:
        await until(lambda: fleet.engine("llm"))
        await asyncio.sleep(0.3)  # it is pinged meanwhile
        assert fleet.engine("llm") is not None
        assert len(theirs.asked) == 1


@pytest.mark.parametrize(
    "words",
    ["data: [DONE]\n\n", 'data: {"choices": [{"delta": {"content": ""}, "finish_reason": "stop"}]}\n\n', ""],
)
async def test_an_answer_without_words_is_none(home: Places, words: str) -> None:
    async with watched(home, Theirs(words=words)) as fleet:
        await until(lambda: fleet.status()[0].state == "failed")
        assert fleet.status()[0].faults[0].code in {"engine_no_answer", "llm_cut_off"}


async def test_a_server_that_knows_openais_fields_alone_is_asked_with_those(home: Places) -> None:
    class Strict(Theirs):
        def refuses(self, body: dict[str, Any]) -> str | None:
            return "unknown field" if "chat_template_kwargs" in body else None

    theirs = Strict()
    async with watched(home, theirs) as fleet:
        await until(lambda: fleet.engine("llm"))
        assert ["chat_template_kwargs" in body for body in theirs.asked] == [True, False]


async def test_another_reason_is_told_although_it_is_the_same_fault(home: Places) -> None:
    class Moody(Theirs):
        mood = "no such model"

        def refuses(self, _body: dict[str, Any]) -> str | None:
            return self.mood

    theirs = Moody()
    async with watched(home, theirs) as fleet:
        told: list[object] = []
        fleet.subscribe(lambda change: told.append(change.fault and change.fault.facts["reason"]))
        await until(lambda: told)
        theirs.mood = "no such key"
        await until(lambda: len(told) > 1)
        assert told[:2] == ["no such model", "no such key"]


async def test_a_recognizer_may_refuse_a_tone_and_is_told_to_until_it_understood_words(home: Places) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            asked = json.loads(await reader.readline())["type"]
            info = b'{"type": "info"}\n'
            writer.write(
                info if asked == "describe" else b'{"type": "error", "data": {"text": "no words"}}\n'
            )
            await writer.drain()
            await reader.read()
        writer.close()

    socket = home.runtime / "theirs.sock"
    fleet = Fleet(home, settings(), {})
    async with await asyncio.start_unix_server(serve, socket):
        address = f"unix://{socket}"
        fleet.launch(Plan((), (OutsideEngine("stt", address, "m"),)))
        await until(lambda: fleet.engine("stt"))
        (refused, unreported) = fleet.status()[0].faults
        assert "no words" in str(refused.facts) and unreported.code == "engine_unreported"
        fleet.note_answer(address)
        assert [fault.code for fault in fleet.status()[0].faults] == ["engine_unreported"]
        await fleet.stop()


async def test_a_name_that_no_resolver_takes_is_a_server_that_is_away(home: Places) -> None:
    fleet = Fleet(home, settings(), {})
    fleet.launch(Plan((), (OutsideEngine("tts", "tcp://a..b:10300"),)))
    await until(lambda: fleet.status()[0].state == "failed")
    assert fleet.status()[0].faults[0].code == "engine_outside_unreachable"
    await fleet.stop()


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
