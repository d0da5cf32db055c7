"""Tests of whole turns in virtual time: waiting costs nothing, and a run is the same every time.

The pytest plugin that comes with looptime is switched off (pyproject.toml): it would give every test a loop
that may jump, also those that talk over real sockets.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import looptime

P = ParamSpec("P")

LONGEST_S = 7200.0
"""A test that would wait longer than this in virtual time hangs."""


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test on a loop whose time jumps to the next timer."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        def loop() -> asyncio.AbstractEventLoop:
            return looptime.new_event_loop(start=0.0, end=LONGEST_S)

        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(test(*args, **kwargs))

    return run
