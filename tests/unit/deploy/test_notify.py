"""What goes to the service manager's socket, and what stays away from engines."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ondam.audio.alive import Stuck
from ondam.deploy.notify import Manager
from ondam.deploy.service_states import ServiceStates
from ondam.supervisor.status import EngineState, EngineStatus


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with (
        tempfile.TemporaryDirectory(prefix="ondam-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made,
    ):
        made.bind(str(Path(folder) / "온담 notify"))
        made.settimeout(1)
        yield made


def heard(listening: socket.socket) -> list[str]:
    return listening.recv(65536).decode().splitlines()


def test_states_are_lines_and_a_text_stays_on_its_line(listening: socket.socket) -> None:
    manager = Manager(listening.getsockname())
    manager.tell(READY=1, STATUS="준비됨\nWATCHDOG=trigger")
    assert heard(listening) == ["READY=1", "STATUS=준비됨 WATCHDOG=trigger"]


def test_an_abstract_address_is_one() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        name = f"ondam-test-{os.getpid()}"
        made.bind(f"\0{name}")
        made.settimeout(1)
        Manager(f"@{name}").tell(WATCHDOG=1)
        assert heard(made) == ["WATCHDOG=1"]


def test_a_manager_that_is_gone_or_does_not_read_is_no_error(listening: socket.socket) -> None:
    Manager("/nonexistent/notify").tell(READY=1)
    manager = Manager(listening.getsockname())
    for _ in range(10_000):  # more than any buffer holds
        manager.tell(STATUS="x" * 100)


def test_its_variables_are_taken_away_from_whatever_is_started_later() -> None:
    environ = {
        "NOTIFY_SOCKET": "/run/n",
        "WATCHDOG_USEC": "30000000",
        "WATCHDOG_PID": str(os.getpid()),
        "A": "",
    }
    assert Manager.of(environ) == Manager("/run/n", 30.0)
    assert environ == {"A": ""}


@pytest.mark.parametrize(
    ("environ", "made"),
    [
        ({}, None),
        ({"NOTIFY_SOCKET": "vsock:2:1234"}, None),
        ({"NOTIFY_SOCKET": "/n"}, Manager("/n")),
        ({"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "5000000", "WATCHDOG_PID": "1"}, Manager("/n")),
        ({"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "soon"}, Manager("/n")),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "5000000"}, Manager("@n", 5.0)),
    ],
)
def test_who_started_us(environ: dict[str, str], made: Manager | None) -> None:
    assert Manager.of(environ) == made


class Told(Manager):
    """Keeps what it was told."""

    __slots__ = ()
    messages: list[dict[str, str | int]] = []  # noqa: RUF012 - emptied by whoever makes one

    def tell(self, **states: str | int) -> None:
        self.messages.append(states)


class Daemon:
    def __init__(self, **engines: EngineState) -> None:
        self.engines: dict[str, EngineState] = dict(engines)
        self.stuck: Stuck | None = None
        Told.messages.clear()
        self.states = ServiceStates(
            Told("/n", 30.0),
            engines=lambda: [EngineStatus(name, "tts", state, "") for name, state in self.engines.items()],
            stuck=lambda: self.stuck,
            language="en",
        )

    def look(self) -> dict[str, str | int]:
        self.states._look()
        return Told.messages[-1]


def test_loading_is_given_more_time_and_ready_is_told_once() -> None:
    daemon = Daemon(stt="loading", llm="starting", tts="ready")
    assert daemon.look() == {
        "EXTEND_TIMEOUT_USEC": 30_000_000,
        "WATCHDOG": 1,
        "STATUS": "loading stt, llm",
    }
    assert daemon.look() == {"EXTEND_TIMEOUT_USEC": 30_000_000, "WATCHDOG": 1}, (
        "a status is told when it changes"
    )
    daemon.engines |= {"stt": "ready", "llm": "ready"}
    assert daemon.look() == {"READY": 1, "WATCHDOG": 1, "STATUS": "ready"}
    daemon.engines["llm"] = "loading"  # started again: that is no start of the service
    assert daemon.look() == {"WATCHDOG": 1, "STATUS": "loading llm"}


def test_an_engine_that_fails_at_its_start_keeps_nobody_waiting() -> None:
    daemon = Daemon(stt="restarting", llm="loading", tts="failed")
    assert "READY" not in daemon.look()
    daemon.engines |= {"stt": "loading", "llm": "ready"}
    assert daemon.look() == {"READY": 1, "WATCHDOG": 1, "STATUS": "loading stt; without tts"}


def test_sound_that_does_not_move_ends_the_feeding_until_it_moves_again() -> None:
    daemon = Daemon(tts="ready")
    assert "WATCHDOG" in daemon.look()
    daemon.stuck = "conversation"
    first = daemon.look()
    assert "WATCHDOG" not in first and "listened to" in str(first["STATUS"])
    assert daemon.look() == {}
    daemon.stuck = None
    assert daemon.look() == {"WATCHDOG": 1, "STATUS": "ready"}
