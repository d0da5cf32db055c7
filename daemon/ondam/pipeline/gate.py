"""The only door through which audio leaves.

Every block carries its turn. The gate lets through the turn that is open and discards all others, so that
nothing of a cancelled turn is heard, however late it comes.
"""

from __future__ import annotations

from collections.abc import Callable

from ondam.pipeline.ports import Speaker
from ondam.types import Nanoseconds, Samples, TurnId


class Gate:
    """Opened for one turn at a time."""

    def __init__(self, speaker: Speaker, clock: Callable[[], Nanoseconds]) -> None:
        self._speaker = speaker
        self._clock = clock
        self._open: TurnId | None = None
        self._last: int | None = None
        """Number of the last sample let through and not dropped."""
        self._dropped_at_ns: Nanoseconds | None = None

    @property
    def rate_hz(self) -> int:
        """The rate that ``write`` wants."""
        return self._speaker.rate_hz

    def open(self, turn: TurnId) -> None:
        """Let this turn's audio through."""
        self._open = turn

    def drop(self, turn: TurnId) -> None:
        """Let nothing of this turn through any more; what is on its way is faded out and dropped."""
        if self._open != turn:
            return
        self._open = None
        if self._last is not None and self._speaker.heard_at_ns(self._last) is None:
            self._speaker.flush()
            self._last = None
            self._dropped_at_ns = self._clock()

    async def write(self, turn: TurnId, samples: Samples) -> int | None:
        """Queue ``samples`` of ``turn``; the number of the first, or None when the turn is not open."""
        if self._open != turn or not len(samples):
            return None
        first = await self._speaker.write(samples)
        if self._open != turn:  # dropped while it waited for room, and with it these samples
            return None
        self._last = first + len(samples) - 1
        return first

    def heard_at_ns(self, sample: int) -> Nanoseconds | None:
        """When a sample passed the converter; None when it has not, or never will."""
        return self._speaker.heard_at_ns(sample)

    async def drained(self) -> None:
        """Return when all that was let through has been heard or dropped."""
        await self._speaker.drained()

    def sounding(self, tail_ns: Nanoseconds) -> bool:
        """Whether the room may hold our own voice: a sample is on its way or was heard within ``tail_ns``."""
        now = self._clock()
        if self._last is not None:
            heard = self._speaker.heard_at_ns(self._last)
            if heard is None or now - heard < tail_ns:
                return True
            self._last = None
        return self._dropped_at_ns is not None and now - self._dropped_at_ns < tail_ns
