"""What a person sees while weights are fetched: bars on a terminal, lines in a log. Always on stderr."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from ondam.messages import reader_language, text


class Task(Protocol):
    """One thing that takes a while. May be told from any thread."""

    def size(self, total: int, done: int = 0) -> None:
        """``total`` bytes are to come, ``done`` of them are here already."""

    def advance(self, count: int) -> None:
        """``count`` more bytes are done."""

    def finish(self) -> None:
        """It is done."""


class Reporter(Protocol):
    """Where tasks are shown."""

    def task(self, name: str) -> Task:
        """Show a new one."""

    def say(self, line: str) -> None:
        """Show a line."""


class Silent:
    """Shows nothing."""

    def task(self, name: str) -> Task:
        """As in ``Reporter``."""
        return _SilentTask()

    def say(self, line: str) -> None:
        """As in ``Reporter``."""


class _SilentTask:
    def size(self, total: int, done: int = 0) -> None:
        pass

    def advance(self, count: int) -> None:
        pass

    def finish(self) -> None:
        pass


class Bars:
    """Bars with bytes, speed and time left on a terminal; elsewhere a line at the start and at the end."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def task(self, name: str) -> Task:
        """As in ``Reporter``."""
        if self._console.is_terminal:
            return _BarTask(self._progress, self._progress.add_task(name, total=None))
        return _LineTask(self._console, name)

    def say(self, line: str) -> None:
        """As in ``Reporter``."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class _BarTask:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def size(self, total: int, done: int = 0) -> None:
        self._progress.reset(self._task, total=total, completed=done)

    def advance(self, count: int) -> None:
        self._progress.advance(self._task, count)

    def finish(self) -> None:
        self._progress.stop_task(self._task)


class _LineTask:
    def __init__(self, console: Console, name: str) -> None:
        self._console, self._name = console, name
        self._done = self._from = 0
        self._began = time.monotonic()

    def size(self, total: int, done: int = 0) -> None:
        self._done = self._from = done
        code = "models_going_on" if done else "models_begun"
        self._print(code, total=_mb(total), done=_mb(done))

    def advance(self, count: int) -> None:
        self._done += count

    def finish(self) -> None:
        seconds = max(time.monotonic() - self._began, 0.001)
        speed = _mb((self._done - self._from) / seconds)
        self._print("models_done", seconds=seconds, speed=speed)

    def _print(self, code: str, /, **facts: object) -> None:
        line = text(code, reader_language(), name=self._name, **facts)
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _mb(count: float) -> str:
    return f"{count / 1e6:.1f} MB"
