"""How the audio layer tells that a device failed, and that it is well again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from ondam.types import Nanoseconds

Clock: TypeAlias = Callable[[], Nanoseconds]
"""``time.monotonic_ns``, or a test's."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""``asyncio.sleep``, or a test's. Seconds."""


LOST = frozenset(
    {
        "microphone_missing",
        "microphone_lost",
        "microphone_stalled",
        "microphone_moved",
        "speaker_missing",
        "speaker_lost",
        "speaker_stalled",
        "speaker_moved",
        "device_unusable",
        "device_unlisted",
        "portaudio_missing",
        "portaudio_failed",
    }
)
"""Codes after which nothing is heard from the device, or through it, until the fault is over."""

NOTICES = frozenset({"microphone_silent"})
"""Codes that only tell a person something: the device works on."""


class OnFault(Protocol):
    """Called on the event loop's thread, once per change."""

    def __call__(self, code: str | None, /, **facts: object) -> None:
        """``code`` names an entry of ``messages/audio.toml`` that ``facts`` fill; None: all is well again."""


def log_fault(code: str | None, /, **facts: object) -> None:
    """What a caller without a listener gets: a line in the log."""
    logging.getLogger("ondam.audio").warning("fault: %s %s", code, facts)
