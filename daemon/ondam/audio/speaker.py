"""The speaker: samples in, and the moment each of them was heard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import numpy as np

from ondam.audio.faults import Clock, OnFault, Sleep
from ondam.audio.keeper import Host, Keeper, Watch
from ondam.audio.portaudio import portaudio
from ondam.audio.pulse import pulse_watch
from ondam.audio.resample import Resampler
from ondam.audio.simulated import QUEUE_NS, SPEAKER_RATE_HZ, WAKE_S, checked_gain
from ondam.audio.speakerstream import Piece, SpeakerStream
from ondam.audio.streamclock import StreamClock
from ondam.audio.timeline import Timeline
from ondam.pipeline.ports import Reference
from ondam.types import Nanoseconds, Samples

PATIENCE_NS = 1_000_000_000
"""A speaker that comes back sooner goes on where it stopped; else what was written is dropped as unheard."""

REST_NS = 5_000_000_000
"""After so long with nothing to play the device is closed: open and silent it takes 1.2 % of a core.

Longer than the pauses between clauses of a slow engine; from the rest sound comes 10-30 ms later.
"""


class DeviceSpeaker:
    """See ``ports.Speaker``. Wants 48 kHz whatever the device has."""

    rate_hz = SPEAKER_RATE_HZ

    def __init__(
        self,
        spec: str,
        *,
        latency_ms: int,
        on_fault: OnFault,
        clock: Clock = time.monotonic_ns,
        sleep: Sleep = asyncio.sleep,
        host: Host | None = None,
        watch: Watch | None = None,
    ) -> None:
        """On the running loop: the device is looked for at once."""
        self._clock = clock
        self._sleep = sleep
        self._stream: SpeakerStream | None = None
        self._before: SpeakerStream | None = None
        self._stream_clock = StreamClock()
        self._resampler = Resampler(SPEAKER_RATE_HZ, SPEAKER_RATE_HZ)
        self._gone_since_ns = self._awake_ns = clock()
        self._timeline = Timeline(SPEAKER_RATE_HZ)
        self._written = 0
        self._queued = 0
        """Frames given to the stream, and how many of them had been when it was flushed last."""
        self._flushed = 0
        self._held = 0
        """Written samples that went into the resampler and have not come out in any piece."""
        self._flushes = 0
        self._waiting = 0
        """Samples of the write that waits."""
        self._underruns = 0
        self._level = 1.0
        self._listened = False
        self._known = -1
        """Position (frames) up to which the clock knows when the stream passes the converter."""
        self._closed = False
        self._keeper: Keeper[SpeakerStream] = Keeper(
            "speaker",
            spec,
            open_device=lambda device: SpeakerStream(device, latency_ms / 1000, clock),
            on_open=self._opened,
            on_lost=self._lost,
            on_fault=on_fault,
            on_look=self._catch_up,
            busy=self._to_come,
            idle=self._idle,
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
    def kept(self) -> bool:
        """See ``alive``."""
        return self._keeper.alive

    @property
    def underruns(self) -> int:
        """How often the device ran dry since the start, as it reports it."""
        return self._underruns + (self._stream.underruns if self._stream else 0)

    @property
    def callbacks_ns(self) -> Sequence[Nanoseconds]:
        """How long each of the latest audio callbacks of the open device took."""
        return tuple(self._stream.callbacks_ns) if self._stream else ()

    async def write(self, samples: Samples) -> int:
        """See ``ports.Speaker``. One writer at a time.

        While the device is gone for less than a second this waits; longer, and what is written is dropped.
        """
        self.wake()
        first = self._written
        self._written += len(samples)
        flushes = self._flushes
        self._waiting += len(samples)
        try:
            while not self._closed and flushes == self._flushes and self._must_wait():
                await self._sleep(WAKE_S)
        finally:
            if flushes == self._flushes:
                self._waiting -= len(samples)
        stream = self._stream
        if stream and flushes == self._flushes and not self._closed and len(samples):
            out = self._resampler.process(samples)
            self._held += len(samples)
            if len(out):
                self._queue(stream, out.copy() if out is samples else out, first + len(samples))
        return first

    def wake(self) -> None:
        """See ``ports.Speaker``. Takes 2-40 ms, in the background."""
        self._awake_ns = self._clock()
        if self._keeper.resting:
            # From now on it has a second to come, like one that is gone.
            self._gone_since_ns = self._awake_ns
            self._keeper.wake()

    def level(self, gain: float) -> None:
        """See ``ports.Speaker``: the change is made in the next 10 ms that the device asks for."""
        self._level = checked_gain(gain)
        if self._stream:
            self._stream.level = self._level

    def flush(self) -> None:
        """See ``ports.Speaker``: the fade begins in the next 10 ms that the device asks for."""
        self._flushes += 1
        self._waiting = 0
        self._flushed = self._queued
        self._before = None
        self._level = 1.0
        if self._stream:
            self._stream.era += 1
            # After the era: what was held is not to be heard now.
            self._stream.level = 1.0
            # What it holds back would be heard at the beginning of what comes next.
            self._resample_to(self._stream.rate_hz)

    def reference(self) -> Sequence[Reference]:
        """See ``ports.Speaker``. At the device's rate, a callback each: known about ``latency_ms`` ahead."""
        self._listened = True
        stream = self._stream
        if not stream:
            return ()
        stream.listened = True
        self._catch_up()
        taken: list[Reference] = []
        while stream.played and stream.played[0][0] <= self._known:
            position, samples = stream.played.popleft()
            at_ns = self._stream_clock.at_ns(position * 1_000_000_000 // stream.rate_hz)
            taken.append(Reference(at_ns, samples, stream.rate_hz))
        return tuple(taken)

    async def drained(self) -> None:
        """See ``ports.Speaker``."""
        while not self._closed and self._waiting:
            await self._sleep(WAKE_S)
        self._finish()
        while not self._closed and (self._waiting or self._to_come()):
            await self._sleep(WAKE_S)

    @property
    def heard(self) -> int:
        """How many of the written samples have passed the converter by now; dropped ones do not count."""
        self._catch_up()
        return self._timeline.heard(self._clock())

    def heard_at_ns(self, sample: int) -> Nanoseconds | None:
        """See ``ports.Speaker``."""
        self._catch_up()
        return self._timeline.heard_at_ns(sample, self._clock())

    def ends_at_ns(self) -> Nanoseconds | None:
        """See ``ports.Speaker``."""
        # First what is left: what the device takes meanwhile then counts twice for 10 ms, and not never.
        left_ns = self._left_ns()
        self._catch_up()
        end_ns = self._timeline.end_ns
        return max(end_ns or 0, self._clock()) + left_ns if left_ns else end_ns

    def use(self, spec: str) -> None:
        """Play through another device; what is still to be heard goes on there, if it comes in a second."""
        self._keeper.use(spec)

    async def close(self) -> None:
        """See ``ports.Speaker``."""
        self._closed = True
        await self._keeper.close()

    def _must_wait(self) -> bool:
        if not self._stream:
            return self._may_come_back()
        ahead = self._queued - self._stream.taken
        return ahead * 1_000_000_000 // self._stream.rate_hz > QUEUE_NS

    def _idle(self) -> bool:
        return self._clock() - max(self.ends_at_ns() or 0, self._awake_ns) >= REST_NS

    def _to_come(self) -> bool:
        return (self.ends_at_ns() or 0) > self._clock()

    def _left_ns(self) -> Nanoseconds:
        """How long that will sound which was written and which no device has taken."""
        if self._closed or not (self._stream or self._may_come_back()):
            return 0
        left_ns = self._waiting * 1_000_000_000 // SPEAKER_RATE_HZ
        if stream := self._stream or self._before:
            taken = stream.taken
            left = self._queued - max(taken, self._flushed)
            if self._stream:  # of what was flushed 10 ms may still be heard, fading
                left += min(max(0, self._flushed - taken), stream.rate_hz // 100)
            left_ns += left * 1_000_000_000 // stream.rate_hz
        return left_ns

    def _may_come_back(self) -> bool:
        return self._clock() - self._gone_since_ns < PATIENCE_NS

    def _catch_up(self) -> None:
        """Take over what the callbacks left."""
        while self._stream and self._stream.reports:
            report = self._stream.reports.popleft()
            if report is None:
                self._stream_clock.gap()
                self._known = -1
                continue
            rate_hz = self._stream.rate_hz
            self._stream_clock.observe(
                report.position * 1_000_000_000 // rate_hz, report.at_ns, report.now_ns
            )
            self._known = report.position
            if report.length:
                position_ns = (report.position + report.skip) * 1_000_000_000 // rate_hz
                self._timeline.play(report.first, report.length, self._stream_clock.at_ns(position_ns))

    def _resample_to(self, rate_hz: int) -> None:
        self._resampler = Resampler(SPEAKER_RATE_HZ, rate_hz)
        self._held = 0

    def _queue(self, stream: SpeakerStream, out: Samples, end: int) -> None:
        """Give the stream what stands for all written samples before number ``end`` that it lacks."""
        self._queued += len(out)
        stream.queue.append(Piece(out, end - self._held, self._held, stream.era))
        self._held = 0

    def _finish(self) -> None:
        """Nothing follows for now: play what the resampler holds back."""
        out = self._resampler.finish()
        if not len(out) and self._held:
            out = np.zeros(1, np.int16)  # too few for one frame; they are heard with the silence after them
        if self._stream and len(out):
            self._queue(self._stream, out, self._written)

    def _opened(self, stream: SpeakerStream) -> None:
        self._stream_clock = StreamClock()
        self._resample_to(stream.rate_hz)
        self._queued = self._flushed = 0
        self._known = -1
        stream.listened = self._listened
        stream.level = self._level
        if self._before and self._may_come_back() and self._before.rate_hz == stream.rate_hz:
            for piece in self._before.left():
                stream.queue.append(piece._replace(era=stream.era))
                self._queued += len(piece.samples)
        self._before = None
        self._stream = stream

    def _lost(self) -> None:
        try:
            self._catch_up()
        finally:  # whatever failed, nobody is to wait for a stream that is gone
            self._before, self._stream = self._stream, None
            self._gone_since_ns = self._clock()
        if self._before:
            self._underruns += self._before.underruns
            # What the device had taken but not yet played went with it.
            self._timeline.cut(self._before.last_callback_ns or self._clock())
