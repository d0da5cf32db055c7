"""Keeps what was said and answered out of logs and crash dumps, whoever logs and whatever fails.

An exception may hold anything: a recognizer's sentence, a server that repeats the question, a library that
shows the value it choked on. So no exception's own words are written unless it is known what they are made
of; its type, its place and the lines of the program are. Libraries' log lines are left out for the same
reason: their place in the source tells which one it was.

Engines have the same in their kit, by rules of their own: neither side may import the other.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from ondam.errors import Foreign, OndamError
from ondam.messages import Phrase, Phrases, text
from ondam.types import Language

_log = logging.getLogger(__name__)

OURS = ("ondam", "ondam_ui")

MOST_LINKED = 8
"""Exceptions of one chain that are told."""

REFUSED_AGAIN_S = 10.0
"""Callers that cannot be taken are told of once in so long."""

_last_refused: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()

NO_CORE = 1
"""Bytes. Less than a page, so no file is written; and, other than 0, the one value at which Linux does not
hand the memory to a program either (``core_pattern`` with a pipe: fs/coredump.c, core(5))."""


def be_quiet() -> None:
    """From now on, in this process, no record and no last word of Python holds what was said."""
    logging.setLogRecordFactory(_Record)
    logging.captureWarnings(True)  # else they print values on stderr
    sys.excepthook = _unhandled
    threading.excepthook = lambda failed: _broke("a thread", failed.exc_value)
    sys.unraisablehook = lambda failed: _broke("an object on its end", failed.exc_value)


def quiet_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Likewise what ``loop`` has to say about tasks that nobody waits for."""
    loop.set_exception_handler(_nobody_waited)


def no_core_dumps() -> None:
    """The memory of this process and of those it starts is not written anywhere when they crash."""
    if sys.platform == "win32":  # pragma: no cover - no such limit
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    least = NO_CORE if hard == resource.RLIM_INFINITY else min(NO_CORE, hard)
    if (soft, hard) != (least, least):
        resource.setrlimit(resource.RLIMIT_CORE, (least, least))


def told(error: BaseException) -> str:
    """What may be written of ``error``: what it is, and its words where they cannot be a person's."""
    kind = type(error).__name__
    if isinstance(error, OndamError):
        facts = {name: _fact(fact) for name, fact in error.facts.items()}
        return str(type(error)(error.code, **facts))
    if isinstance(error, sqlite3.Error):
        return f"{kind}: {error}"  # parameters are never part of them
    if isinstance(error, OSError) and error.strerror:
        named = f": {os.fspath(error.filename)!r}" if isinstance(error.filename, str | os.PathLike) else ""
        return f"{kind}: {error.strerror}{named}"
    return kind


def in_words(code: str, facts: Mapping[str, object], language: Language) -> str:
    """The message ``code`` as it may be written to a log."""
    return text(code, language, **{name: _fact(fact) for name, fact in facts.items()})


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
        yield told(at)
        if isinstance(at, BaseExceptionGroup):
            for inner in at.exceptions[:MOST_LINKED]:
                yield f"  + {told(inner)}"
        following = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
        if following is not None:
            yield "which came from:" if at.__cause__ else "which happened while handling:"
        at = following


def _fact(fact: object) -> object:
    if isinstance(fact, Foreign):
        return f"(… {len(fact)})"
    if isinstance(fact, BaseException):
        return told(fact)
    if isinstance(fact, Phrase):
        return Phrase(fact.code, **{name: _fact(inner) for name, inner in fact.facts.items()})
    if isinstance(fact, Phrases):
        made = tuple(_fact(phrase) for phrase in fact.phrases)
        return Phrases(tuple(one for one in made if isinstance(one, Phrase)), fact.between)
    return fact


class _Record(logging.LogRecord):
    """A record that was made safe before any handler saw it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if isinstance(self.exc_info, tuple) and self.exc_info[1] is not None:
            self.exc_text = traceback_of(self.exc_info[1])
        self.exc_info = None
        if self.name is not None and self.name.split(".")[0] not in OURS:
            self.msg, self.args = f"{self.pathname}:{self.lineno}", None
        elif isinstance(self.args, Mapping):
            self.args = {name: _argument(value) for name, value in self.args.items()}
        elif self.args:
            self.args = tuple(map(_argument, self.args))
        if isinstance(self.msg, BaseException):
            self.msg = told(self.msg)


def _argument(value: object) -> object:
    return told(value) if isinstance(value, BaseException) else value


def _unhandled(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, KeyboardInterrupt):
        return
    _broke("the program", error)


def _broke(what: str, error: BaseException | None) -> None:
    _log.critical("%s broke down", what, exc_info=error)


def _nobody_waited(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, OSError) and "socket" in context:
        # No descriptor left for a caller: asyncio says so a hundred times at once, and again every second.
        if loop.time() - _last_refused.get(loop, float("-inf")) >= REFUSED_AGAIN_S:
            _last_refused[loop] = loop.time()
            _log.error("callers wait: %s", told(error))
        return
    # Neither its message nor its task as asyncio shows them: both may hold arguments and results.
    task = context.get("future") or context.get("task")
    name = task.get_name() if isinstance(task, asyncio.Task) else "the event loop"
    _log.error("%s: an error that nobody waited for", name, exc_info=context.get("exception"))
