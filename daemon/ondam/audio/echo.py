"""Takes our own voice out of the microphone: WebRTC's echo canceller (AEC3), and how well it does."""

from __future__ import annotations

from collections import deque

import numpy as np

from ondam.types import HEARING_RATE_HZ, Nanoseconds, Samples

LAG = 128
"""Samples by which what comes out is behind what went in (its filter bank). Measured with a click."""

LAG_NS: Nanoseconds = LAG * 1_000_000_000 // HEARING_RATE_HZ

SILENT_DBFS = -90.0
"""One step of a 16-bit converter: what no sound is counted as."""

AUDIBLE_DBFS = -55.0
"""Of our own voice: below it there is nothing to measure (ordinary speech is played at -30 to -15)."""

ABOVE_FLOOR_DB = 4.0
"""So far above the room's own noise, or less, nothing stands out: a voice detector hears noise."""

USER_DB = 10.0
"""So much louder than the echo is expected: somebody is speaking, and nothing is learned about the echo."""

REMEMBERED = 150
"""Blocks of echo that the present cancellation is judged by: 1.5 s."""

JUDGED_EVERY = 10
"""Blocks."""

LEAST = 100
"""Blocks before there is a judgement: 1 s. The canceller itself needs about half of it."""

FLOOR_OF = 500
"""Blocks whose quietest twentieth is the room's noise: 5 s, in which speech pauses."""

SMOOTHED = 0.3
"""Of each new block in the running power, some 30 ms: what comes out is 8 ms late and can be compared."""


class EchoCanceller:
    """One microphone, one loudspeaker, 16 kHz, 10 ms at a time. 0.1 ms of processor for each, 1 MiB.

    What is played must be given no later than its echo arrives, and no earlier than 400 ms before
    (``DelayEstimator`` finds by how much to delay it). Changes of delay inside that it follows itself.
    """

    def __init__(self) -> None:
        # Late: who never plays anything pays nothing for it.
        from pywebrtc_audio import EchoCanceller as Aec3

        self._aec3 = Aec3(HEARING_RATE_HZ)

    def cancel(self, heard: Samples, played: Samples) -> Samples:
        """``heard`` without the echo of ``played`` (both (160,) int16), ``LAG`` samples late."""
        return self._aec3.process(np.ascontiguousarray(heard), played)

    def reset(self) -> None:
        """Forget the room."""
        self._aec3.reset()


def level_db(samples: Samples) -> float:
    """Power of ``samples`` in dBFS (a square wave of full scale is 0), never below ``SILENT_DBFS``."""
    return _db(_power(samples))


class EchoMeter:
    """How much of the echo is gone. Fed with every block while something plays; pure.

    Only blocks that hold echo count, and those do not in which somebody speaks over it.
    """

    def __init__(self) -> None:
        self._heard = self._cleaned = 0.0
        """Running powers, of ±1."""
        self._floor: deque[float] = deque(maxlen=FLOOR_OF)
        self._echoes: deque[tuple[float, float, float]] = deque(maxlen=REMEMBERED)
        """Of blocks with echo: its level, what is left, and how much louder it is than what was played."""
        self._recent: deque[float] = deque(maxlen=30)
        self.floor_db = SILENT_DBFS
        self.gain_db: float | None = None
        """Of the way from the converter to the microphone; None until it is known."""
        self.erle_db: float | None = None
        """Echo return loss enhancement: how much quieter the echo is afterwards. None until it is known."""
        self.left_db: float | None = None
        """Level of what is left of the echo, above the room's noise."""
        self._since = 0

    def observe(self, heard: Samples, cleaned: Samples, played_db: float) -> bool:
        """One block, and the level of that part of what was played whose echo it holds (dBFS).

        True when it told something about the echo.
        """
        self._heard += SMOOTHED * (_power(heard) - self._heard)
        self._cleaned += SMOOTHED * (_power(cleaned) - self._cleaned)
        heard_db, cleaned_db = _db(self._heard), _db(self._cleaned)
        self._floor.append(heard_db)
        self._recent.append(played_db)
        gain_db = heard_db - played_db
        user = self.gain_db is not None and gain_db > self.gain_db + USER_DB
        told = played_db >= AUDIBLE_DBFS and not user
        if told:
            self._echoes.append((heard_db, cleaned_db, gain_db))
        self._since += 1
        if self._since >= JUDGED_EVERY:
            self._since = 0
            self._judge()
        return told

    def forget(self) -> None:
        """The echo takes another way from now on."""
        self._echoes.clear()
        self.gain_db = self.erle_db = self.left_db = None

    @property
    def audible(self) -> bool | None:
        """Whether the echo stands out of the room's noise; None when it is not known."""
        if len(self._echoes) < LEAST:
            return None
        heard = np.array([echo[0] for echo in self._echoes])
        return bool(np.percentile(heard, 75) > self.floor_db + ABOVE_FLOOR_DB)

    @property
    def expected_db(self) -> float | None:
        """Level that the rest of the echo may have now (dBFS); None while nothing sounds or is known."""
        if self.gain_db is None or self.erle_db is None or not self._recent:
            return None
        played_db = max(self._recent)
        return (
            None if played_db < AUDIBLE_DBFS else max(self.floor_db, played_db + self.gain_db - self.erle_db)
        )

    def _judge(self) -> None:
        self.floor_db = float(np.percentile(self._floor, 5))
        if len(self._echoes) < LEAST:
            return
        echoes = np.array(self._echoes)
        self.gain_db = float(np.median(echoes[:, 2]))
        # Echo that hides in the room's noise shows no loss however well it is removed.
        stands_out = echoes[echoes[:, 0] > self.floor_db + ABOVE_FLOOR_DB]
        if len(stands_out) >= LEAST // 4:
            self.erle_db = float(np.median(stands_out[:, 0] - stands_out[:, 1]))
            self.left_db = float(np.percentile(stands_out[:, 1], 75)) - self.floor_db


def _power(samples: Samples) -> float:
    scaled = samples.astype(np.float32) * np.float32(1 / 32768)
    return float(scaled @ scaled) / max(1, len(samples))


def _db(power: float) -> float:
    return 10 * float(np.log10(max(power, 10 ** (SILENT_DBFS / 10))))
