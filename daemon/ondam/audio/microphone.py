"""The microphone: whatever a device delivers, as 10 ms blocks at 16 kHz with the time each was said."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ondam.audio.devices import Device
from ondam.audio.faults import Clock, OnFault, Sleep
from ondam.audio.keeper import Host, Keeper, Watch
from ondam.audio.portaudio import RawStream, close_stream, open_stream, portaudio
from ondam.audio.pulse import pulse_watch
from ondam.audio.resample import Resampler, mixed
from ondam.audio.simulated import BLOCK
from ondam.audio.streamclock import StreamClock
from ondam.audio.wake import Wake
from ondam.types import HEARING_RATE_HZ, Block, Nanoseconds, Samples

DEVICE_RATE_HZ = 48_000
"""Asked of the device: a sound server that resamples to 16 kHz for us delivers 10-15 ms later."""

LATENCY_S = 0.02
"""Asked of the device. Half of it brings nothing under PulseAudio, more is heard later."""

RING = 200
"""Callbacks kept for a loop that is busy: 2 s, then the oldest are lost."""

CALLBACKS = 1000
"""Callbacks whose duration is remembered: 10 s."""

ZEROS_NOTICE = 30 * HEARING_RATE_HZ
"""Exact zeros for so long are told: a muted microphone, or a virtual source with nothing behind it."""


class MicrophoneStream:
    """One open device. The callback moves bytes into ``ring`` and nothing else."""

    def __init__(self, device: Device, arrived: Callable[[], None], clock: Clock) -> None:
        """Opens it: on PortAudio's thread. Raises AudioError."""
        self.ring: deque[tuple[bytes, Nanoseconds, Nanoseconds, bool]] = deque(maxlen=RING)
        self.last_callback_ns: Nanoseconds | None = None
        self.callbacks_ns: deque[Nanoseconds] = deque(maxlen=CALLBACKS)
        """How long each of the latest callbacks took."""
        self.overflows = 0
        self.finished = False
        self._arrived = arrived
        self._clock = clock
        self._stream = open_stream(device, self._make, DEVICE_RATE_HZ)
        self.rate_hz = round(self._stream.samplerate)
        self.channels = self._stream.channels

    def close(self) -> None:
        """On PortAudio's thread."""
        close_stream(self._stream)

    def _make(self, sd: ModuleType, index: int, rate_hz: int, channels: int) -> RawStream:
        self._block_ns = 1_000_000_000 * (rate_hz // 100) // rate_hz
        stream: RawStream = sd.RawInputStream(
            samplerate=rate_hz,
            blocksize=rate_hz // 100,
            device=index,
            channels=channels,
            dtype="int16",
            latency=LATENCY_S,
            callback=self._callback,
            finished_callback=self._finish,
        )
        return stream

    def _callback(self, data: Any, _frames: int, when: Any, status: Any) -> None:  # cffi objects
        now_ns = self._clock()
        lost = bool(status.input_overflow)
        if lost:
            self.overflows += 1
        age_s = when.currentTime - when.inputBufferAdcTime
        # Some drivers report no time at all; then a block was said just before it came.
        age_ns = round(age_s * 1e9) if 0 < age_s < 2 else self._block_ns
        self.ring.append((bytes(data), now_ns - age_ns, now_ns, lost))
        self.last_callback_ns = now_ns
        self._arrived()
        self.callbacks_ns.append(self._clock() - now_ns)

    def _finish(self) -> None:
        self.finished = True
        self._arrived()


class Hearing:
    """Turns what one stream delivers into blocks. Pure but for the resampler's state."""

    def __init__(self, rate_hz: int, channels: int, first: int) -> None:
        """``first``: the number of the first sample to come out."""
        self._rate_hz = rate_hz
        self._channels = channels
        self._first = self.next = first
        self._frames = 0
        self._resampler = Resampler(rate_hz, HEARING_RATE_HZ)
        self._clock = StreamClock()
        self._rest: Samples = np.zeros(0, np.int16)

    def take(
        self, data: bytes, at_ns: Nanoseconds, now_ns: Nanoseconds, lost: bool = False
    ) -> Iterator[Block]:
        """``data``: interleaved int16 that came at ``now_ns``, said at ``at_ns`` by the device's report.

        ``lost``: the device says that there was more before it.
        """
        if lost:
            self._clock.gap()
        frames = np.frombuffer(data, np.int16).reshape(-1, self._channels)
        self._clock.observe(self._frames * 1_000_000_000 // self._rate_hz, at_ns, now_ns)
        self._frames += len(frames)
        rest = np.concatenate([self._rest, self._resampler.process(mixed(frames))])
        while len(rest) >= BLOCK:
            position = self.next - self._first
            at_ns = self._clock.at_ns(position * 1_000_000_000 // HEARING_RATE_HZ)
            block = Block(rest[:BLOCK], self.next, at_ns)
            rest = rest[BLOCK:]
            self.next += BLOCK
            self._rest = rest
            yield block
        self._rest = rest


class DeviceMicrophone:
    """See ``ports.Microphone``."""

    def __init__(
        self,
        spec: str,
        *,
        on_fault: OnFault,
        clock: Clock = time.monotonic_ns,
        sleep: Sleep = asyncio.sleep,
        host: Host | None = None,
        watch: Watch | None = None,
    ) -> None:
        """On the running loop: the device is looked for at once."""
        self._wake = Wake(self._look)
        self._arrived = asyncio.Event()
        self._stream: MicrophoneStream | None = None
        self._next = 0
        self._zeros = 0
        self._closed = False
        self._clock = clock
        self._taken_ns = 0
        """When what was taken last had come, or since when it could have been."""
        self._keeper: Keeper[MicrophoneStream] = Keeper(
            "microphone",
            spec,
            open_device=lambda device: MicrophoneStream(device, self._wake, clock),
            on_open=self._opened,
            on_lost=self._lost,
            on_fault=on_fault,
            host=host or portaudio(),
            watch=watch or pulse_watch(),
            clock=clock,
            sleep=sleep,
        )
        self._keeper.start()

    @property
    def name(self) -> str:
        """The device's name, for people."""
        return self._keeper.name

    @property
    def callbacks_ns(self) -> Sequence[Nanoseconds]:
        """How long each of the latest audio callbacks of the open device took."""
        return tuple(self._stream.callbacks_ns) if self._stream else ()

    @property
    def backlog_ns(self) -> Nanoseconds:
        """See ``alive``."""
        last_ns = self._stream.last_callback_ns if self._stream else None
        return 0 if last_ns is None else max(0, last_ns - self._taken_ns)

    @property
    def kept(self) -> bool:
        """See ``alive``."""
        return self._keeper.alive

    async def blocks(self) -> AsyncGenerator[Block, None]:
        """See ``ports.Microphone``. One listener at a time."""
        stream: MicrophoneStream | None = None
        hearing = Hearing(DEVICE_RATE_HZ, 1, 0)
        while not self._closed:
            if self._stream is not stream:
                stream = self._stream
                if stream:
                    hearing = Hearing(stream.rate_hz, stream.channels, self._next)
            while stream and stream.ring:
                data, at_ns, now_ns, lost = stream.ring.popleft()
                self._taken_ns = now_ns
                for block in hearing.take(data, at_ns, now_ns, lost):
                    self._next = hearing.next
                    self._watch_zeros(block.samples)
                    yield block
            await self._arrived.wait()
            self._arrived.clear()

    def use(self, spec: str) -> None:
        """Listen with another device; ``blocks`` goes on with what that one hears."""
        self._keeper.use(spec)

    async def close(self) -> None:
        """See ``ports.Microphone``."""
        self._closed = True
        self._arrived.set()
        await self._keeper.close()
        self._wake.close()

    def _opened(self, stream: MicrophoneStream) -> None:
        self._stream = stream
        self._taken_ns = self._clock()
        self._zeros = 0
        self._arrived.set()

    def _lost(self) -> None:
        self._stream = None
        self._arrived.set()

    def _look(self) -> None:
        self._arrived.set()
        if self._stream and self._stream.finished:
            self._keeper.wake()

    def _watch_zeros(self, samples: Samples) -> None:
        if samples[-1] or samples.any():  # the last alone mostly tells, for a tenth of the price
            if self._zeros >= ZEROS_NOTICE:
                self._keeper.tell(None)
            self._zeros = 0
            return
        before, self._zeros = self._zeros, self._zeros + len(samples)
        if before < ZEROS_NOTICE <= self._zeros:
            self._keeper.tell("microphone_silent", name=self.name)
