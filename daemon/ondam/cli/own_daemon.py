"""A daemon for as long as a command lasts, where none is running: for the demo and the benchmark."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.errors import ControlError, EngineError
from ondam.messages import Phrase, reader_language, text
from ondam.places import Places, places
from ondam.supervisor.airlock import Network
from ondam.supervisor.leash import leashed

if TYPE_CHECKING:
    from ondam.control import wire
    from ondam.types import Language

DAEMON_READY_S = 180.0
DAEMON_ENDS_S = 10.0


@asynccontextmanager
async def own_daemon(
    here: Places,
    settings: Mapping[str, str],
    *,
    alone: bool = False,
    home: Path | None = None,
    before: Sequence[str] = (),
    network: Network = "open",
) -> AsyncIterator[None]:
    """The daemon that runs already, or one of our own for as long as the command lasts.

    ``alone``: only one of our own will do. ``home``: its ONDAM_HOME, where ``here`` is not this process's own
    (``home_beside``). ``before``: words in front of its command (strace); ``network``: what it is let have.
    Raises ControlError ``daemon_in_the_way`` when another runs.
    """
    if await _runs(here):
        if alone:
            raise ControlError("daemon_in_the_way")
        _say(text("demo_daemon_runs", reader_language()))
        yield
        return
    _say(text("demo_daemon_starts", reader_language()))
    here.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
    errors = here.logs / "demo.log"
    command = [sys.executable, "-m", "ondam", "up", "--microphone", "none", "--speaker", "none"]
    command += [f"--set={key}={value}" for key, value in settings.items()]
    with errors.open("wb") as log:
        # A session of its own: Ctrl-C in the terminal ends the command, and the command ends its daemon.
        process = await asyncio.create_subprocess_exec(
            *leashed([*before, *command], network),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=None if home is None else {**os.environ, "ONDAM_HOME": str(home)},
        )
    try:
        async with _ended_by_sigterm():
            await _until_it_answers(here, process, errors)
            yield
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), DAEMON_ENDS_S)
            except TimeoutError:
                process.kill()
                await process.wait()


@contextmanager
def home_beside(here: Places) -> Iterator[tuple[Path, Places]]:
    """A home, and its places, for a second daemon: the same configuration, engines and models, a state and
    sockets of its own. Gone afterwards, its journal with it."""
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        home = Path(folder)
        for name, there in (("config", here.config), ("data", here.data)):
            (home / name).symlink_to(there)
        yield home, places({**os.environ, "ONDAM_HOME": folder})


async def _until_it_answers(here: Places, process: asyncio.subprocess.Process, errors: Path) -> None:
    deadline = time.monotonic() + DAEMON_READY_S
    while not await _runs(here):
        if process.returncode is not None or time.monotonic() > deadline:
            raise EngineError("daemon_did_not_start", path=errors, tail=_tail(errors))
        await asyncio.sleep(0.05)


@asynccontextmanager
async def _ended_by_sigterm() -> AsyncIterator[None]:
    """SIGTERM ends what is inside as Ctrl-C would. Not by raising SIGINT: background jobs ignore that."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    task, asked = asyncio.current_task(), False
    assert task is not None

    def end() -> None:
        nonlocal asked
        asked = True
        task.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield
    except asyncio.CancelledError:
        if asked:
            task.uncancel()
            raise click.Abort from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def asked_in(here: Places, named: Language | None) -> Language | None:
    """What to ask in: as ``named`` by an option, else what the daemon that runs speaks, which is told.

    None where there is neither: as configured. Who types may read another language than it hears and speaks.
    """
    if named is not None:
        return named
    status = asyncio.run(_status(here))
    if status is None:
        return None
    spoken: Language = "ko" if status["language"] == "ko" else "en"
    _say(text("asked_in", reader_language(), language=Phrase(f"cli_language_{spoken}")))
    return spoken


async def _runs(here: Places) -> bool:
    return await _status(here) is not None


async def _status(here: Places) -> wire.Status | None:
    """Of the daemon that runs; None where none does."""
    from ondam.control.client import Client

    try:
        async with Client(here.control_socket) as client:
            return await client.status()
    except ControlError as error:
        if error.code != "daemon_not_running":
            raise
        return None


async def until_ready(client: Any) -> None:
    """Return when no engine is being started any more; each is named as it becomes ready."""
    told: set[str] = set()
    try:
        async with asyncio.timeout(DAEMON_READY_S), aclosing(client.events()) as events:
            async for event in events:
                status = await client.status()
                for engine in status["engines"]:
                    if engine["name"] not in told and engine["state"] in {"ready", "failed"}:
                        told.add(engine["name"])
                        code = f"demo_engine_{engine['state']}"
                        _say(text(code, reader_language(), name=engine["name"], stage=engine["stage"]))
                coming = {"starting", "loading", "restarting"}
                waiting = [e for e in status["engines"] if e["state"] in coming and not e["spare"]]
                told_now = event["type"] in {"snapshot", "engine", "state"}
                if told_now and not waiting and status["state"] != "starting":
                    return
    except TimeoutError as error:
        raise EngineError("daemon_slow_start", seconds=round(DAEMON_READY_S)) from error


def _tail(path: Path, lines: int = 8) -> str:
    return "\n".join(path.read_text("utf-8", "replace").splitlines()[-lines:])


def _say(line: str) -> None:
    click.echo(line, err=True)
