from __future__ import annotations

import asyncio

import aiohttp
import pytest
from tests.engine_contract.exercise import Answering
from tests.engine_contract.launched import Launched

from ondam.pipeline.ports import Token, Usage


async def got(engine: Launched, route: str) -> tuple[int, object]:
    connector = aiohttp.UnixConnector(str(engine.socket), force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"http://localhost{route}") as response,
    ):
        return response.status, await response.json(content_type=None)


async def test_health_and_the_models_name_are_told(engine: Launched, answering: Answering) -> None:
    assert (await got(engine, "/health"))[0] == 200
    status, models = await got(engine, "/v1/models")
    assert status == 200
    assert isinstance(models, dict)
    assert [model["id"] for model in models["data"]] == [engine.prepared.planned.model]


async def test_health_is_told_while_an_answer_is_made(engine: Launched, answering: Answering) -> None:
    begun = asyncio.Event()
    job = asyncio.create_task(answering.long(begun))
    await begun.wait()
    async with asyncio.timeout(2):
        assert (await got(engine, "/health"))[0] == 200
    assert not job.done()
    job.cancel()
    await asyncio.wait([job])


async def test_two_requests_at_once_both_finish_whole(answering: Answering) -> None:
    begun = asyncio.Event()
    first = asyncio.create_task(answering.ask("Count from one to one hundred.", 60, begun))
    await begun.wait()
    second = asyncio.create_task(answering.ask("Name the days of the week.", 60))
    for tokens, usage in await asyncio.gather(first, second):
        assert usage.finish_reason in {"stop", "length"}
        assert "".join(token.text for token in tokens).strip()
        if usage.finish_reason == "length":
            assert usage.output_tokens == 60


async def test_the_engines_own_times_and_counts_come_along(answering: Answering) -> None:
    tokens, usage = await answering.ask("Count from one to ten.", 20)
    times = [token.engine_ms for token in tokens if token.engine_ms is not None]
    assert len(times) == len(tokens) > 5
    assert times == sorted(times)
    assert 0 < times[0] < times[-1]
    assert usage.prompt_tokens is not None
    assert usage.prompt_tokens > 5
    assert usage.output_tokens is not None
    assert 5 < usage.output_tokens <= 20
    assert usage.prompt_ms is not None
    assert usage.predicted_ms is not None


async def test_a_prefix_that_was_asked_before_is_not_computed_again(answering: Answering) -> None:
    story = "word " * 300
    _, first = await answering.ask(story + "Why?", 4)
    _, second = await answering.ask(story + "When?", 4)
    assert first.prompt_ms is not None
    assert second.prompt_ms is not None
    assert second.cached_tokens is not None
    assert second.cached_tokens > 250
    assert second.prompt_ms < first.prompt_ms / 2


@pytest.mark.parametrize("question", ["Why is the sky blue?", "Think step by step: what is 17 times 3?"])
async def test_nothing_is_thought_aloud(answering: Answering, question: str) -> None:
    tokens, usage = await answering.ask(question, 60)
    assert not usage.reasoning_seen
    assert "<think" not in "".join(token.text for token in tokens)


async def test_temperature_nought_gives_the_same_answer_again(answering: Answering) -> None:
    answers: list[tuple[list[Token], Usage]] = [await answering.ask("Say hello.", 12) for _ in range(2)]
    assert len({"".join(token.text for token in tokens) for tokens, _ in answers}) == 1
