from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.cli import command
from ondam.cli.frame import run
from ondam.control.server import Server
from ondam.places import places


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Any: what the test expects of it."""
        return json.loads(self.out)


Ondam = Callable[..., Awaitable[Result]]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An instance of its own, in English."""
    with tempfile.TemporaryDirectory(prefix="ondam-") as runtime:
        monkeypatch.setenv("ONDAM_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        monkeypatch.setenv("ONDAM_LANGUAGE", "en")
        monkeypatch.delenv("ONDAM_DEBUG", raising=False)
        yield tmp_path / "home"


@pytest.fixture
def ondam(capsys: pytest.CaptureFixture[str]) -> Ondam:
    """Run a command as a person would, in a thread: the fake daemon goes on answering meanwhile."""

    async def ondam(*arguments: str) -> Result:
        code = await asyncio.to_thread(run, command, [*arguments])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return ondam


@pytest.fixture
async def daemon() -> AsyncIterator[FakeDaemon]:
    """A fake daemon on this instance's socket."""
    daemon = FakeDaemon()
    server = Server(daemon, places().control_socket)
    await server.start()
    yield daemon
    await server.stop()
