"""Telling a running computation that nobody waits for it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancelled(Exception):
    """The client left. Raised by ``Cancel.check`` inside model code; ends the job without a word."""


class Cancel:
    """One job's stop flag. ``cancel`` comes from the server's thread, the rest from the worker's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._stops: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Nobody waits for the result any more."""
        return self._set

    def check(self) -> None:
        """Raise Cancelled when nobody waits. Call it wherever the computation can stop."""
        if self._set:
            raise Cancelled

    def cancel(self) -> None:
        """Set the flag and call what is registered. Safe to call twice."""
        # The lock is held while calling, so that ``calling`` cannot end (and its target be freed or
        # reused by the next job) in the middle of a call.
        with self._lock:
            if not self._set:
                self._set = True
                for stop in self._stops:
                    stop()

    @contextmanager
    def calling(self, stop: Callable[[], None]) -> Iterator[None]:
        """While inside, ``cancel`` calls ``stop``: quickly, from another thread; at once if it is late."""
        with self._lock:
            if self._set:
                stop()
            self._stops.append(stop)
        try:
            yield
        finally:
            with self._lock:
                self._stops.remove(stop)
