"""``ondam status --watch``: a full screen, a line for each event, or JSON; until it is asked to end.

Ctrl-C and SIGTERM are how it is asked, and so is a reader who has left: all of them are an end as wished. A
daemon that goes away is waited for. Only without one at the beginning it ends at once, and says so.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, Protocol

import click

from ondam.cli.status import compared, one_line, told
from ondam.cli.terminal import print_json, say
from ondam.cli.watched import OF_A_CONVERSATION, TURNS, Watched, elsewhere
from ondam.control import wire
from ondam.control.client import Client
from ondam.errors import OndamError
from ondam.messages import reader_language

AGAIN_S = 1.0
"""Between attempts to reach a daemon that has gone."""

REFRESH_S = 3.0
"""How often is asked what no event tells: memory, uptime."""

IN_WORDS = frozenset({"fault", "fault_cleared", "engine", "switch"})
"""Events that hold texts, which are in the daemon's language: the reader's are in the status."""

FRAME_S = 0.1
"""A screen is drawn no more often, and only where something is new."""


class Output(Protocol):
    """What becomes of what is seen."""

    levels: bool
    """Whether it wants what is fleeting."""

    async def begin(self, client: Client, status: wire.Status) -> None:
        """The daemon is there, for the first time or again."""

    async def take(self, client: Client, event: wire.Event) -> None:
        """It tells of something."""

    def gone(self) -> None:
        """It does not answer any more."""


def watch(output: Output, client: Callable[[], Client]) -> int:
    """Follow the daemon until asked to end. Returns the exit code; ControlError where none is there."""
    try:
        asyncio.run(_until_asked(follow(output, client)))
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # What is still buffered must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


async def _until_asked(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    looking = asyncio.ensure_future(_until_nobody_reads())
    try:
        await asyncio.wait({task, looking}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        looking.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _until_nobody_reads() -> None:
    """Return when the reader of our pipe has left (`| head`): between two events nothing else would tell."""
    left = asyncio.Event()
    try:
        descriptor = sys.stdout.fileno()
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            # A pipe that we write to is never readable; it is when nobody reads it any more.
            asyncio.get_running_loop().add_reader(descriptor, left.set)
    except (OSError, ValueError):  # no file at all
        pass
    await left.wait()


async def follow(output: Output, client: Callable[[], Client]) -> None:
    """Never ends by itself. Raises ControlError where there is no daemon at the beginning."""
    met = False
    while True:
        try:
            async with (
                client() as connected,
                aclosing(connected.events(levels=output.levels)) as events,
            ):
                async for event in events:
                    if event["type"] == "snapshot":
                        await output.begin(connected, event["status"])
                        met = True
                    else:
                        await output.take(connected, event)
        except OndamError:
            if not met:
                raise
            output.gone()
        await asyncio.sleep(AGAIN_S)


class Lines:
    """A line for each event, for pipes and journald: time, the event's type, and what it is in words."""

    levels = False

    def __init__(self, clock: Callable[[], str] = lambda: time.strftime("%Y-%m-%dT%H:%M:%S%z")) -> None:
        self._clock = clock
        self._faults: list[wire.Fault] = []
        self._session = ""
        self._away = False

    async def begin(self, client: Client, status: wire.Status) -> None:
        """A line for the daemon, and one for each thing that is wrong."""
        status = await client.status()
        self._away = False
        self._session = status["session"]
        self._line("snapshot", one_line(status))
        self._faults = []
        self._compare(status)

    async def take(self, client: Client, event: wire.Event) -> None:
        """Its line."""
        if event["type"] in OF_A_CONVERSATION and elsewhere(event, self._session):
            return
        if event["type"] in {"fault", "fault_cleared"}:
            self._compare(await client.status())
        if event["type"] == "switch" and event["switch"]["fault"]:
            event["switch"] = (await client.status())["switch"] or event["switch"]
        for line in told(event):
            self._line(event["type"], line)

    def _compare(self, status: wire.Status) -> None:
        for kind, line in compared(self._faults, status["faults"]):
            self._line(kind, line)
        self._faults = status["faults"]

    def gone(self) -> None:
        """Told once."""
        if not self._away:
            self._away = True
            self._line("gone", say("watch_away"))

    def _line(self, kind: str, text: str) -> None:
        # One event, one line: whatever is in it.
        click.echo(f"{self._clock()} {kind:<13} {' '.join(text.split())}")


class Json:
    """An event as JSON on each line, as the control API gives it; ``{"type": "gone"}`` while it is away."""

    levels = False

    def __init__(self) -> None:
        self._away = False

    async def begin(self, client: Client, status: wire.Status) -> None:
        """The snapshot."""
        self._away = False
        print_json({"type": "snapshot", "status": status})

    async def take(self, client: Client, event: wire.Event) -> None:
        """As it came."""
        print_json(event)

    def gone(self) -> None:
        """Told once."""
        if not self._away:
            self._away = True
            print_json({"type": "gone"})


class Screen:
    """The full screen. ``draw`` is called whenever something is new."""

    levels = True

    def __init__(self, draw: Callable[[Watched], None]) -> None:
        self._watched = Watched()
        self._draw = draw
        self._news = asyncio.Event()
        self._drawing: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None

    async def begin(self, client: Client, status: wire.Status) -> None:
        """Also what happened before."""
        self._watched.begin(await client.status(), await client.turns(TURNS))
        self._end_refreshing()
        self._refreshing = asyncio.create_task(self._refresh(client), name="refreshing")
        if self._drawing is None:
            self._drawing = asyncio.create_task(self._draw_all(), name="drawing")
        self._news.set()

    async def take(self, client: Client, event: wire.Event) -> None:
        """See ``Watched``."""
        if event["type"] in IN_WORDS:
            self._watched.refresh(await client.status())
        else:
            self._watched.take(event)
        self._news.set()

    def gone(self) -> None:
        """What was known stays to be read."""
        self._end_refreshing()
        self._watched.gone()
        self._news.set()

    def _end_refreshing(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            self._refreshing = None

    async def _refresh(self, client: Client) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            with suppress(OndamError):  # its end is seen by who reads the events
                self._watched.refresh(await client.status())
                self._news.set()

    async def _draw_all(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            self._draw(self._watched)
            await asyncio.sleep(FRAME_S)


def on_screen() -> int:
    """The full screen, for a person at a terminal."""
    from rich.live import Live

    from ondam.cli.screen import screen

    with Live(screen=True, auto_refresh=False) as live:

        def draw(watched: Watched) -> None:
            size = live.console.size
            live.update(screen(watched, size.width, size.height), refresh=True)

        return watch(Screen(draw), connect)


def connect() -> Client:
    """To this instance's daemon."""
    from ondam.places import answering

    return Client(answering(), reader_language())


def for_person() -> bool:
    """Whether there is a terminal that can show a full screen."""
    from rich.console import Console

    console = Console()
    return sys.stdin.isatty() and console.is_terminal and not console.is_dumb_terminal
