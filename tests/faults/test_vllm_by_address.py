"""A vLLM on another machine, by its recorded answers: shown in status, and told when its engine has died."""

from __future__ import annotations

from aiohttp import web
from tests.fakes.engine.rig import settings, until
from tests.fakes.vllm_program import RECORDINGS
from tests.faults.test_engines_outside import STREAMED

from ondam.messages import message
from ondam.places import Places
from ondam.planner.plan import OutsideEngine, Plan
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.status import Change

FOLDER = RECORDINGS / "kv-fp8"
FILES = {"/v1/models": "models.json", "/version": "version.json", "/metrics": "metrics.txt"}


async def test_what_it_tells_is_in_the_status_and_a_dead_engine_is_no_ready_one(home: Places) -> None:
    health = [200]

    async def handle(request: web.Request) -> web.Response:
        if request.path == "/health":
            return web.Response(status=health[0])
        return web.Response(body=(FOLDER / FILES[request.path]).read_bytes())

    app = web.Application()

    async def answer(request: web.Request) -> web.Response:
        assert "max_tokens" in await request.json()
        return web.Response(text=STREAMED, content_type="text/event-stream")

    app.router.add_get("/{path:.*}", handle)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    socket = home.runtime / "rack.sock"
    await web.UnixSite(runner, str(socket)).start()
    fleet = Fleet(home, settings(), {})
    changes: list[Change] = []
    fleet.subscribe(changes.append)
    try:
        fleet.launch(Plan((), (OutsideEngine("llm", f"unix://{socket}", "another"),)))
        await until(lambda: fleet.engine("llm"))
        (status,) = fleet.status()
        assert (status.state, status.fit, status.model) == ("ready", "unreported", "another")
        assert status.report is not None
        assert (status.report["versions"], status.report["kv_dtype"]) == ({"vllm": "0.32.0"}, "fp8")
        assert [fault.code for fault in status.faults] == ["engine_outside_model", "engine_unreported"]
        for language in ("en", "ko"):
            assert "tiny-qwen3" in message(status.faults[0].code, language, **status.faults[0].facts).text

        health[0] = 503
        await until(lambda: fleet.engine("llm") is None)
        assert fleet.status()[0].faults[0].code == "engine_outside_ill"
        health[0] = 200
        await until(lambda: fleet.engine("llm"))
        assert [change.fault.code for change in changes if change.fault][-1] == "engine_back_llm"
    finally:
        await fleet.stop()
        await runner.cleanup()
