"""A microphone and a speaker without a sound card: sound files in real time, or nothing at all."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ondam.audio.envelope import Envelope
from ondam.audio.faults import Clock, Sleep
from ondam.audio.resample import resampled
from ondam.audio.timeline import Timeline
from ondam.audio.wav import read_wav, write_wav
from ondam.pipeline.ports import Reference
from ondam.types import HEARING_RATE_HZ, Audio, Block, Nanoseconds, Samples

BLOCK = HEARING_RATE_HZ // 100
"""Samples in the 10 ms that a microphone delivers at once."""

BLOCK_NS = 10_000_000

SPEAKER_RATE_HZ = 48_000
"""What sound cards and sound servers run at; every speaker of ours wants it."""

REFERENCE_S = 2
"""How much of what was played is kept for one who asks for it."""

QUEUE_NS = 1_000_000_000
"""How much sound a speaker holds before ``write`` waits."""

WAKE_S = 0.01
"""How often one who waits for a speaker looks again, so that a flush is noticed."""


class WavMicrophone:
    """Says a sound file into the room in real time: 10 ms blocks on a fixed schedule, silence around it.

    Block k holds what was said from ``start + k * 10 ms`` on and is delivered when it ends: a late consumer
    gets late blocks with the right times, and the schedule never drifts. ``start`` is when ``blocks`` is
    first asked. ``pace`` 2.0 runs twice as fast, times included.
    """

    def __init__(
        self,
        source: Path | Audio | None,
        *,
        clock: Clock = time.monotonic_ns,
        sleep: Sleep = asyncio.sleep,
        then: Literal["silence", "end"] = "silence",
        pace: float = 1.0,
    ) -> None:
        """``source``: a file (AudioError when unusable), a sound, or None for silence until ``play``."""
        self.name = f"wav:{source}" if isinstance(source, Path) else "wav"
        self._clock = clock
        self._sleep = sleep
        self._then = then
        self._block_ns = round(BLOCK_NS / pace)
        self._queue: Samples = np.zeros(0, np.int16)
        self._next = 0
        self._closed = False
        self.started_ns: Nanoseconds | None = None
        """When sample 0 was said; None until ``blocks`` is asked."""
        if source is not None:
            self.play(read_wav(source) if isinstance(source, Path) else source)

    def play(self, audio: Audio) -> int:
        """Say ``audio`` (any rate) after what is still to be said. Returns the number of its first sample."""
        first = self._next + len(self._queue)
        self._queue = np.concatenate([self._queue, resampled(audio, HEARING_RATE_HZ).samples])
        return first

    def said_at_ns(self, sample: int) -> Nanoseconds:
        """When ``sample`` is or was said. Only after ``blocks`` was asked."""
        if self.started_ns is None:
            raise RuntimeError("the microphone has not been opened")
        return self.started_ns + sample * self._block_ns // BLOCK

    @property
    def backlog_ns(self) -> Nanoseconds:
        """See ``alive``: a file never waits for anybody."""
        if self.started_ns is None or self._closed:
            return 0
        return max(0, self._clock() - self.said_at_ns(self._next) - self._block_ns)

    async def blocks(self) -> AsyncGenerator[Block, None]:
        """See ``ports.Microphone``. Ends by itself only with ``then="end"``."""
        if self.started_ns is None:
            self.started_ns = self._clock()
        while not self._closed and (len(self._queue) or self._then == "silence"):
            at_ns = self.said_at_ns(self._next)
            # Also when late: a consumer that catches up must not starve the loop.
            await self._sleep(max(0.0, (at_ns + self._block_ns - self._clock()) / 1e9))
            if self._closed:
                return
            samples = np.zeros(BLOCK, np.int16)
            said = self._queue[:BLOCK]
            samples[: len(said)] = said
            self._queue = self._queue[BLOCK:]
            first, self._next = self._next, self._next + BLOCK
            yield Block(samples, first, at_ns)

    async def close(self) -> None:
        """See ``ports.Microphone``."""
        self._closed = True


class NoMicrophone:
    """Hears nothing, costs nothing."""

    name = "none"

    def __init__(self) -> None:
        self._closed = asyncio.Event()

    async def blocks(self) -> AsyncGenerator[Block, None]:
        """Yields nothing until ``close``."""
        await self._closed.wait()
        return
        yield

    async def close(self) -> None:
        """See ``ports.Microphone``."""
        self._closed.set()


def checked_gain(gain: float) -> float:
    """``gain``. Raises ValueError when it is not 0 to 1: more would clip."""
    if not 0 <= gain <= 1:
        raise ValueError(f"a gain of {gain} is not between 0 and 1")
    return gain


class Sound(NamedTuple):
    """Samples numbered from ``first`` on, the first of which passes at ``at_ns``."""

    at_ns: Nanoseconds
    first: int
    samples: Samples


class WavSpeaker:
    """A converter made of arithmetic: what is written plays at the clock's pace, 10 ms after it was written.

    Keeps what would have been heard (``recording``), and with ``path`` writes it there on ``close``. Silences
    longer than ``longest_gap_s`` are cut to that, shorter ones are kept as they would be heard.
    """

    underruns = 0
    """See ``ports.Speaker``."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        rate_hz: int = SPEAKER_RATE_HZ,
        clock: Clock = time.monotonic_ns,
        sleep: Sleep = asyncio.sleep,
        longest_gap_s: float = 0.5,
        longest_s: float = 600.0,
    ) -> None:
        """``longest_s``: no more than so much is kept (96 kB a second); 0 keeps nothing."""
        self.name = f"wav:{path}" if path else "none"
        self.rate_hz = rate_hz
        self._path = path
        self._clock = clock
        self._sleep = sleep
        self._longest_gap_ns = longest_gap_s * 1e9
        self._room = round(longest_s * rate_hz)
        self._timeline = Timeline(rate_hz, slack_ns=0)
        self._envelope = Envelope(rate_hz, clock())
        self._heard: list[Sound] = []
        """As it passed the converter."""
        self._coming: deque[Sound] = deque()
        """As it was written, with the times at which it is going to pass."""
        self._held: deque[Sound] = deque()
        """As it was written, to be given new times when the level is no longer 0."""
        self._reference: deque[Reference] | None = None
        """What passed since somebody asked; None until somebody does."""
        self._level = 1.0
        self._written = 0
        self._flushes = 0
        self._waiting = 0
        """Samples of the write that waits for room."""
        self._closed = False

    async def write(self, samples: Samples) -> int:
        """See ``ports.Speaker``. One writer at a time; a ``flush`` drops a write that waits, whole."""
        first = self._written
        self._written += len(samples)
        flushes = self._flushes
        self._waiting += len(samples)
        try:
            while not self._closed and flushes == self._flushes and (late := self._ahead_ns() - QUEUE_NS) > 0:
                await self._sleep(min(late / 1e9, WAKE_S))
        finally:
            if flushes == self._flushes:
                self._waiting -= len(samples)
        if self._closed or flushes != self._flushes or not len(samples):
            return first
        self._pass(self._clock())
        if self._level:
            self._play(first, samples.copy())
        else:
            self._held.append(Sound(0, first, samples.copy()))
        return first

    def wake(self) -> None:
        """See ``ports.Speaker``. It never rests."""

    def level(self, gain: float) -> None:
        """See ``ports.Speaker``."""
        before, self._level = self._level, checked_gain(gain)
        if self._closed or gain == before:
            return
        now_ns = self._clock()
        self._pass(now_ns)
        if not gain:
            self._envelope.ramp(now_ns, 0)
            self._held.extend(self._cut(now_ns + BLOCK_NS))
        elif before:
            self._envelope.ramp(now_ns, gain)
        elif self._held:
            self._envelope.ramp(now_ns + BLOCK_NS, gain)
            while self._held:
                held = self._held.popleft()
                self._play(held.first, held.samples)
        else:
            self._envelope.jump(now_ns + BLOCK_NS, gain)

    def flush(self) -> None:
        """See ``ports.Speaker``: what plays now fades to nothing over 10 ms."""
        self._flushes += 1
        self._waiting = 0
        now_ns = self._clock()
        self._pass(now_ns)
        if self._level:
            self._envelope.ramp(now_ns, 0)
        self._held.clear()
        self._cut(now_ns + BLOCK_NS)
        self._level = 1.0
        self._envelope.jump(now_ns + BLOCK_NS, 1)

    def reference(self) -> Sequence[Reference]:
        """See ``ports.Speaker``. At ``rate_hz``, and only when it has passed: until then it may fade."""
        if self._reference is None:
            self._pass(self._clock())
            self._reference = deque()
            return ()
        self._pass(self._clock())
        taken = tuple(self._reference)
        self._reference.clear()
        return taken

    async def drained(self) -> None:
        """See ``ports.Speaker``."""
        while not self._closed and ((left := self._ahead_ns()) > 0 or self._waiting):
            await self._sleep(min(left / 1e9, WAKE_S) if left > 0 else WAKE_S)

    @property
    def heard(self) -> int:
        """How many of the written samples have passed the converter by now; dropped ones do not count."""
        return self._timeline.heard(self._clock())

    def heard_at_ns(self, sample: int) -> Nanoseconds | None:
        """See ``ports.Speaker``."""
        return self._timeline.heard_at_ns(sample, self._clock())

    def ends_at_ns(self) -> Nanoseconds | None:
        """See ``ports.Speaker``."""
        end_ns = self._timeline.end_ns
        left = self._waiting + sum(len(held.samples) for held in self._held)
        if self._closed or not left:
            return end_ns
        if self._held:  # at the earliest, if the level went up now
            end_ns = max(end_ns or 0, self._clock() + BLOCK_NS)
        return (end_ns or self._clock()) + left * 1_000_000_000 // self.rate_hz

    def recording(self) -> Audio:
        """What has been and is going to be heard, from the first sample on. Without what is held."""
        sounds = [*self._heard, *self._fitting(map(self._sounding, self._coming))]
        if not sounds:
            return Audio(np.zeros(0, np.int16), self.rate_hz)
        parts: list[Samples] = []
        end_ns = sounds[0].at_ns
        for at_ns, _, samples in sounds:
            gap_ns = min(max(0, at_ns - end_ns), self._longest_gap_ns)
            parts += [np.zeros(round(gap_ns * self.rate_hz / 1e9), np.int16), samples]
            end_ns = at_ns + len(samples) * 1_000_000_000 // self.rate_hz
        return Audio(np.concatenate(parts), self.rate_hz)

    async def close(self) -> None:
        """See ``ports.Speaker``. Raises AudioError when the recording cannot be written."""
        if self._closed:
            return
        self._closed = True
        now_ns = self._clock()
        self._pass(now_ns)
        self._cut(now_ns)
        self._held.clear()
        if self._path:
            await asyncio.to_thread(write_wav, self._path, self.recording())

    def _ahead_ns(self) -> Nanoseconds:
        """How much sound was written and has not been heard."""
        held = sum(len(held.samples) for held in self._held)
        playing_ns = max(0, (self._timeline.end_ns or 0) - self._clock())
        return playing_ns + held * 1_000_000_000 // self.rate_hz

    def _play(self, first: int, samples: Samples) -> None:
        at_ns = max(self._timeline.end_ns or 0, self._clock() + BLOCK_NS)
        self._timeline.play(first, len(samples), at_ns)
        self._coming.append(Sound(at_ns, first, samples))

    def _pass(self, now_ns: Nanoseconds) -> None:
        """What is over by ``now_ns`` can no longer change."""
        while self._coming and self._coming[0].at_ns < now_ns:
            sound = self._coming.popleft()
            passed, left = self._split(sound, (now_ns - sound.at_ns) * self.rate_hz // 1_000_000_000)
            heard = self._sounding(passed)
            for fits in self._fitting([heard]):
                self._room -= len(fits.samples)
                self._heard.append(fits)
            self._remember(heard)
            if len(left.samples):
                self._coming.appendleft(left)
                break
        self._envelope.forget_before(now_ns)

    def _remember(self, sound: Sound) -> None:
        if self._reference is None or not len(sound.samples):
            return
        most = REFERENCE_S * self.rate_hz
        sound = self._split(sound, len(sound.samples) - most)[1]
        self._reference.append(Reference(sound.at_ns, sound.samples, self.rate_hz))
        while sum(len(one.samples) for one in self._reference) > most:
            self._reference.popleft()

    def _cut(self, at_ns: Nanoseconds) -> list[Sound]:
        """Whatever would pass at or after ``at_ns`` does not. Returns it."""
        number = self._timeline.cut(at_ns)
        kept: list[Sound] = []
        cut: list[Sound] = []
        for sound in self._coming:
            before, after = self._split(sound, 0 if number is None else number - sound.first)
            if number is None:
                before, after = after, before
            kept += [before] if len(before.samples) else []
            cut += [after] if len(after.samples) else []
        self._coming = deque(kept)
        return cut

    def _split(self, sound: Sound, count: int) -> tuple[Sound, Sound]:
        """Its first ``count`` samples, and the others."""
        count = min(max(0, count), len(sound.samples))
        at_ns = sound.at_ns + count * 1_000_000_000 // self.rate_hz
        return (
            sound._replace(samples=sound.samples[:count]),
            Sound(at_ns, sound.first + count, sound.samples[count:]),
        )

    def _sounding(self, sound: Sound) -> Sound:
        """As it passes the converter."""
        gains = self._envelope.gains(sound.at_ns, len(sound.samples))
        return sound._replace(samples=np.rint(sound.samples * gains).astype(np.int16))

    def _fitting(self, sounds: Iterable[Sound]) -> Iterator[Sound]:
        """Those that there is room to keep."""
        room = self._room
        for sound in sounds:
            if 0 < len(sound.samples) <= room:
                room -= len(sound.samples)
                yield sound
