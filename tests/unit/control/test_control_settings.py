"""Devices, settings, reading the configuration again, diagnostics and what is fleeting, on a real socket."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from tests.unit.control.fake_daemon import FakeDaemon, devices, until

from ondam.config import load
from ondam.control import wire
from ondam.control.client import Client
from ondam.control.diagnostics import diagnostics, versions
from ondam.control.failure import status_of
from ondam.control.server import Server
from ondam.errors import ConfigError, ControlError
from ondam.messages import Phrase, Phrases


async def test_each_call_reaches_the_daemon_with_its_arguments(client: Client, daemon: FakeDaemon) -> None:
    assert await client.devices() == devices({})
    chosen = await client.choose_devices({"microphone": "headset"}, keep=True)
    assert [one["chosen"] for one in chosen["microphones"]] == [False, True]
    await client.choose_devices({"microphone": None, "speaker": "hdmi"})
    assert (await client.settings())["settings"][0]["key"] == "listen.mode"
    changed = await client.set_settings({"listen.mode": "muted", "llm.max_tokens": 9}, keep=True)
    assert changed["settings"][0]["value"] == "muted"
    assert await client.reload() == {"applied": ["llm.max_tokens"], "needs_restart": ["metrics.listen"]}
    assert (await client.diagnostics())["logs"] == {"daemon": "listening"}
    assert daemon.asked == [
        ("devices",),
        ("choose_devices", {"microphone": "headset"}, True),
        ("choose_devices", {"microphone": None, "speaker": "hdmi"}, False),
        ("settings", "en"),
        ("set_settings", {"listen.mode": "muted", "llm.max_tokens": 9}, True, "en"),
        ("reload",),
        ("diagnostics", "en"),
    ]


def test_who_may_do_what() -> None:
    allowed = {route: (route.method, route.permission) for route in wire.ROUTES}
    assert {allowed[wire.DEVICES], allowed[wire.SETTINGS]} == {("GET", "read")}
    assert {allowed[wire.CHOOSE_DEVICES], allowed[wire.SET_SETTINGS]} == {("POST", "command")}
    assert allowed[wire.RELOAD] == ("POST", "admin")
    assert allowed[wire.DIAGNOSTICS] == ("GET", "admin")


async def test_labels_are_asked_for_in_the_readers_language(
    server: Server, socket_path: Path, daemon: FakeDaemon
) -> None:
    async with Client(socket_path, "ko") as client:
        await client.settings()
        await client.set_settings({"llm.max_tokens": 9})
    assert daemon.asked == [("settings", "ko"), ("set_settings", {"llm.max_tokens": 9}, False, "ko")]


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("settings", {}, "set: missing"),
        ("settings", {"set": {}}, "set: "),
        ("settings", {"set": 3}, "set: "),
        ("settings", {"sets": {"a": 1}, "set": {"a": 1}}, "sets: unknown key"),
        ("settings", {"set": {"a": 1}, "keep": "yes"}, "keep: "),
        ("settings", {"set": {f"k{n}": n for n in range(101)}}, "set: "),
        ("devices", {"microphone": ""}, "microphone: "),
        ("devices", {"microphone": 3}, "microphone: "),
        ("devices", {"microphone": "x" * 501}, "microphone: "),
        ("devices", {"loudspeaker": "x"}, "loudspeaker: unknown key"),
    ],
)
async def test_a_body_that_is_wrong_is_refused_before_the_daemon_is_asked(
    server: Server, socket_path: Path, daemon: FakeDaemon, path: str, body: object, problem: str
) -> None:
    connector = aiohttp.UnixConnector(str(socket_path))
    async with aiohttp.ClientSession("http://ondam", connector=connector) as session:
        answer = await session.post(f"/api/{path}", json=body)
        told = await answer.json()
    assert (answer.status, told["error"]["code"]) == (400, "control_bad_request")
    assert problem in told["error"]["text"]
    assert daemon.asked == []


async def test_settings_that_the_daemon_refuses_are_a_bad_request_with_every_problem(
    client: Client, daemon: FakeDaemon
) -> None:
    problems = Phrases((Phrase("problem_missing", key="a"), Phrase("problem_missing", key="b")))
    daemon.failing = ConfigError("config_problems", origin=Phrase("origin_settings"), problems=problems)
    for call in (client.set_settings({"a": 1}), client.choose_devices({"speaker": "x"})):
        with pytest.raises(ControlError, match=r"a: missing.*; b: missing") as caught:
            await call
        assert status_of(caught.value) == 400


async def test_a_file_that_is_broken_is_told_as_the_configurations_fault(
    client: Client, daemon: FakeDaemon
) -> None:
    problems = Phrases((Phrase("problem_missing", key="a"), Phrase("problem_missing", key="b")))
    daemon.failing = ConfigError("config_problems", origin="/home/x/config.toml", problems=problems)
    with pytest.raises(ConfigError) as caught:
        await client.reload()
    assert caught.value.exit_code == 3
    assert str(caught.value).splitlines()[1:] == ["  a: missing", "  b: missing"]


async def test_levels_come_to_those_alone_who_ask(client: Client, daemon: FakeDaemon) -> None:
    plain, events = client.events(), client.events(levels=True)
    await anext(plain)
    await anext(events)
    assert (daemon.broadcast.subscribers, daemon.broadcast.followers) == (2, 1)
    level: wire.LevelsEvent = {"type": "levels", "microphone_db": -40.5, "speaker_db": None}
    daemon.broadcast.publish(level)
    daemon.broadcast.publish({"type": "mode", "session": "s", "mode": "push"})
    assert await anext(events) == level
    assert (await anext(events))["type"] == (await anext(plain))["type"] == "mode"
    await events.aclose()
    await until(lambda: daemon.broadcast.followers == 0)
    await plain.aclose()


async def test_levels_are_wanted_or_not_and_nothing_else(server: Server, socket_path: Path) -> None:
    connector = aiohttp.UnixConnector(str(socket_path))
    async with aiohttp.ClientSession("http://ondam", connector=connector) as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect("/api/events?levels=yes")
    assert refused.value.status == 400


def test_diagnostics_leave_out_words_and_the_users_name(daemon: FakeDaemon) -> None:
    status = daemon.status()
    status["faults"] = [{"code": "f", "text": "/home/bora/x is full", "next": ""}]
    findings: list[wire.Finding] = [
        {"code": "slow", "severity": "warning", "evidence": {}, "text": "slow", "next": ""}
    ]
    group: wire.ReportGroup = {
        "conditions": "abc",
        "facts": None,
        "turns": 1,
        "oldest": "",
        "newest": "",
        "moment": {},
        "drifting": 0,
        "populations": {},
        "findings": findings,
        "differs": [],
    }
    report: wire.Report = {"turns": 1, "more": False, "skipped": 0, "groups": [group]}
    logs = {"daemon": "listening on /home/bora/.ondam"}
    told = diagnostics(status, load(None), report, logs, Path("/home/bora"))
    assert told["logs"] == {"daemon": "listening on ~/.ondam"}
    assert told["findings"] == findings
    last = told["status"]["last_turn"]
    assert last is not None
    assert (last["transcript"], last["reply"], last["first_audio_ms"]) == (None, None, 640.0)
    assert "bora" not in repr(told)
    assert status["last_turn"] is not None and status["last_turn"]["reply"]  # what was given stays as it was


def test_a_library_that_is_lacking_is_told_and_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ondam.control.diagnostics.LIBRARIES", ("aiohttp", "no-such-library"))
    found = versions()
    assert found["aiohttp"].startswith("3.")
    assert found["no-such-library"] == "–"
