"""What the sound server (PulseAudio, or PipeWire in its place) says about its devices and our streams.

PortAudio knows the server only as one device called "pulse", and is not told when the server moves a stream
to another device. A thread of its own listens to the server, so that a server which hangs holds up nobody.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ondam.audio.devices import Device, Kind

if TYPE_CHECKING:
    import pulsectl

RETRY_FIRST_S, RETRY_LAST_S = 0.25, 2.0
"""Between attempts to reach a server that is not there; an attempt costs about a millisecond."""

GATHER_S = 0.02
"""Events come in bursts; so long after the first, the server is asked once."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """A snapshot. Without a server everything is empty."""

    running: bool = False
    devices: tuple[Device, ...] = ()
    attached: frozenset[tuple[Kind, str]] = frozenset()
    """The devices that streams of this process are connected to now."""


class PulseWatch:
    """Keeps ``state`` up to date and calls its listeners, on their loops, when it changed."""

    def __init__(self) -> None:
        self.state = ServerState()
        self._listeners: dict[int, tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = {}
        self._tokens = 0
        self._looked = threading.Event()
        # A daemon thread: it may hang in a server that was stopped, and must not hold up our end.
        self._thread = threading.Thread(target=self._run, name="ondam-sound-server", daemon=True)
        self._thread.start()

    async def looked(self, timeout_s: float) -> None:
        """Return when the server was asked once or found missing, or after ``timeout_s``."""
        if not self._looked.is_set():
            await asyncio.to_thread(self._looked.wait, timeout_s)

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call ``heard`` on this loop after each change. Returns what ends it."""
        token = self._tokens = self._tokens + 1
        self._listeners[token] = (asyncio.get_running_loop(), heard)
        return lambda: (self._listeners.pop(token, None), None)[1]

    def _publish(self, state: ServerState) -> None:
        changed = state != self.state
        self.state = state
        self._looked.set()
        if not changed:
            return
        for loop, heard in list(self._listeners.values()):
            try:
                loop.call_soon_threadsafe(heard)
            except RuntimeError:  # that loop has been closed: nobody waits for this any more
                continue

    def _run(self) -> None:
        try:
            import pulsectl
        except (ImportError, OSError):  # not Linux, or no libpulse: then PortAudio reaches no server either
            self._publish(ServerState())
            return
        retry_s = RETRY_FIRST_S
        while True:
            try:
                with pulsectl.Pulse("ondam", connect=False) as pulse:
                    # Without its timeout, which it always waits out; this thread may hang in peace.
                    pulse.connect()
                    retry_s = RETRY_FIRST_S
                    self._follow(pulse)
            except (pulsectl.PulseError, pulsectl.PulseDisconnected) as error:
                logging.getLogger(__name__).debug("no sound server: %s", error)
            self._publish(ServerState())
            time.sleep(retry_s)
            retry_s = min(retry_s * 2, RETRY_LAST_S)

    def _follow(self, pulse: pulsectl.Pulse) -> None:
        """Until the server goes away (PulseError, PulseDisconnected)."""
        import pulsectl

        def changed(_event: object) -> None:
            raise pulsectl.PulseLoopStop

        pulse.event_mask_set("sink", "source", "sink_input", "source_output", "server")
        pulse.event_callback_set(changed)
        while True:
            self._publish(_snapshot(pulse))
            pulse.event_listen()
            time.sleep(GATHER_S)


def _snapshot(pulse: pulsectl.Pulse) -> ServerState:
    server = pulse.server_info()
    sources, sinks = pulse.source_list(), pulse.sink_list()
    devices = [
        Device(
            "microphone",
            source.name,
            source.description,
            "server",
            default=source.name == server.default_source_name,
            # Unset is the largest number that the index can hold.
            monitor=source.monitor_of_sink != 0xFFFFFFFF,
        )
        for source in sources
    ] + [
        Device(
            "speaker", sink.name, sink.description, "server", default=sink.name == server.default_sink_name
        )
        for sink in sinks
    ]
    us = str(os.getpid())
    source_names = {source.index: source.name for source in sources}
    sink_names = {sink.index: sink.name for sink in sinks}
    attached: set[tuple[Kind, str]] = set()
    for stream in pulse.source_output_list():
        # A device may have gone between two answers; the event that says so is on its way.
        if stream.proplist.get("application.process.id") == us and stream.source in source_names:
            attached.add(("microphone", source_names[stream.source]))
    for stream in pulse.sink_input_list():
        if stream.proplist.get("application.process.id") == us and stream.sink in sink_names:
            attached.add(("speaker", sink_names[stream.sink]))
    return ServerState(True, tuple(devices), frozenset(attached))


@lru_cache(maxsize=1)
def pulse_watch() -> PulseWatch:
    """The one of this process: the server counts streams by process too."""
    return PulseWatch()
