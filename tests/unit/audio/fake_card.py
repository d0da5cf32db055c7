"""A sound card, and the libraries in front of it, that do what a test tells them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.unit.audio.virtual_time import VirtualTime

from ondam.audio import portaudio
from ondam.audio.devices import Device, Kind
from ondam.audio.pulse import ServerState
from ondam.types import Samples

T = TypeVar("T")

NO_STATUS = SimpleNamespace(input_overflow=False, output_underflow=False)


class PortAudioError(Exception):
    pass


class Told(list[str | None]):
    """The codes that were told through ``on_fault``."""

    def __call__(self, code: str | None, /, **_facts: object) -> None:
        self.append(code)


class FakeStream:
    """An open stream. A test calls ``feed`` or ``play`` where the card would call back."""

    def __init__(self, card: FakeCard, kind: Kind, options: dict[str, Any]) -> None:
        self.card = card
        self.kind = kind
        self.samplerate = float(options["samplerate"])
        self.channels: int = options["channels"]
        self.latency: float = options["latency"]
        self.active = False
        self.closed = False
        self._callback: Callable[..., None] = options["callback"]
        self.finish: Callable[[], None] = options["finished_callback"]

    def start(self) -> None:
        self.active = True

    def abort(self) -> None:
        self.active = False

    def close(self) -> None:
        self.closed = True

    def feed(self, samples: Samples, age_s: float = 0.02, overflow: bool = False) -> None:
        """The card delivers ``samples`` (n,), heard on every channel, the first of them ``age_s`` ago."""
        frames = np.repeat(samples[:, None], self.channels, axis=1)
        when = SimpleNamespace(currentTime=100.0, inputBufferAdcTime=100.0 - age_s)
        status = SimpleNamespace(input_overflow=overflow)
        self._callback(frames.tobytes(), len(samples), when, status)

    def play(self, frames: int | None = None, ahead_s: float = 0.03, underflow: bool = False) -> Samples:
        """The card asks for 10 ms, to be heard in ``ahead_s``. Returns what it got on its first channel."""
        frames = frames or int(self.samplerate) // 100
        out = np.full((frames, self.channels), 12345, np.int16)
        when = SimpleNamespace(currentTime=100.0, outputBufferDacTime=100.0 + ahead_s)
        self._callback(out, frames, when, SimpleNamespace(output_underflow=underflow))
        assert all(np.array_equal(out[:, 0], out[:, k]) for k in range(self.channels))
        first: Samples = out[:, 0]
        return first


class FakeCard:
    """Stands in for the ``sounddevice`` module, PortAudio's thread and the sound server."""

    PortAudioError = PortAudioError

    def __init__(self, time: VirtualTime) -> None:
        self.time = time
        self.entries: list[dict[str, Any]] = []
        self.plugged: list[dict[str, Any]] = []
        """What ``_initialize`` will find."""
        self.streams: list[FakeStream] = []
        self.refuse: Callable[[dict[str, Any]], bool] = lambda _options: False
        self.default = SimpleNamespace(device=(0, 0))
        self.refreshes = 0
        self._initialized = 1
        self.state = ServerState()
        self.refresh_wanted = False
        self._heard: list[Callable[[], None]] = []

    def plug(self, name: str, inputs: int = 0, outputs: int = 0, rate_hz: float = 48_000.0) -> None:
        self.plugged.append(
            {
                "name": name,
                "max_input_channels": inputs,
                "max_output_channels": outputs,
                "default_samplerate": rate_hz,
            }
        )

    def unplug(self, name: str) -> None:
        self.plugged = [entry for entry in self.plugged if entry["name"] != name]

    def query_devices(self, index: int | None = None) -> Any:
        return self.entries if index is None else self.entries[index]

    def _terminate(self) -> None:
        self.entries = []

    def _initialize(self) -> None:
        self.refreshes += 1
        self.entries = list(self.plugged)

    def RawInputStream(self, **options: Any) -> FakeStream:
        return self._open("microphone", options)

    def OutputStream(self, **options: Any) -> FakeStream:
        return self._open("speaker", options)

    def _open(self, kind: Kind, options: dict[str, Any]) -> FakeStream:
        if self.refuse(options):
            raise PortAudioError("refused")
        stream = FakeStream(self, kind, options)
        self.streams.append(stream)
        return stream

    async def call(self, job: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        return job()

    async def devices(self) -> tuple[Device, ...]:
        portaudio.refresh()
        return portaudio.list_devices()

    async def looked(self, timeout_s: float) -> None:
        return

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        self._heard.append(heard)
        return lambda: self._heard.remove(heard)

    def serve(self, *devices: Device, attached: frozenset[tuple[Kind, str]] = frozenset()) -> None:
        """The sound server's new state."""
        self.state = ServerState(True, devices, attached)
        for heard in self._heard:
            heard()

    async def run(self, ms: int, *, feed: Samples | None = None, play: bool = True) -> list[Samples]:
        """Let time pass with every open stream calling back each 10 ms. Returns what was played."""
        played: list[Samples] = []
        for _ in range(ms // 10):
            for stream in self.streams:
                if not stream.active:
                    continue
                if stream.kind == "microphone":
                    said = np.ones(int(stream.samplerate) // 100, np.int16) if feed is None else feed
                    stream.feed(said)
                elif play:
                    played.append(stream.play())
            await self.time.advance(10)
        return played


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeCard:
    card = FakeCard(VirtualTime())
    monkeypatch.setattr(portaudio, "sounddevice", lambda: card)
    monkeypatch.setattr(portaudio.portaudio(), "open_streams", 0)
    return card


def microphone(name: str, *, default: bool = False, monitor: bool = False) -> Device:
    return Device("microphone", name, f"The {name}", "server", default, monitor)


def speaker(name: str, *, default: bool = False) -> Device:
    return Device("speaker", name, f"The {name}", "server", default)
