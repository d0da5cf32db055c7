"""One open speaker: what its callback plays, how loud, and what it leaves behind to tell what was heard."""

from __future__ import annotations

from collections import deque
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ondam.audio.devices import Device
from ondam.audio.faults import Clock
from ondam.audio.portaudio import RawStream, close_stream, open_stream
from ondam.audio.simulated import SPEAKER_RATE_HZ
from ondam.types import Nanoseconds, Samples

CALLBACKS = 1000
"""Callbacks whose duration is remembered: 10 s."""

REPORTS = 1000
"""Callbacks remembered until somebody asks what was heard: 10 s; the keeper asks four times a second."""

PLAYED = 200
"""Callbacks whose sound is kept for one who asks what is played: 2 s, then the oldest are lost."""


class Piece(NamedTuple):
    """Samples at the device's rate that stand for ``written`` ones from number ``first`` on.

    Where the rates differ ``written`` need not fit their number: the resampler holds some back (below 1 ms).
    What was written is spread evenly over what came out, so that none of it is ever left without a time.
    """

    samples: Samples
    first: int
    written: int
    era: int
    """How often the speaker had been flushed when it was written."""

    def number(self, frame: int) -> int:
        """Which written sample begins with ``frame``; for the end of the piece the one after it."""
        return self.first + frame * self.written // len(self.samples)

    def without(self, frames: int) -> Piece:
        """What is left after the first ``frames``."""
        first = self.number(frames)
        return Piece(self.samples[frames:], first, self.first + self.written - first, self.era)


class Report(NamedTuple):
    """What one callback handed to the device.

    ``length`` samples from written number ``first``, ``skip`` frames after the stream's ``position``
    (frames), asked for at ``now_ns`` and heard at ``at_ns`` as the device reports.
    """

    position: int
    at_ns: Nanoseconds
    now_ns: Nanoseconds
    first: int
    length: int
    skip: int


class SpeakerStream:
    """One open device. The callback takes from ``queue`` and leaves ``reports``; nobody waits for anybody."""

    def __init__(self, device: Device, latency_s: float, clock: Clock) -> None:
        """Opens it: on PortAudio's thread. Raises AudioError."""
        self.queue: deque[Piece] = deque()
        self.reports: deque[Report | None] = deque(maxlen=REPORTS)
        """None where the device ran dry."""
        self.played: deque[tuple[int, Samples]] = deque(maxlen=PLAYED)
        """While it is ``listened`` to: position (frames) and sound of each callback that was not silent."""
        self.listened = False
        self.era = 0
        self.level = 1.0
        """How loud, 0 to 1; at 0 nothing is taken from the queue. Read once in each callback."""
        self.taken = 0
        """Frames that left the queue, heard or dropped."""
        self.last_callback_ns: Nanoseconds | None = None
        self.callbacks_ns: deque[Nanoseconds] = deque(maxlen=CALLBACKS)
        """How long each of the latest callbacks took."""
        self.underruns = 0
        self.finished = False
        self._latency_s = latency_s
        self._clock = clock
        self._position = 0
        self._offset = 0
        self._gain = 1.0
        """Where the last callback ended: at 0 the sound stands still."""
        self._sounding = False
        self._fading = False
        self._stream = open_stream(device, self._make, SPEAKER_RATE_HZ)
        self.rate_hz = round(self._stream.samplerate)

    def close(self) -> None:
        """On PortAudio's thread."""
        close_stream(self._stream)

    def left(self) -> list[Piece]:
        """What was queued and not taken. Only after ``close``."""
        left = [piece for piece in self.queue if piece.era == self.era]
        if left and self._offset and left[0] is self.queue[0]:
            left[0] = left[0].without(self._offset)
        return left

    def _make(self, sd: ModuleType, index: int, rate_hz: int, channels: int) -> RawStream:
        stream: RawStream = sd.OutputStream(
            samplerate=rate_hz,
            blocksize=rate_hz // 100,
            device=index,
            channels=channels,
            dtype="int16",
            latency=self._latency_s,
            callback=self._callback,
            finished_callback=self._finish,
        )
        return stream

    def _callback(self, out: npt.NDArray[np.int16], frames: int, when: Any, status: Any) -> None:
        now_ns = self._clock()
        if status.output_underflow:
            self.underruns += 1
            self.reports.append(None)
        ahead_s = when.outputBufferDacTime - when.currentTime
        # Some drivers report no time at all; then it is heard when the asked-for latency has passed.
        at_ns = now_ns + round((ahead_s if 0 < ahead_s < 2 else self._latency_s) * 1e9)
        filled = 0
        level = self.level
        # Where nothing sounded there is nothing to fade; what stood still is faded in.
        begin = self._gain if self._sounding or not self._gain else level
        # A hold is wanted soon: it takes half the time, the other half is silent.
        end = frames if level or not begin else frames // 2
        self._fading = False
        while filled < end and self.queue:
            if self.queue[0].era < self.era:
                filled += self._take_flushed(out[filled:], filled, at_ns, now_ns)
                begin = level
            elif begin or level:
                filled += self._take(out[:end], filled, begin, level, at_ns, now_ns)
            else:
                break
        out[filled:] = 0
        if not filled:
            self.reports.append(Report(self._position, at_ns, now_ns, 0, 0, 0))
        elif self.listened:
            self.played.append((self._position, out[:, 0].copy()))
        self._position += frames
        self._gain = level
        self._sounding = filled == frames and not self._fading and level > 0
        self.last_callback_ns = now_ns
        self.callbacks_ns.append(self._clock() - now_ns)

    def _take(
        self,
        out: npt.NDArray[np.int16],
        filled: int,
        begin: float,
        level: float,
        at_ns: Nanoseconds,
        now_ns: Nanoseconds,
    ) -> int:
        """Fill ``out`` from ``filled`` on with the first piece. Returns how many frames.

        The gain goes from ``begin`` to ``level`` over the whole of ``out``.
        """
        piece = self.queue[0]
        samples = piece.samples[self._offset : self._offset + len(out) - filled]
        count = len(samples)
        if begin != level:
            gains = np.linspace(begin, level, len(out), dtype=np.float32)[filled : filled + count]
            samples = (samples * gains).astype(np.int16)
        elif level < 1:
            samples = (samples * np.float32(level)).astype(np.int16)
        out[filled : filled + count] = samples[:, None]
        self._took(piece, count, filled, at_ns, now_ns)
        if self._offset >= len(piece.samples):
            self._drop(piece)
        return count

    def _take_flushed(
        self, room: npt.NDArray[np.int16], skip: int, at_ns: Nanoseconds, now_ns: Nanoseconds
    ) -> int:
        """Drop the first piece. Returns how many of its frames went to the beginning of ``room``."""
        piece = self.queue[0]
        count = 0
        # Only what continues the sound of the last callback is heard, fading out.
        if self._sounding and not skip:
            samples = piece.samples[self._offset : self._offset + len(room)]
            count = len(samples)
            self._fading = True
            room[:count] = (samples * np.linspace(self._gain, 0, count)).astype(np.int16)[:, None]
            self._took(piece, count, skip, at_ns, now_ns)
        self._drop(piece)
        return count

    def _took(self, piece: Piece, count: int, skip: int, at_ns: Nanoseconds, now_ns: Nanoseconds) -> None:
        first = piece.number(self._offset)
        length = piece.number(self._offset + count) - first
        self.reports.append(Report(self._position, at_ns, now_ns, first, length, skip))
        self._offset += count
        self.taken += count

    def _drop(self, piece: Piece) -> None:
        self.taken += len(piece.samples) - self._offset
        self._offset = 0
        self.queue.popleft()

    def _finish(self) -> None:
        self.finished = True
