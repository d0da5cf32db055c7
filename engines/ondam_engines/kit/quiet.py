"""Keeps what is heard, answered and spoken out of an engine's log, whatever a model's library has to say.

Of an exception its type and its place are written, not its words; of a library's line only its place.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any

_LOG = logging.getLogger(__name__)

OURS = ("ondam_engines", "__main__")

MOST_LINKED = 8
"""Exceptions of one chain that are told."""

SAYABLE = (FileNotFoundError, PermissionError, MemoryError, ImportError)
"""What is told in its own words: they name files, libraries and sizes."""


def be_quiet() -> None:
    """From now on no record, and no last word of Python, holds what the engine was asked."""
    logging.setLogRecordFactory(_Record)
    logging.captureWarnings(True)  # else they print values on stderr
    sys.excepthook = lambda kind, error, trace: _broke("the engine", error)
    threading.excepthook = lambda failed: _broke("a thread", failed.exc_value)
    sys.unraisablehook = lambda failed: _broke("an object on its end", failed.exc_value)


def quiet_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Likewise what ``loop`` has to say about tasks that nobody waits for."""
    loop.set_exception_handler(
        lambda loop, context: _broke("a task that nobody waited for", context.get("exception"))
    )


def traceback_of(error: BaseException) -> str:
    """Where ``error`` and what led to it came from, without their words."""
    return "\n".join(_chain(error))


def _chain(error: BaseException) -> Iterator[str]:
    at: BaseException | None = error
    for _ in range(MOST_LINKED):
        if at is None:
            return
        yield "Traceback (most recent call last):"
        for line in traceback.StackSummary.extract(traceback.walk_tb(at.__traceback__)).format():
            yield line.rstrip("\n")
        yield _told(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)


def _told(error: BaseException) -> str:
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, SAYABLE) else kind


class _Record(logging.LogRecord):
    """A record that was made safe before any handler saw it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if isinstance(self.exc_info, tuple) and self.exc_info[1] is not None:
            self.exc_text = traceback_of(self.exc_info[1])
        self.exc_info = None
        if str(self.name).split(".")[0] not in OURS:
            self.msg, self.args = f"{self.pathname}:{self.lineno}", None
        elif isinstance(self.args, tuple):
            self.args = tuple(_told(one) if isinstance(one, BaseException) else one for one in self.args)


def _broke(what: str, error: BaseException | None) -> None:
    _LOG.error("%s broke down", what, exc_info=error)
