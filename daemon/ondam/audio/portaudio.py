"""The one thread that talks to PortAudio, which is neither thread-safe nor patient.

Opening or closing a stream waits for the sound server, for ever if the server hangs. So every call is made on
a thread of its own, which the event loop never waits for longer than it likes, and which does not hold up the
end of the process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Protocol, TypeVar

from ondam.audio.devices import Device
from ondam.errors import AudioError

T = TypeVar("T")

SERVER_DEVICES = ("pulse", "pipewire", "default")
"""PortAudio's names for the way through a sound server, best first."""


class RawStream(Protocol):
    """What we use of a ``sounddevice`` stream."""

    active: bool
    samplerate: float
    channels: int
    latency: float

    def start(self) -> None:
        """Begin calling back."""

    def abort(self) -> None:
        """End without playing what is left."""

    def close(self) -> None:
        """Let go of it."""


REFRESH_EVERY_S = 30.0
"""Streams that work make way for another look at the devices this often at most."""

SWITCH_INTERVAL_S = 0.0005
"""How long a thread of ours may keep the interpreter from the audio callback: a tenth of Python's default."""


class PortAudio:
    """Runs jobs one after the other. What is not said to be else belongs to its thread."""

    def __init__(self) -> None:
        self.open_streams = 0
        self.refreshed_at_s = -REFRESH_EVERY_S
        self.refresh_wanted = False
        """Read anywhere: a device is missed that can only be found while all streams are closed."""
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ondam-portaudio", daemon=True)
        self._thread.start()

    async def call(self, job: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """The result of ``job``. If the caller has been cancelled by then, ``undo`` gets it instead."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def deliver(result: T | None, error: BaseException | None) -> None:
            if done.cancelled():
                if error is None and undo:
                    self._jobs.put(lambda: (undo(result), None)[1])  # type: ignore[arg-type]
            elif error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result: T | None = None
            error: BaseException | None = None
            try:
                result = job()
            except Exception as caught:  # noqa: BLE001 - handed on to whoever waits
                error = caught
            try:
                loop.call_soon_threadsafe(deliver, result, error)
            except RuntimeError:  # the loop has been closed while the server kept us waiting
                if error is None and undo:
                    undo(result)  # type: ignore[arg-type]

        self._jobs.put(run)
        return await done

    async def devices(self) -> tuple[Device, ...]:
        """What PortAudio lists now. Raises AudioError."""
        await self.call(refresh)
        return await self.call(list_devices)

    def _run(self) -> None:
        while True:
            self._jobs.get()()


def sounddevice() -> ModuleType:
    """The module. Raises AudioError when PortAudio is not installed. Only on the thread."""
    try:
        import sounddevice as module
    except OSError as error:
        raise AudioError("portaudio_missing", reason=error) from error
    # Its own handler at exit stops streams and so waits for a server that may hang; ours are closed by then,
    # or cannot be.
    atexit.unregister(module._exit_handler)
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL_S))
    found: ModuleType = module
    return found


def refresh() -> bool:
    """Let PortAudio look for devices anew; only without open streams does it. Only on the thread."""
    sd = sounddevice()
    host = portaudio()
    if host.open_streams:
        # Ending the library would pull the streams from under their owners.
        host.refresh_wanted = time.monotonic() - host.refreshed_at_s > REFRESH_EVERY_S
        return False
    host.refresh_wanted = False
    host.refreshed_at_s = time.monotonic()
    try:
        if sd._initialized:
            sd._terminate()
        sd._initialize()
    except sd.PortAudioError as error:
        raise AudioError("portaudio_failed", reason=error) from error
    return True


def list_devices() -> tuple[Device, ...]:
    """What PortAudio lists but the ways through a sound server. Raises AudioError. Only on the thread."""
    sd = sounddevice()
    found: list[Device] = []
    try:
        default_in, default_out = sd.default.device
        entries = sd.query_devices()
    except sd.PortAudioError as error:
        raise AudioError("portaudio_failed", reason=error) from error
    for index, entry in enumerate(entries):
        if entry["name"] in SERVER_DEVICES[:2]:
            continue
        if entry["max_input_channels"]:
            found.append(
                Device("microphone", entry["name"], entry["name"], "portaudio", default=index == default_in)
            )
        if entry["max_output_channels"]:
            found.append(
                Device("speaker", entry["name"], entry["name"], "portaudio", default=index == default_out)
            )
    return tuple(found)


def version() -> str:
    """The library's own. Raises AudioError. Only on the thread."""
    return str(sounddevice().get_portaudio_version()[1]).partition(",")[0].removeprefix("PortAudio ")


def reaches_server() -> bool:
    """Whether PortAudio knows a way through a sound server. Raises AudioError. Only on the thread."""
    sd = sounddevice()
    try:
        return any(entry["name"] in SERVER_DEVICES for entry in sd.query_devices())
    except sd.PortAudioError as error:
        raise AudioError("portaudio_failed", reason=error) from error


def open_stream(
    device: Device, make: Callable[[ModuleType, int, int, int], RawStream], rate_hz: int
) -> RawStream:
    """Open and start a stream: ``make(sounddevice, device, rate_hz, channels)`` with what the device takes.

    Tries ``rate_hz`` mono first, then what the device calls its own. Raises AudioError. Only on the thread.
    """
    sd = sounddevice()
    try:
        index = _index(sd, device)
        info = sd.query_devices(index)
    except sd.PortAudioError as error:
        refresh()  # what it knows of devices is no longer true; the next try will find it put right
        raise AudioError("portaudio_failed", reason=error) from error
    most = info["max_input_channels" if device.kind == "microphone" else "max_output_channels"]
    own_rate_hz = round(info["default_samplerate"])
    reason: object = ""
    for rate, channels in dict.fromkeys(
        [(rate_hz, 1), (rate_hz, most), (own_rate_hz, 1), (own_rate_hz, most)]
    ):
        try:
            with _server_device(device):
                stream = make(sd, index, rate, channels)
                try:
                    stream.start()
                except sd.PortAudioError:
                    stream.close()
                    raise
        except sd.PortAudioError as error:
            reason = error
            logging.getLogger(__name__).debug("%s at %s Hz x %s: %s", device.name, rate, channels, error)
            continue
        portaudio().open_streams += 1
        return stream
    raise AudioError("device_unusable", name=device.title, reason=reason)


def close_stream(stream: RawStream) -> None:
    """Never raises for a stream whose device is gone. Only on the thread."""
    sd = sounddevice()
    for end in (stream.abort, stream.close):
        # The device is gone, or the server is: there is nothing left to close, which is what we wanted.
        with contextlib.suppress(sd.PortAudioError):
            end()
    portaudio().open_streams -= 1


def _index(sd: ModuleType, device: Device) -> int:
    """Raises AudioError when PortAudio does not list it, even after another look."""
    names = SERVER_DEVICES if device.system == "server" else (device.name,)
    channels = "max_input_channels" if device.kind == "microphone" else "max_output_channels"
    for _ in range(2):
        listed = [(entry["name"], i) for i, entry in enumerate(sd.query_devices()) if entry[channels]]
        for name in names:
            for entry_name, index in listed:
                if entry_name == name:
                    return index
        if not refresh():
            break
    raise AudioError("device_unlisted", name=device.title)


@contextlib.contextmanager
def _server_device(device: Device) -> Iterator[None]:
    """The sound server's client library takes the device to connect a stream to from the environment."""
    variable = "PULSE_SOURCE" if device.kind == "microphone" else "PULSE_SINK"
    before = os.environ.get(variable)
    if device.system == "server":
        os.environ[variable] = device.name
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = before


@lru_cache(maxsize=1)
def portaudio() -> PortAudio:
    """The one of this process: the library's state is the process's."""
    return PortAudio()
