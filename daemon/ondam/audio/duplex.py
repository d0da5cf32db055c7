"""A microphone that does not hear our own speaker: the way back from what is played to what is heard."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Literal, Protocol, TypeAlias

import numpy as np

from ondam.audio.alive import backlog_ns, kept
from ondam.audio.delay import EARLY, DelayEstimator
from ondam.audio.echo import AUDIBLE_DBFS, LAG_NS, SILENT_DBFS, EchoCanceller, EchoMeter, level_db
from ondam.audio.headset import is_headset
from ondam.audio.played import SLACK, Played, sample_at
from ondam.audio.simulated import BLOCK
from ondam.pipeline.ports import Microphone, Reference
from ondam.types import HEARING_RATE_HZ, Block, Nanoseconds, Samples

log = logging.getLogger(__name__)

EchoMode: TypeAlias = Literal["learning", "cancelling", "no_echo", "half_duplex"]
"""What is known of our own voice in the microphone: nothing, it is removed, there is none, or it stays."""

EchoSetting: TypeAlias = Literal["auto", "on", "off"]
"""``audio.echo`` of the configuration."""

LEAD = HEARING_RATE_HZ * 25 // 1000
"""Samples by which what was played is fed before its echo. A reference that comes late is worth nothing, and
time stamps wander by some milliseconds; with more the device may not have taken the sound yet."""

LATEST = HEARING_RATE_HZ // 20
"""Samples. Later than this is no device that tells late, but a break."""

NEAR, FAR = HEARING_RATE_HZ * 4 // 1000, HEARING_RATE_HZ * 45 // 1000
"""An echo so long after what is fed is left to the canceller: another distance would make it learn anew."""

REST_NS = 3_000_000_000
"""After the last sound of ours. Longer than the latest echo and the room's tail; then nothing is computed."""

PROVEN = 50
"""Blocks of echo in a row, half a second, that are well cancelled until it is trusted."""

LOST = 300
"""Blocks of echo in a row, 3 s, that are badly cancelled until it is no longer trusted."""

GIVEN_UP = 800
"""Blocks of our own voice, 8 s, after which what is not known yet counts as an echo that stays."""

HIDDEN_DB = 3.0
"""What is left of the echo is no louder than this over the room's noise: Silero hears no voice. Or ..."""

GOOD_DB = 25.0
"""... of cancellation. At 12 to 20 dB, while the canceller is still learning, what is left may be voice."""

BAD_DB = 6.0
"""Of cancellation: less, and it does not work (any more)."""

LEAST_HEARD = 150
"""Blocks of our own voice: 1.5 s."""

STEADY_DB = 6.0
"""Between the quiet and the loud while our own voice sounds: less, and no voice is in the room."""


class Sounding(Protocol):
    """What is asked of a ``ports.Speaker``."""

    @property
    def name(self) -> str:
        """The device's name."""

    def reference(self) -> Sequence[Reference]:
        """What was handed to the converter since the last call."""


def wanted(setting: EchoSetting, speaker_name: str) -> bool:
    """Whether to remove the echo from the start. A headset that is heard all the same is noticed later."""
    return setting == "on" or (setting == "auto" and not is_headset(speaker_name))


class Duplex:
    """A ``ports.Microphone`` around another: the same blocks without the echo of ``speaker``.

    While nothing of ours sounds, and for as long as there is no echo, blocks pass untouched and nothing is
    computed. Cleaned samples are 8 ms late (the canceller's filters), and their ``at_ns`` is that much
    earlier than the original block's, so that it stays true.
    """

    def __init__(
        self,
        microphone: Microphone,
        speaker: Sounding,
        *,
        setting: EchoSetting = "auto",
        on_change: Callable[[EchoMode], None] = lambda mode: None,
    ) -> None:
        """``setting``: ``audio.echo``. ``on_change`` is called with each new ``mode``.

        Nobody else may call ``speaker.reference``.
        """
        self._microphone = microphone
        self._speaker = speaker
        self._setting = setting
        self._on_change = on_change
        self._device: tuple[str, str] | None = None
        """Names of microphone and speaker that what is known belongs to."""
        self._played = Played()
        self._estimator = DelayEstimator()
        self._meter = EchoMeter()
        self._canceller: EchoCanceller | None = None
        self._rest_ns: Nanoseconds | None = None
        """When nothing of ours is in the room any more."""
        self._awake = False
        self._before: Block | None = None
        self._cleaning = False
        """The last block that was given away had gone through the canceller."""
        self._position = 0
        """Where the next block of the microphone belongs among what was played."""
        self._expected_first: int | None = None
        self._anchor = True
        self._shift = -LEAD
        """By how many samples what was played is fed late."""
        self._least_shift = -EARLY
        """Below it a device has not told yet what it plays."""
        self._fed_db: deque[float] = deque(maxlen=FAR // BLOCK + 3)
        self._learned = 0
        """Blocks of our own voice since the mode was last certain."""
        self._bad = self._well = 0
        """Blocks of echo in a row that are badly, and well cancelled."""
        self._heard_db: deque[float] = deque(maxlen=300)
        self._mode: EchoMode = self._first_mode()
        speaker.reference()  # the first call only begins it

    @property
    def name(self) -> str:
        """See ``ports.Microphone``."""
        return self._microphone.name

    @property
    def mode(self) -> EchoMode:
        """What is known now. Between answers it is that of the last one."""
        return self._mode

    @property
    def trusted(self) -> bool:
        """Whether a voice in the microphone while our own sounds can be taken for the user's."""
        return self._mode in {"cancelling", "no_echo"}

    @property
    def delay_ms(self) -> float | None:
        """How long after the speaker's own time stamp the echo is heard; None when none was found."""
        return self._estimator.found.ms if self._estimator.found else None

    @property
    def echo_db(self) -> float | None:
        """Level of the echo in the microphone over that of what was played (dB); None: not known."""
        return self._meter.gain_db

    @property
    def erle_db(self) -> float | None:
        """How much of the echo is removed; None when nothing that stands out of the noise was measured."""
        return self._meter.erle_db

    @property
    def residual_db(self) -> float | None:
        """Level (dBFS) that the rest of our own voice may have now; None while nothing sounds or is known."""
        return self._meter.expected_db if self._awake and self._mode == "cancelling" else None

    @property
    def backlog_ns(self) -> Nanoseconds:
        """See ``alive``."""
        return backlog_ns(self._microphone)

    @property
    def kept(self) -> bool:
        """See ``alive``."""
        return kept(self._microphone)

    async def blocks(self) -> AsyncGenerator[Block, None]:
        """See ``ports.Microphone``."""
        stream = self._microphone.blocks()
        if not isinstance(stream, AsyncGenerator):
            async for block in stream:
                yield self._hear(block)
            return
        async with aclosing(stream):
            async for block in stream:
                yield self._hear(block)

    def reopen(self, microphone: Microphone) -> None:
        """After ``close``: go on with ``microphone``, opened anew, and with what was learned of the room."""
        self._microphone = microphone
        self._before = None
        self._expected_first = None

    async def close(self) -> None:
        """See ``ports.Microphone``."""
        await self._microphone.close()

    def _hear(self, block: Block) -> Block:
        if self._setting == "off":
            return block
        self._listen_to_speaker()
        before, self._before = self._before, block
        if self._rest_ns is None or block.at_ns > self._rest_ns:
            return self._pass(block, awake=False)
        self._notice_devices()
        if not self._awake:
            self._wake(before if before and before.first + len(before.samples) == block.first else None)
        self._place(block)
        position = self._position
        self._position += len(block.samples)
        self._expected_first = block.first + len(block.samples)
        now_played = self._played.at(position, len(block.samples))
        if level_db(now_played) >= AUDIBLE_DBFS:
            self._learned += 1
            self._heard_db.append(level_db(block.samples))
        if self._estimator.observe(block.samples, now_played):
            self._align()
            self._look_for_echo()
        if self._mode == "no_echo":
            return self._pass(block, awake=True)
        cleaned = self._cancel(block.samples, self._played.at(position - self._shift, len(block.samples)))
        if self._mode == "learning" and self._learned > GIVEN_UP:
            self._become("half_duplex")
        if not self._cleaning:
            self._cleaning = True
            cleaned = _faded(block.samples, cleaned)
        return Block(cleaned, block.first, block.at_ns - LAG_NS)

    def _pass(self, block: Block, *, awake: bool) -> Block:
        """Untouched; but where the last block was a cleaned one, one goes over into the other."""
        if not self._cleaning:
            self._awake = awake
            return block
        # One more through the canceller: its output is what the last block is continued by.
        cleaned = self._cancel(block.samples, np.zeros(len(block.samples), np.int16))
        self._cleaning = False
        self._awake = awake
        return Block(_faded(cleaned, block.samples), block.first, block.at_ns)

    def _listen_to_speaker(self) -> None:
        for piece in self._speaker.reference():
            if not len(piece.samples):
                continue
            ends_ns = piece.at_ns + len(piece.samples) * 1_000_000_000 // piece.rate_hz
            if piece.samples.any():
                self._rest_ns = max(self._rest_ns or 0, ends_ns + REST_NS)
            elif self._rest_ns is None or piece.at_ns > self._rest_ns:
                continue  # a device that plays silence all day
            end = self._played.end
            first = self._played.add(piece.at_ns, piece.samples, piece.rate_hz)
            if first != end:
                self._anchor = True
            late = self._position - self._shift - first
            if self._awake and 0 < late <= LATEST:
                # It was fed as silence before it was known: from now on feed later.
                self._shift += late
                self._least_shift = self._shift

    def _notice_devices(self) -> None:
        """What was learned holds for these two only."""
        device = (self._microphone.name, self._speaker.name)
        if device != self._device:
            self._device = device
            self._forget()

    def _wake(self, before: Block | None) -> None:
        self._awake = True
        self._anchor = True
        self._estimator.resume()
        if before is not None and self._mode != "no_echo":
            # So that what comes out goes on where the last block ended.
            self._cancel(before.samples, np.zeros(len(before.samples), np.int16))

    def _forget(self) -> None:
        self._estimator.forget()
        self._meter = EchoMeter()
        if self._canceller:
            self._canceller.reset()
        self._shift, self._least_shift = -LEAD, -EARLY
        self._learned = 0
        self._become(self._first_mode())

    def _first_mode(self) -> EchoMode:
        if self._setting == "off":
            return "half_duplex"
        return "learning" if wanted(self._setting, self._speaker.name) else "no_echo"

    def _place(self, block: Block) -> None:
        """Where among what was played the block belongs: by its time stamp where a stream broke."""
        at = sample_at(block.at_ns)
        if self._anchor or block.first != self._expected_first or abs(at - self._position) > SLACK:
            self._position = at
            self._anchor = False

    def _cancel(self, heard: Samples, played: Samples) -> Samples:
        if self._canceller is None:
            self._canceller = EchoCanceller()
        cleaned = self._canceller.cancel(heard, played)
        self._fed_db.append(level_db(played))
        found = self._estimator.found
        if found is not None:
            # The echo of what was fed so many blocks ago is in this one.
            ago = min(max(0, found.samples - self._shift) // BLOCK, len(self._fed_db) - 1)
            echoing = [self._fed_db[-1 - n] for n in (ago, ago + 1) if n < len(self._fed_db)]
            if self._meter.observe(heard, cleaned, max(echoing, default=SILENT_DBFS)):
                self._judge()
        return cleaned

    def _align(self) -> None:
        """Feed what was played shortly before its echo."""
        found = self._estimator.found
        if found is None or NEAR <= found.samples - self._shift <= FAR:
            return
        shift = max(found.samples - LEAD, self._least_shift)
        if abs(shift - self._shift) < NEAR:
            return
        log.info("the echo comes %.0f ms after the speaker's time stamps", found.ms)
        self._shift = shift
        self._meter.forget()
        if self._canceller:
            self._canceller.reset()
        if self._mode == "cancelling":
            self._become("learning")

    def _look_for_echo(self) -> None:
        """After the correlation was computed anew."""
        if self._mode == "no_echo" and (self._estimator.found is not None or self._estimator.suspected):
            self._become("learning")
        elif self._estimator.found is not None:
            return
        elif self._mode != "no_echo" and self._estimator.absent and self._quiet():
            self._become("no_echo")

    def _judge(self) -> None:
        """After a block that holds echo."""
        meter = self._meter
        if self._good():
            self._bad = 0
            self._well += 1
            if self._well > PROVEN:
                self._become("cancelling")
            return
        self._well = 0
        if self._mode == "cancelling" and meter.erle_db is not None and meter.erle_db < BAD_DB:
            self._bad += 1
            if self._bad > LOST:
                self._become("learning")

    def _good(self) -> bool:
        meter = self._meter
        if meter.audible is None:
            return False
        if meter.erle_db is None or meter.left_db is None:
            return not meter.audible
        if meter.left_db <= HIDDEN_DB:
            return meter.erle_db >= 0
        return meter.erle_db >= GOOD_DB

    def _quiet(self) -> bool:
        """No voice is in the room while ours sounds: an echo that no correlation finds would be one."""
        if len(self._heard_db) < LEAST_HEARD:
            return False
        low, high = np.percentile(self._heard_db, (10, 75))
        return float(high - low) < STEADY_DB

    def _become(self, mode: EchoMode) -> None:
        if mode == self._mode:
            return
        self._mode = mode
        self._learned = 0
        self._bad = self._well = 0
        log.info("echo: %s", mode)
        self._on_change(mode)


def _faded(old: Samples, new: Samples) -> Samples:
    """From one into the other over a block."""
    rise = np.linspace(0, 1, len(new), dtype=np.float32)
    return (old * (1 - rise) + new * rise).astype(np.int16)
