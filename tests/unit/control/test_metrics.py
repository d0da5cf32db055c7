from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from prometheus_client.parser import text_string_to_metric_families
from tests.fakes.virtual_time import virtual_time
from tests.unit.control.fake_daemon import FakeDaemon, turn

from ondam.config import TcpPlace, load
from ondam.control import wire
from ondam.control.exporter import MOST_CLIENTS, Exporter
from ondam.control.metrics import Metrics
from ondam.control.server import Server
from ondam.errors import ConfigError, ControlError

Labels = dict[str, str]


def told(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample by its name and labels."""
    text = metrics.text(FakeDaemon().status(), lost=2).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def at(metrics: Metrics, name: str, **labels: str) -> float:
    return told(metrics)[name, frozenset(labels.items())]


def ended(first_audio_ms: float | None, population: str, *, outcome: str = "answered") -> wire.Turn:
    over = None if first_audio_ms is None else first_audio_ms > 800
    return {
        **turn(),
        "outcome": outcome,
        "first_audio_ms": first_audio_ms,
        "population": population,
        "over_budget": over,
        "drafts": {"made": 2, "dropped": 1, "tokens": 7},
    }


def test_the_budget_is_the_bound_of_a_bucket_and_populations_stay_apart() -> None:
    metrics = Metrics(budget_ms=800)
    for ms in (500.0, 799.0, 801.0, 1700.0):
        metrics.turn(ended(ms, "settled"))
    metrics.turn(ended(300.0, "cold"))
    assert at(metrics, "ondam_first_audio_seconds_bucket", le="0.8", population="settled") == 2
    assert at(metrics, "ondam_first_audio_seconds_bucket", le="2.4", population="settled") == 4
    assert at(metrics, "ondam_first_audio_seconds_count", population="settled") == 4
    assert at(metrics, "ondam_first_audio_seconds_sum", population="settled") == pytest.approx(3.8)
    assert at(metrics, "ondam_first_audio_seconds_count", population="cold") == 1
    assert at(metrics, "ondam_turns_over_budget_total", population="settled") == 2


def test_what_was_not_answered_is_counted_and_in_no_distribution() -> None:
    metrics = Metrics(budget_ms=800)
    metrics.turn(ended(900.0, "settled", outcome="failed"))
    metrics.turn(ended(None, "settled"))
    assert at(metrics, "ondam_turns_total", outcome="failed", population="settled") == 1
    assert at(metrics, "ondam_turns_total", outcome="answered", population="settled") == 1
    assert not [key for key in told(metrics) if key[0].startswith("ondam_first_audio_seconds")]


def test_an_answer_that_was_spoken_over_began_and_did_not_end() -> None:
    metrics = Metrics(budget_ms=800)
    metrics.turn(ended(900.0, "settled", outcome="interrupted"))
    assert at(metrics, "ondam_first_audio_seconds_count", population="settled") == 1
    assert at(metrics, "ondam_turns_over_budget_total", population="settled") == 1
    assert not [key for key in told(metrics) if key[0].startswith("ondam_answer_seconds")]


def test_a_sum_never_shrinks() -> None:
    metrics = Metrics(budget_ms=800)
    early = ended(-20.0, "settled")
    early["stages_ms"]["endpoint"] = -100.0
    metrics.turn(early)
    assert at(metrics, "ondam_first_audio_seconds_sum", population="settled") == 0
    assert at(metrics, "ondam_stage_seconds_sum", stage="endpoint", population="settled") == 0


def test_drafts_tokens_and_engines_are_told() -> None:
    metrics = Metrics(budget_ms=800)
    for _ in range(3):
        metrics.turn(ended(500.0, "settled"))
    assert at(metrics, "ondam_drafts_total", fate="dropped") == 3
    assert at(metrics, "ondam_tokens_total", kind="dropped") == 21
    assert at(metrics, "ondam_tokens_total", kind="prompt") == 3 * (turn()["tokens"]["prompt"] or 0)
    assert at(metrics, "ondam_engine_ready", engine="faster_whisper", stage="stt") == 1
    assert at(metrics, "ondam_engine_as_planned", engine="faster_whisper", stage="stt") == 1
    assert at(metrics, "ondam_journal_lost_turns") == 2


async def test_the_socket_gives_them_to_whoever_may_read(server: Server, socket_path: Path) -> None:
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket_path))) as session,
        session.get("http://ondam/metrics") as answer,
    ):
        assert answer.content_type == "text/plain"
        assert await answer.read() == FakeDaemon().metrics()


async def test_over_tcp_there_is_nothing_but_the_metrics() -> None:
    where = TcpPlace("127.0.0.1", free_port())
    exporter = Exporter(FakeDaemon(), where)
    await exporter.start()
    try:
        async with aiohttp.ClientSession(f"http://{where.host}:{where.port}") as session:
            async with session.get("/metrics") as answer:
                assert await answer.read() == FakeDaemon().metrics()
            for path in ("/api/status", "/"):
                async with session.get(path) as answer:
                    assert answer.status == 404
            async with session.post("/metrics") as answer:
                assert answer.status == 405
        with pytest.raises(ControlError, match="Address already in use") as refused:
            await Exporter(FakeDaemon(), where).start()
        assert refused.value.code == "metrics_not_served"
    finally:
        await exporter.stop()
    with pytest.raises(OSError):
        await asyncio.open_connection(*where)


async def test_over_tcp_more_connections_than_are_any_use_are_closed_and_room_is_made_again() -> None:
    where = TcpPlace("127.0.0.1", free_port())
    exporter = Exporter(FakeDaemon(), where)
    await exporter.start()
    try:
        inside = [await asyncio.open_connection(*where) for _ in range(MOST_CLIENTS)]
        await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection(*where)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        inside.pop()[1].close()
        for _ in range(1000):
            async with aiohttp.ClientSession() as session:
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(f"http://{where.host}:{where.port}/metrics") as answer:
                        assert answer.status == 200
                        break
        else:
            raise AssertionError("no room")
        for _, left in inside:
            left.close()
    finally:
        await exporter.stop()


@virtual_time
async def test_whoever_scrapes_too_often_waits_and_far_too_often_is_refused() -> None:
    exporter, loop = Exporter(FakeDaemon(), TcpPlace("127.0.0.1", 1)), asyncio.get_running_loop()
    request = make_mocked_request("GET", "/metrics")
    for _ in range(20):
        await exporter._metrics(request)
    assert loop.time() == 0
    await exporter._metrics(request)
    assert loop.time() == pytest.approx(0.1)
    outcomes = await asyncio.gather(*(exporter._metrics(request) for _ in range(100)), return_exceptions=True)
    assert sum(isinstance(outcome, web.HTTPTooManyRequests) for outcome in outcomes) == 50


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    "given", ["9464", "localhost", "127.0.0.1:", "a:70000", "http://a:1", "a:1/x", "u@a:1"]
)
def test_an_address_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(ConfigError):
        load(None, {"metrics": {"listen": given}})


def test_nobody_is_served_unless_the_user_says_where() -> None:
    assert load(None, {}).metrics.where is None
    assert load(None, {"metrics": {"listen": "[::1]:9464"}}).metrics.where == TcpPlace("::1", 9464)
