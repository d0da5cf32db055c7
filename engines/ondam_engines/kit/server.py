"""A Wyoming server on a Unix socket: one model, one worker thread, bounded clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, Protocol

from wyoming.error import Error
from wyoming.event import Event, async_write_event
from wyoming.ping import Ping, Pong

from ondam_engines.kit.frames import read_frame
from ondam_engines.kit.jobs import Job, Work, Worker
from ondam_engines.kit.launch import Launch
from ondam_engines.kit.limits import LIMITS, Limits, RequestError
from ondam_engines.kit.quiet import be_quiet, quiet_loop
from ondam_engines.kit.stale import clear_stale

__all__ = ["LIMITS", "Intake", "Limits", "Server", "Service", "run"]

_LOG = logging.getLogger(__name__)

ENDING_S = 0.1
"""How long a request that follows an answer at once waits for what made it to end. One that comes while the
answer is still being made is refused that much later."""

STOP_PATIENCE_S = 1.0
"""How long a stopping engine waits for its model's next stop point; docs/engines.md allows 2 s in all."""


class Intake(Protocol):
    """Gathers the events of one connection into requests."""

    @property
    def held_bytes(self) -> int:
        """Audio gathered so far."""

    @property
    def begun(self) -> bool:
        """A request has begun and is not complete."""

    def take(self, event: Event) -> Work | None:
        """The request that ``event`` completes, if any. Unknown events are ignored, as Wyoming asks.

        Raises RequestError.
        """


class Service(Protocol):
    """What a stage (speech to text, text to speech) makes of a model."""

    def info(self) -> Event:
        """The answer to ``describe``."""

    def intake(self, limits: Limits) -> Intake:
        """For a new connection."""


class Server:
    """Serves one Service. Not ready before ``start``; ``close`` gives the socket's name back."""

    def __init__(self, path: Path, service: Service, worker: Worker, limits: Limits = LIMITS) -> None:
        self._path = path
        self.service = service
        self.worker = worker
        self.limits = limits
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._identity: tuple[int, int] | None = None

    async def start(self) -> None:
        """Listen. Raises OSError when another process answers on the socket."""
        clear_stale(self._path)
        # The folder is private already; the socket is too, should somebody put it elsewhere.
        umask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(
                self._serve, path=self._path, limit=self.limits.line_bytes
            )
        finally:
            os.umask(umask)
        self._identity = _identity(self._path)

    async def close(self) -> None:
        """Stop listening, hang up on everybody, remove the socket unless somebody else has taken its name."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.hang_up()
        if self._identity is not None and _identity(self._path) == self._identity:
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._make_room()
        connection = _Connection(self, reader, writer)
        self._connections.add(connection)
        try:
            await connection.serve()
        except (ConnectionError, TimeoutError):
            # Gone, or not reading: either way there is nobody to tell.
            _LOG.debug("a client left in the middle of an answer")
        finally:
            self._connections.discard(connection)
            # Not close: that would keep the socket until a client that never reads has read.
            writer.transport.abort()

    def _make_room(self) -> None:
        """Hang up on the client that has been idle the longest rather than refuse one that has a request."""
        idle = [connection for connection in self._connections if not connection.working]
        if len(self._connections) >= self.limits.connections and idle:
            oldest = min(idle, key=lambda connection: connection.active_at)
            self._connections.discard(oldest)
            oldest.refuse(RequestError("failed", "too many connections; this one was idle the longest"))

    @property
    def held_bytes(self) -> int:
        """Audio of requests that are not answered yet."""
        return sum(connection.held_bytes for connection in self._connections)


class _Connection:
    """One client. Reads on while a job runs: that is how a client that leaves is noticed."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._limits = server.limits
        self._reader = reader
        self._writer = writer
        self._intake = server.service.intake(server.limits)
        self._job: Job | None = None
        self._answering: asyncio.Task[None] | None = None
        self._refusal: RequestError | None = None
        self._patience: asyncio.Timeout | None = None
        self.active_at = time.monotonic()

    @property
    def held_bytes(self) -> int:
        return self._intake.held_bytes + (self._job.held_bytes if self._job is not None else 0)

    @property
    def working(self) -> bool:
        return self._job is not None

    async def serve(self) -> None:
        """Until the client leaves, breaks a rule, or is refused."""
        try:
            while (event := await self._next()) is not None:
                self.active_at = time.monotonic()
                await self._handle(event)
        except RequestError as error:
            await self._part(error)
        finally:
            if self._job is not None:
                self._job.cancel()
            if self._answering is not None:
                self._answering.cancel()

    def refuse(self, why: RequestError) -> None:
        """End this connection with an error, from outside its reading."""
        self._refusal = why
        if self._patience is not None:
            self._patience.reschedule(0)

    def hang_up(self) -> None:
        """End this connection without a word."""
        self._writer.transport.abort()

    async def _next(self) -> Event | None:
        """The next event. An idle client may wait for ever, one in the middle of a request may not."""
        stalled = self._limits.stall_s if self._intake.begun else None
        try:
            async with asyncio.timeout(stalled) as self._patience:
                if self._refusal is not None:
                    raise self._refusal
                return await read_frame(self._reader, self._limits)
        except TimeoutError as error:
            raise self._refusal or RequestError("bad_request", f"nothing came for {stalled} s") from error
        finally:
            self._patience = None

    async def _handle(self, event: Event) -> None:
        if Ping.is_type(event.type):
            text = event.data.get("text")
            await self._write(Pong(text if isinstance(text, str) else None).event())
        elif event.type == "describe":
            await self._write(self._server.service.info())
        elif (work := self._intake.take(event)) is not None:
            if self._job is not None and self._answering is not None:
                # Its last event may be out while its thread still puts things away.
                await asyncio.wait({self._answering}, timeout=ENDING_S)
            if self._job is not None:
                raise RequestError("bad_request", "a second request before the first was answered")
            self._job = self._server.worker.submit(work)
            self._answering = asyncio.create_task(self._answer(self._job))
        elif self._server.held_bytes > self._limits.held_bytes:
            raise RequestError("failed", "the server holds as much audio as it may")

    async def _answer(self, job: Job) -> None:
        try:
            while (event := await job.next_event()) is not None:
                if Error.is_type(event.type):
                    self.refuse(RequestError(event.data["code"], event.data["text"]))
                    return
                await self._write(event)
        except (ConnectionError, TimeoutError):
            # Gone, or not reading: there is nobody to tell. The reading side ends by the hanging up.
            self.hang_up()
        finally:
            job.cancel()
            self._job = None

    async def _part(self, error: RequestError) -> None:
        """Tell the client why. It may be sending still: closing at once would lose the error in a reset."""
        _LOG.info("a client was refused: %s", error.code)  # not its text, which may repeat the request
        await self._write(Error(error.text, error.code).event())
        self._writer.write_eof()
        if self._refusal is not None:
            return
        # Not longer than this: a client that goes on sending for ever is cut off.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_s):
                while await self._reader.read(2**16):
                    pass

    async def _write(self, event: Event) -> None:
        async with asyncio.timeout(self._limits.stall_s):
            await async_write_event(event, self._writer)


def run(launch: Launch, load: Callable[[Launch], Service]) -> NoReturn:
    """The whole life of an engine. ``load`` loads, warms up and writes the report, on the worker's thread.

    SIGTERM and SIGINT end the process with status 0, also while the model loads. Anything that ``load``
    raises ends it with status 1 and a traceback in the log.
    """
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("ondam_engines").setLevel(logging.INFO)
    status = asyncio.run(_live(launch, load))
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: a model that is in the middle of a computation would be waited for, and native thread
    # pools are known to hang in their destructors.
    os._exit(status)


async def _live(launch: Launch, load: Callable[[Launch], Service]) -> int:
    try:
        # Before anything is loaded or written: the report there may be that of the engine that is serving.
        clear_stale(launch.socket)
    except OSError as error:
        _LOG.error("the engine could not start: %s", error)
        return 1
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    worker = Worker(LIMITS)
    stopped = asyncio.ensure_future(stop.wait())
    loading = asyncio.ensure_future(worker.call(lambda: load(launch)))
    await asyncio.wait([stopped, loading], return_when=asyncio.FIRST_COMPLETED)
    if not loading.done():
        return 0
    if loading.exception() is None:
        # Why it could not be loaded is wanted in full. From now on it is told what people say.
        be_quiet()
        quiet_loop(loop)
    try:
        server = Server(launch.socket, loading.result(), worker)
        await server.start()
    except Exception:  # noqa: BLE001 - whatever the model's library raises, the log says it and the process ends
        _LOG.exception("the engine could not start")
        return 1
    _LOG.info("listening on %s", launch.socket)
    await stopped
    await server.close()
    await worker.close(STOP_PATIENCE_S)
    return 0


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
