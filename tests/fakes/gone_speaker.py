"""A speaker whose device is gone: it takes what is written and plays none of it."""

from __future__ import annotations

from collections.abc import Sequence

from ondam.pipeline.ports import Reference
from ondam.types import Nanoseconds, Samples


class GoneSpeaker:
    """See ``ports.Speaker``."""

    name = "gone"
    rate_hz = 48_000
    underruns = 0

    def __init__(self) -> None:
        self._written = 0

    def wake(self) -> None:
        pass

    async def write(self, samples: Samples) -> int:
        first = self._written
        self._written += len(samples)
        return first

    def level(self, gain: float) -> None:
        pass

    def flush(self) -> None:
        pass

    def reference(self) -> Sequence[Reference]:
        return ()

    async def drained(self) -> None:
        pass

    def heard_at_ns(self, sample: int) -> Nanoseconds | None:
        return None

    def ends_at_ns(self) -> Nanoseconds | None:
        return None

    async def close(self) -> None:
        pass
