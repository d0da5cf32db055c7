"""When has the user finished, and when is it worth beginning to answer? Pure: times come as arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Endpointing(Protocol):
    """Decides at every frame of silence after a voice, and whenever a verdict or an answer has come."""

    @property
    def judges(self) -> bool:
        """Whether it wants to know how complete the utterance sounds."""

    def finished(self, silence_ms: float, complete: float | None, *, ready: bool) -> bool:
        """True when the user has finished. ``complete``: the verdict on this pause, None while unknown.

        ``ready``: the answer could be heard at once, or waiting brings it no nearer.
        """


@dataclass(frozen=True, slots=True)
class Silence:
    """Finished after a fixed time without voice."""

    window_ms: float
    judges: bool = False

    def finished(self, silence_ms: float, complete: float | None, *, ready: bool) -> bool:
        """True once the window has passed."""
        return silence_ms >= self.window_ms


@dataclass(frozen=True, slots=True)
class SmartTurn:
    """Finished soon where the utterance sounds complete, late where it does not.

    From ``threshold`` on an utterance counts as complete, after ``complete_ms``. One that is complete for
    ``sure`` ends already after ``sure_ms``, but not before its answer is ready: until something can be
    heard waiting costs nothing, and whoever goes on is not cut off. ``unsure_ms`` bounds the wait for a
    verdict that does not come (a model that hangs).
    """

    threshold: float
    sure: float
    sure_ms: float
    complete_ms: float
    incomplete_ms: float
    unsure_ms: float
    judges: bool = True

    def finished(self, silence_ms: float, complete: float | None, *, ready: bool) -> bool:
        """True once the window that the verdict calls for has passed."""
        if complete is None:
            return silence_ms >= self.unsure_ms
        if complete < self.threshold:
            return silence_ms >= self.incomplete_ms
        return silence_ms >= (self.sure_ms if ready and complete >= self.sure else self.complete_ms)


@dataclass(frozen=True, slots=True)
class Drafting:
    """When an answer is begun before the endpoint, and how long an endpoint can be taken back."""

    after_ms: float
    """Of silence. Infinite: never."""
    most: int
    """Drafts in one turn: each costs a transcription and a prefill."""
    take_back_ms: float
    """A user who goes on within this time of the endpoint, before the answer is heard, had not finished."""
    at_fall: bool = False
    """Also where the voice only seems to fall away."""

    def begins(self, silence_ms: float, made: int) -> bool:
        """Whether to begin a draft at this pause, after ``made`` earlier ones in the turn."""
        return silence_ms >= self.after_ms and made < self.most


NO_DRAFTS = Drafting(after_ms=float("inf"), most=0, take_back_ms=0.0)
