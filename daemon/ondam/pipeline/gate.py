"""The only door through which audio leaves.

Every block carries its draft. The gate is *open* for one draft at a time, *holding* for drafts that may still
become the answer (their writers wait), and *dropping* for all others, so that nothing of a dropped draft is
heard, however late it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ondam.audio.levels import SpeakerMeter
from ondam.pipeline.ports import Speaker
from ondam.types import DraftId, Nanoseconds, Samples


class Gate:
    """Opened for one draft at a time."""

    def __init__(self, speaker: Speaker, clock: Callable[[], Nanoseconds]) -> None:
        self._speaker = speaker
        self._clock = clock
        self._open: DraftId | None = None
        self._held_back = False
        """The open draft plays at level 0."""
        self._cueing: asyncio.Task[None] | None = None
        self._held: dict[DraftId, asyncio.Event] = {}
        self._ready: dict[DraftId, Callable[[], None]] = {}
        """To be called when a draft that is held has its first samples."""
        """Set when the gate has decided: the draft is open, or gone."""
        self.meter: SpeakerMeter | None = None
        """Told what is let through, while somebody wants to know how loud it is."""
        self._gain = 1.0
        self._dropped_at_ns: Nanoseconds | None = None
        """When sound was dropped or held back that nothing was let through after."""

    def level_db(self) -> float | None:
        """How loud it is what is heard of us now, in dBFS; None without a ``meter``."""
        return None if self.meter is None else self.meter.take(self._speaker, self._clock(), self._gain)

    @property
    def rate_hz(self) -> int:
        """The rate that ``write`` wants."""
        return self._speaker.rate_hz

    def hold(self, draft: DraftId, ready: Callable[[], None] = lambda: None) -> None:
        """Keep this draft's audio waiting until it is opened or dropped. ``ready``: some waits now."""
        self._held[draft] = asyncio.Event()
        self._ready[draft] = ready

    def open(self, draft: DraftId) -> None:
        """Let this draft's audio through, at once."""
        self._open = draft
        self._ready.pop(draft, None)
        if decided := self._held.pop(draft, None):
            decided.set()

    def drop(self, draft: DraftId) -> None:
        """Let nothing of this draft through any more; what is on its way is faded out and dropped."""
        self._ready.pop(draft, None)
        if decided := self._held.pop(draft, None):
            decided.set()
        if self._open != draft:
            return
        self._open = None
        self._held_back = False
        self._gain = 1.0
        now_ns = self._clock()
        if (self._speaker.ends_at_ns() or 0) > now_ns:
            self._dropped_at_ns = now_ns
        # Also when nothing is to come: a write may wait for a speaker that has just been given up.
        self._speaker.flush()

    def end(self, draft: DraftId) -> None:
        """Nothing more of this draft comes. What comes next is not as quiet as this one was at its end."""
        if self._open != draft:
            return
        self._open = None
        self._held_back = False
        self._gain = 1.0
        self._speaker.level(1.0)

    def level(self, draft: DraftId, gain: float) -> None:
        """How loud this draft plays: 1.0 as it was made; 0.0 holds it back, and nothing is lost."""
        if self._open != draft:
            return
        now_ns = self._clock()
        self._held_back = not gain
        self._gain = gain
        if gain:
            self._dropped_at_ns = None
        else:  # what is written while it is held is not in the room
            self._dropped_at_ns = min(self._speaker.ends_at_ns() or 0, now_ns)
        self._speaker.level(gain)

    def cue(self, samples: Samples) -> None:
        """Play a short sound that belongs to no answer, unless one is sounding."""
        if self._cueing is None or self._cueing.done():
            self._cueing = asyncio.create_task(self._cue(samples), name="cue")

    async def _cue(self, samples: Samples) -> None:
        if self._open is None or (self._speaker.ends_at_ns() or 0) <= self._clock():
            first = await self._speaker.write(samples)
            if self.meter is not None:
                self.meter.write(first, samples)

    async def write(self, draft: DraftId, samples: Samples) -> int | None:
        """Queue ``samples`` of ``draft`` once it is open; the number of the first, None when it never is."""
        if (held := self._held.get(draft)) is not None:
            if len(samples) and (ready := self._ready.pop(draft, None)):
                ready()
            await held.wait()
        if self._open != draft or not len(samples):
            return None
        if not self._held_back:
            self._dropped_at_ns = None
        first = await self._speaker.write(samples)
        if self.meter is not None:
            self.meter.write(first, samples)
        if self._open != draft:  # dropped while it waited for room, and with it these samples
            return None
        return first

    def heard_at_ns(self, sample: int) -> Nanoseconds | None:
        """When a sample passed the converter; None when it has not, or never will."""
        return self._speaker.heard_at_ns(sample)

    async def drained(self) -> None:
        """Return when all that was let through has been heard or dropped."""
        await self._speaker.drained()

    def sounding(self, tail_ns: Nanoseconds) -> bool:
        """Whether the room may hold our own voice: a sample is on its way or was heard within ``tail_ns``.

        The speaker is asked what is to come, for what was let through may never be heard: a device that is
        gone drops it. After a drop the tail counts from the drop.
        """
        ends_ns = self._speaker.ends_at_ns() if self._dropped_at_ns is None else self._dropped_at_ns
        return ends_ns is not None and self._clock() < ends_ns + tail_ns
