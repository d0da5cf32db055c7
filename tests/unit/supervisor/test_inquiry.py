"""What a language server by address is asked of itself: vLLM's own recorded answers, and others with less."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from aiohttp import web
from tests.fakes.vllm_program import RECORDINGS

from ondam.errors import EngineError
from ondam.supervisor.inquiry import Told, cache_config, inquire
from ondam.supervisor.readiness import NotYet

Answer = tuple[int, bytes]
Serve = Callable[[Mapping[str, Answer]], Awaitable[str]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    runners: list[web.AppRunner] = []

    async def start(routes: Mapping[str, Answer]) -> str:
        async def handle(request: web.Request) -> web.Response:
            status, body = routes.get(request.path, (404, b'{"detail":"Not Found"}'))
            return web.Response(status=status, body=body)

        app = web.Application()
        app.router.add_get("/{path:.*}", handle)
        runners.append(web.AppRunner(app))
        await runners[-1].setup()
        path = tmp_path / f"{len(runners)}.sock"
        await web.UnixSite(runners[-1], str(path)).start()
        return f"unix://{path}"

    yield start
    for runner in runners:
        await runner.cleanup()


def recorded(case: str, health: int = 200) -> dict[str, Answer]:
    folder = RECORDINGS / case
    return {
        "/v1/models": (200, (folder / "models.json").read_bytes()),
        "/version": (200, (folder / "version.json").read_bytes()),
        "/metrics": (200, (folder / "metrics.txt").read_bytes()),
        "/health": (health, b""),
    }


async def test_a_vllm_tells_version_context_and_cache(serve: Serve) -> None:
    told = await inquire(await serve(recorded("kv-fp8")), "tiny-qwen3")
    assert told == Told(("tiny-qwen3",), 2048, True, "0.32.0", "fp8", 1024)
    assert told.as_report() == {
        "context_length": 2048,
        "kv_dtype": "fp8",
        "kv_blocks": 1024,
        "versions": {"vllm": "0.32.0"},
    }


async def test_a_cache_in_the_models_own_type_is_not_told(serve: Serve) -> None:
    assert (await inquire(await serve(recorded("eager")), "")).kv_dtype is None


async def test_an_engine_that_died_behind_a_living_server_is_seen(serve: Serve) -> None:
    # As recorded: 503 from the moment on, for the seconds in which the server itself still lives.
    health = (RECORDINGS / "core-killed" / "health.txt").read_text().splitlines()
    assert "health 503" in health[0] and "process None" in health[0]
    told = await inquire(await serve(recorded("core-killed", health=503)), "tiny-qwen3")
    assert told.healthy is False


async def test_the_rest_is_asked_once_while_nothing_changes(serve: Serve) -> None:
    routes = recorded("kv-fp8")
    address = await serve(routes)
    known = await inquire(address, "tiny-qwen3")
    del routes["/version"], routes["/metrics"]  # a second question would find nothing
    assert await inquire(address, "tiny-qwen3", known) == known
    routes["/health"] = (503, b"")
    ill = await inquire(address, "tiny-qwen3", known)
    assert (ill.healthy, ill.version) == (False, None)


async def test_another_models_context_is_not_taken_for_ours(serve: Serve) -> None:
    assert (await inquire(await serve(recorded("eager")), "other")).context_length is None


async def test_what_a_server_does_not_have_is_no_fault(serve: Serve) -> None:
    told = await inquire(await serve({"/v1/models": (200, b'{"data": [{"id": "m"}]}')}), "m")
    assert told == Told(("m",))
    assert told.as_report() is None


@pytest.mark.parametrize(
    "models", [b"", b"[]", b"<html>", b'{"data": {}}', b'{"data": [1, {"id": 2}, {}]}', b'{"data": null}']
)
async def test_nonsense_tells_nothing(serve: Serve, models: bytes) -> None:
    junk = {"/version": (200, b'{"version": 3}'), "/metrics": (200, b"vllm:cache_config_info{oops")}
    assert await inquire(await serve({"/v1/models": (200, models), **junk}), "m") == Told()


async def test_nobody_there_is_not_yet(tmp_path: Path) -> None:
    with pytest.raises((NotYet, EngineError)):
        await inquire(f"unix://{tmp_path / 'none.sock'}", "")


def test_a_huge_page_is_no_cache() -> None:
    assert cache_config("x" * 2_000_000) == {}


@pytest.mark.parametrize("blocks", ["9" * 5000, "²", "٣", "-1", "1.5", "NaN"])
async def test_a_count_of_blocks_that_is_none_is_not_told(serve: Serve, blocks: str) -> None:
    metrics = f'vllm:cache_config_info{{cache_dtype="fp8",num_gpu_blocks="{blocks}"}} 1\n'
    told = await inquire(await serve({"/metrics": (200, metrics.encode())}), "")
    assert (told.kv_dtype, told.kv_blocks) == ("fp8", None)


async def test_names_that_cannot_be_shown_are_left_out(serve: Serve) -> None:
    models = b'{"data": [{"id": "\\ud800"}, {"id": "a\\nb"}, {"id": ""}, {"id": "%s"}, {"id": "good"}]}'
    routes = {
        "/v1/models": (200, models % (b"x" * 301)),
        "/version": (200, b'{"version": "\\udfff"}'),
        "/metrics": (200, b'vllm:cache_config_info{cache_dtype="\x1b[31m"} 1\n'),
    }
    told = await inquire(await serve(routes), "")
    assert told == Told(models=("good",))


async def test_a_context_of_more_tokens_than_there_are_is_not_told(serve: Serve) -> None:
    models = b'{"data": [{"id": "m", "max_model_len": %s}]}' % (b"9" * 400)
    assert (await inquire(await serve({"/v1/models": (200, models)}), "m")).context_length is None
