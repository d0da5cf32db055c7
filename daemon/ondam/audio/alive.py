"""Whether sound still moves: what a device delivers is taken, and somebody looks after the devices.

That there is no device, or that it or its server hangs, is told as a fault and healed by waiting; this is
about what no waiting heals.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, runtime_checkable

from ondam.types import Nanoseconds

STUCK_NS = 5_000_000_000
"""What was delivered is taken within milliseconds; a machine that swaps may need a second or two."""

Stuck: TypeAlias = Literal["microphone", "speaker", "conversation"]
"""Nobody looks after the device any more, or nobody takes what the microphone delivers."""


@runtime_checkable
class Delivering(Protocol):
    """A microphone that knows how long its sound waits to be taken."""

    @property
    def backlog_ns(self) -> Nanoseconds:
        """0 while there is none."""


@runtime_checkable
class Kept(Protocol):
    """A device that somebody looks after."""

    @property
    def kept(self) -> bool:
        """Or did, until it was closed."""


def backlog_ns(microphone: object) -> Nanoseconds:
    """How long what ``microphone`` delivered has been waiting to be taken; 0 where it does not know."""
    return microphone.backlog_ns if isinstance(microphone, Delivering) else 0


def kept(device: object) -> bool:
    """Whether somebody looks after ``device``; true of what needs nobody."""
    return not isinstance(device, Kept) or device.kept


def stuck(microphone: object, speaker: object) -> Stuck | None:
    """What no longer moves; None while all is well."""
    if not kept(microphone):
        return "microphone"
    if not kept(speaker):
        return "speaker"
    return "conversation" if backlog_ns(microphone) > STUCK_NS else None
