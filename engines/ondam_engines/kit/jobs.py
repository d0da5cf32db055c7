"""One worker thread that computes requests in order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from wyoming.error import Error
from wyoming.event import Event

from ondam_engines.kit.cancel import Cancel, Cancelled
from ondam_engines.kit.limits import Limits, RequestError

_LOG = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


class Work(Protocol):
    """What a request asks to be computed."""

    @property
    def held_bytes(self) -> int:
        """Audio that the request holds."""

    def compute(self, emit: Callable[[Event], None], cancel: Cancel, queued_ms: float) -> None:
        """Emit the answer's events, in the worker thread. Raises RequestError, Cancelled, or anything."""


class Job:
    """A request on its way through the worker; its answer is read with ``next_event``."""

    def __init__(self, work: Work, limits: Limits) -> None:
        self._work: Work | None = work
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._cancel = Cancel()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._buffered = 0
        self._submitted_ns = time.monotonic_ns()

    @property
    def held_bytes(self) -> int:
        """Audio that the request holds."""
        return self._work.held_bytes if self._work is not None else 0

    @property
    def cancelled(self) -> bool:
        """Nobody waits for it any more."""
        return self._cancel.cancelled

    def cancel(self) -> None:
        """Nobody waits any more: what comes from now on is dropped, and the model is told to stop."""
        self._cancel.cancel()
        self._work = None

    async def next_event(self) -> Event | None:
        """The answer's next event, None after the last."""
        event = await self._events.get()
        if event is not None and event.payload:
            self._buffered -= len(event.payload)
        return event

    def run(self) -> None:
        """Compute, in the worker thread. Whatever the model does, the worker lives."""
        try:
            if (work := self._work) is not None:
                queued_ms = (time.monotonic_ns() - self._submitted_ns) / 1e6
                work.compute(self._emit, self._cancel, queued_ms)
        except Cancelled:
            pass
        except RequestError as error:
            self._emit(Error(error.text, error.code).event())
        except Exception as error:  # noqa: BLE001 - models are foreign code: any failure is this request's alone
            if not self._cancel.cancelled:
                # Stopping a model often shows as an error inside it; that is no fault.
                _LOG.exception("a request failed")
                text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
                self._emit(Error(text, "failed").event())
        finally:
            self._hand_over(None)

    def _emit(self, event: Event) -> None:
        self._cancel.check()
        self._hand_over(event)

    def _hand_over(self, event: Event | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._receive, event)
        except RuntimeError:
            # The loop is closed: the process is ending, and the answer has no reader.
            _LOG.debug("an answer came after the end")

    def _receive(self, event: Event | None) -> None:
        if self._cancel.cancelled and event is not None:
            return
        self._buffered += len(event.payload or b"") if event else 0
        if self._buffered > self._limits.answer_bytes:
            self._cancel.cancel()
            event = Error("the answer is too long for a client that does not read it", "failed").event()
        self._events.put_nowait(event)


class Worker:
    """The thread. Loading, warming up and computing all happen on it, so that no model sees two."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker")
        self._waiting = 0
        self._jobs: set[Job] = set()

    async def call(self, function: Callable[[], ResultT]) -> ResultT:
        """The result of ``function``, run on the thread before everything submitted later."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def submit(self, work: Work) -> Job:
        """Queue ``work``. Raises RequestError(``failed``) when too many wait already."""
        # Cancelled jobs leave only when the worker comes by; they count against a bound of their own.
        waited_for = sum(not job.cancelled for job in self._jobs)
        if waited_for > self._limits.queue or len(self._jobs) > 16 * self._limits.queue:
            raise RequestError("failed", f"{self._limits.queue} requests are waiting already")
        job = Job(work, self._limits)
        self._jobs.add(job)
        future = asyncio.get_running_loop().run_in_executor(self._executor, job.run)
        future.add_done_callback(lambda _: self._jobs.discard(job))
        return job

    async def close(self, patience_s: float) -> bool:
        """Cancel everything and wait for the thread. False when it still computes after ``patience_s``."""
        for job in list(self._jobs):
            job.cancel()
        last = asyncio.get_running_loop().run_in_executor(self._executor, lambda: None)
        done, _ = await asyncio.wait([last], timeout=patience_s)
        self._executor.shutdown(wait=False)
        return bool(done)
