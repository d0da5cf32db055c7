"""``ondam switch``: what it asks of the daemon, what it shows, and how it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon, until

from ondam.cli import switch
from ondam.control import wire
from ondam.errors import ControlError, EngineError, ModelError
from ondam.house import switching
from ondam.messages import Phrase


def test_the_command_knows_the_keys_that_the_daemon_does() -> None:
    assert switch.KEYS == switching.KEYS


async def test_a_stage_alone_means_its_model(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("switch", "llm=qwen3-8b", "tts.engine=supertonic")
    assert done.code == 0
    assert daemon.asked == [("switch", {"llm.model": "qwen3-8b", "tts.engine": "supertonic"}, False)]
    assert "--keep" in done.out


async def test_a_file_is_meant_as_seen_from_where_the_command_is_typed(
    ondam: Ondam, daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await ondam("switch", "llm=weights.gguf")
    assert daemon.asked == [("switch", {"llm.model": str(tmp_path / "weights.gguf")}, False)]


async def test_json_is_what_the_daemon_says(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("switch", "llm=qwen3-8b", "--keep", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["state"] == "done" and done.json["kept"] is True
    assert daemon.asked == [("switch", {"llm.model": "qwen3-8b"}, True)]


async def test_each_step_is_told_on_stderr(ondam: Ondam, daemon: FakeDaemon) -> None:
    daemon.hold = asyncio.Event()
    running = asyncio.ensure_future(ondam("switch", "llm=b"))
    await until(lambda: bool(daemon.asked) and daemon.broadcast.subscribers == 1)
    steps: list[tuple[wire.SwitchState, list[str]]] = [
        ("loading", ["cpu: no room for both"]),
        ("warming", []),
    ]
    for state, short in steps:
        daemon.broadcast.publish({"type": "switch", "switch": a_switch(state, short)})
    await asyncio.sleep(0.2)
    daemon.hold.set()
    done = await running
    assert done.err.splitlines() == [
        "Change to llm.model=b: loading the new engine",
        "cpu: no room for both",
        "Change to llm.model=b: warming it up",
    ]


def a_switch(state: wire.SwitchState, short: list[str]) -> wire.Switch:
    return {
        "state": state,
        "wanted": {"llm.model": "b"},
        "since": "2026-01-02T03:04:05+00:00",
        "stages": ["llm"],
        "beside": not short,
        "short": short,
        "kept": False,
        "fault": None,
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ControlError("switch_under_way", wanted="llm.model=a"), 4),
        (ModelError("model_unknown", id="b", near=""), 5),
        (
            EngineError(
                "switch_failed",
                wanted="llm.model=b",
                reason=Phrase("engine_exited", engine="llama_server", status=3),
            ),
            6,
        ),
    ],
    ids=["under way", "no weights", "failed"],
)
async def test_the_exit_code_says_who_is_to_blame(
    ondam: Ondam, daemon: FakeDaemon, error: Any, code: int
) -> None:
    daemon.failing = error
    done = await ondam("switch", "llm=b")
    assert done.code == code
    assert error.message("en").text in done.err
    assert (await ondam("switch", "llm=b", "--json")).json["error"]["code"] == error.code


@pytest.mark.parametrize("given", ["llm", "llm=", "=x", "llm.temperature=0", "ears=x"])
async def test_what_is_no_wish_is_a_usage_error(ondam: Ondam, daemon: FakeDaemon, given: str) -> None:
    done = await ondam("switch", given)
    assert (done.code, daemon.asked) == (2, [])
    assert "llm.model" in done.err and given in done.err


async def test_without_a_daemon_it_says_what_to_type(ondam: Ondam) -> None:
    done = await ondam("switch", "llm=b", "--json")
    assert (done.code, done.json["error"]["code"]) == (4, "daemon_not_running")
