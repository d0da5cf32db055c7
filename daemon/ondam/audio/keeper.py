"""Keeps one device open: finds it, opens it, notices within a second that it failed, and tries again.

What failure looks like is in docs/audio.md. Whatever happens, the daemon lives and says what is wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from ondam.audio.backoff import Backoff
from ondam.audio.devices import Device, Kind, choose
from ondam.audio.faults import Clock, OnFault, Sleep
from ondam.audio.pulse import ServerState
from ondam.errors import AudioError
from ondam.types import Nanoseconds

LOOK_EVERY_S = 0.25
SILENT_CALLBACKS_NS = 500_000_000
"""A stream whose callbacks stay away so long has stalled: noticed after 0.75 s at the latest."""

FIRST_CALLBACK_NS = 2_000_000_000
"""A new stream may take longer to begin."""

OPENING_S = 1.0
"""A device that takes longer to open belongs to a server that hangs. Told, and waited for."""

RESTING_LOOK_S = 2.0
"""While nothing is open. The sound server tells its news at once, and so does one who wants to play."""

SERVER_ANSWERS_S = 1.0
LEAVING_S = 1.0
"""How long ``close`` waits for a device before it leaves it behind."""

log = logging.getLogger(__name__)

T = TypeVar("T")


class Stream(Protocol):
    """An open device, as the keeper sees it. Its attributes are written by the audio callback."""

    last_callback_ns: Nanoseconds | None
    finished: bool

    def close(self) -> None:
        """Let go of the device. On PortAudio's thread."""


class Host(Protocol):
    """PortAudio's thread: see ``portaudio.PortAudio``."""

    refresh_wanted: bool

    async def call(self, job: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """The result of ``job``."""

    async def devices(self) -> tuple[Device, ...]:
        """What PortAudio lists now."""


class Watch(Protocol):
    """What the sound server says: see ``pulse.PulseWatch``."""

    state: ServerState

    async def looked(self, timeout_s: float) -> None:
        """Return when ``state`` is known."""

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call ``heard`` after each change. Returns what ends it."""


StreamT = TypeVar("StreamT", bound=Stream)


class Keeper(Generic[StreamT]):
    """Runs from ``start`` to ``close``. ``device`` is None while there is none.

    A device for which there is nothing to do rests: it is closed, and opened again when there is. Meanwhile
    the sound server says whether it is still there.
    """

    def __init__(
        self,
        kind: Kind,
        spec: str,
        *,
        open_device: Callable[[Device], StreamT],
        on_open: Callable[[StreamT], None],
        on_lost: Callable[[], None],
        on_fault: OnFault,
        on_look: Callable[[], None] = lambda: None,
        busy: Callable[[], bool] = lambda: False,
        idle: Callable[[], bool] = lambda: False,
        host: Host,
        watch: Watch,
        clock: Clock,
        sleep: Sleep,
    ) -> None:
        """``open_device`` runs on PortAudio's thread, the others on the loop: ``on_look`` at each look,
        ``busy`` to ask whether the device may be closed for a moment, ``idle`` whether it is to rest.

        ``on_lost`` is called when a stream ends for whatever reason, and when a device that rests goes.
        """
        self._kind = kind
        self._spec = spec
        self._open_device = open_device
        self._on_open = on_open
        self._on_lost = on_lost
        self._on_fault = on_fault
        self._on_look = on_look
        self._busy = busy
        self._idle = idle
        self._host = host
        self._watch = watch
        self._clock = clock
        self._sleep = sleep
        self._backoff = Backoff()
        self._wake = asyncio.Event()
        self._closed = False
        self._other = False
        """Another device is wanted than the one that is open."""
        self._fault: str | None = None
        self._task: asyncio.Task[None] | None = None
        self.device: Device | None = None
        self.resting = False
        """The device is there and not open: ``wake`` lets ``idle`` be asked again."""

    @property
    def name(self) -> str:
        """The device's title, or what was asked for while there is none."""
        return self.device.title if self.device else self._spec

    def start(self) -> None:
        """Begin, on the running loop. Harmless when begun."""
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"{self._kind} keeper")

    def use(self, spec: str) -> None:
        """Another device from now on. What is open is closed first: there are never two."""
        if spec != self._spec:
            self._spec, self._other = spec, True
            self._backoff = Backoff()
            self.wake()

    @property
    def alive(self) -> bool:
        """Whether it still looks after its device, or did until it was closed."""
        return self._closed or self._task is None or not self._task.done()

    def wake(self) -> None:
        """Look at once."""
        self._wake.set()

    async def close(self) -> None:
        """Let go of the device; one that hangs is left behind after a second."""
        self._closed = True
        self._wake.set()
        if self._task:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._task), LEAVING_S)
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def tell(self, code: str | None, **facts: object) -> None:
        """A fault, or None for its end; the same twice is told once."""
        if code != self._fault:
            self._fault = code
            try:
                self._on_fault(code, **facts)
            except Exception:  # whoever fails to listen must not take the device with him
                log.exception("nobody could be told of %s", code)

    async def _run(self) -> None:
        unlisten = self._watch.listen(self.wake)
        try:
            await self._watch.looked(SERVER_ANSWERS_S)
            while not self._closed:
                self._other = False
                try:
                    await self._one_device()
                    if self.resting and await self._rested():
                        continue
                except Exception as error:  # the device would stay dead without a word
                    log.exception("the %s failed in a way that nobody thought of", self._kind)
                    self.tell("portaudio_failed", reason=error)
                self.device, self.resting = None, False
                if not self._closed and not self._other:
                    await self._rest(self._backoff.failed(self._clock()))
        finally:
            unlisten()

    async def _one_device(self) -> None:
        """From finding it to losing it."""
        try:
            self.device = device = await self._patiently(self._find())
            if device is None:
                self.tell(f"{self._kind}_missing", name=self._spec)
                return
            stream = await self._patiently(
                self._host.call(lambda: self._open_device(device), undo=lambda late: late.close())
            )
        except AudioError as error:
            self.tell(error.code, **error.facts)
            return
        fault = None
        try:
            try:
                self._on_open(stream)
                fault = await self._until_lost(stream, device)
            finally:
                self._on_lost()
                if fault:
                    self.tell(fault, name=device.title)
        finally:
            # Last, for with a server that hangs it takes until the server goes on or ends.
            await self._host.call(stream.close)

    async def _find(self) -> Device | None:
        server = self._watch.state
        found = choose(self._spec, self._kind, server.devices)
        if found or (server.running and self._spec == "default"):
            return found
        return choose(self._spec, self._kind, await self._host.devices())

    async def _until_lost(self, stream: Stream, device: Device) -> str | None:
        """The fault that ends this stream; None when there is a better device, or we are closing."""
        opened_ns = looked_ns = self._clock()
        healthy = False
        astray = 0
        while True:
            await self._doze(LOOK_EVERY_S)
            if self._closed:
                return None
            self._on_look()
            if self._other:
                return None
            if stream.finished:
                return f"{self._kind}_lost"
            now_ns = self._clock()
            # When this process was stopped, or the machine slept, the callbacks get time to come back.
            overslept = now_ns - looked_ns > round(LOOK_EVERY_S * 1e9) + SILENT_CALLBACKS_NS
            looked_ns = now_ns
            last_ns = stream.last_callback_ns
            silent_ns = now_ns - (last_ns or opened_ns)
            if silent_ns > (SILENT_CALLBACKS_NS if last_ns else FIRST_CALLBACK_NS) and not overslept:
                return f"{self._kind}_stalled"
            server = self._watch.state
            if _removed(device, server):
                return f"{self._kind}_lost"
            # Twice in a row: right after opening, the server may still list the stream before this one.
            astray = astray + 1 if _astray(device, server) else 0
            if astray >= 2:
                return f"{self._kind}_moved"
            if self._better(device, server) or self._in_the_way(device):
                return None
            if last_ns and not healthy and not astray:
                healthy = True
                self._backoff.worked(now_ns)
                self.tell(None)
            if healthy and self._idle():
                self.resting = True
                return None

    async def _rested(self) -> bool:
        """Return when there is something to do: True; or when the device is no longer there: False."""
        try:
            while not self._closed and not self._other and self._idle():
                device, server = self.device, self._watch.state
                if device is None or _removed(device, server) or _unserved(device, server):
                    self._on_lost()
                    self.tell(f"{self._kind}_lost", name=self.name)
                    return False
                if self._better(device, server):
                    self.device = choose(self._spec, self._kind, server.devices)
                await self._doze(RESTING_LOOK_S)
            return True
        finally:
            self.resting = False

    def _better(self, device: Device, server: ServerState) -> bool:
        """The default has changed, or a sound server came up after us."""
        if self._spec != "default" and device.system == "server":
            return False
        best = choose(self._spec, self._kind, server.devices)
        return best is not None and best.name != device.name

    def _in_the_way(self, device: Device) -> bool:
        """Somebody misses a device that PortAudio can only find while nothing is open."""
        return device.system == "portaudio" and self._host.refresh_wanted and not self._busy()

    async def _rest(self, seconds: float) -> None:
        """``seconds``, or less when the sound server has news; never none, so that no loop is busy."""
        least_s = min(seconds, self._backoff.first_s)
        await self._sleep(least_s)
        if not self._closed and seconds > least_s:
            await self._doze(seconds - least_s)

    async def _doze(self, seconds: float) -> None:
        """``seconds``, or until woken."""
        waiting: set[asyncio.Future[object]] = {
            asyncio.ensure_future(self._wake.wait()),
            asyncio.ensure_future(self._sleep(seconds)),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
        self._wake.clear()

    async def _patiently(self, doing: Coroutine[Any, Any, T]) -> T:
        """The result, however long it takes; after a second a person is told that the server hangs."""
        work = asyncio.ensure_future(doing)
        alarm = asyncio.ensure_future(self._sleep(OPENING_S))
        try:
            await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self.tell(f"{self._kind}_stalled", name=self.name)
            return await work
        finally:
            alarm.cancel()
            work.cancel()


def _removed(device: Device, server: ServerState) -> bool:
    """The server no longer lists it. It may have moved our stream to another without a word."""
    listed = {(other.kind, other.name) for other in server.devices}
    return device.system == "server" and server.running and (device.kind, device.name) not in listed


def _unserved(device: Device, server: ServerState) -> bool:
    """The server is gone. An open stream ends then, one that rests is not told."""
    return device.system == "server" and not server.running


def _astray(device: Device, server: ServerState) -> bool:
    """The server has connected us to something else, say the monitor of our own speaker."""
    ours = {name for kind, name in server.attached if kind == device.kind}
    return device.system == "server" and bool(ours) and device.name not in ours
