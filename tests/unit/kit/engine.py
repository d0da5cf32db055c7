"""A whole engine with a scripted model, run as a process. Told by its options when to be slow, or to fail."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ondam_engines.kit import report
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.server import run
from ondam_engines.kit.tts import TtsService, Voice


class Slow:
    """Says one sample after ``compute_s`` of not listening to anybody."""

    name = "slow"
    version = "1"
    voices = (Voice("slow", "en"),)
    rate_hz = 16_000

    def __init__(self, compute_s: float) -> None:
        self._compute_s = compute_s

    def synthesize(self, text: str, voice: Voice, cancel: Cancel) -> Iterator[bytes]:
        """As the class says."""
        time.sleep(self._compute_s)
        yield b"\1\0"


def load(launch: Launch) -> TtsService:
    """After ``load_s``; a file beside the report says that it has begun."""
    launch.report.with_suffix(".loading").touch()
    time.sleep(launch.options.get("load_s", 0))
    if launch.options.get("broken"):
        raise RuntimeError("no weights")
    report.Report("slow", "cpu", launch.threads).write(launch.report)
    return TtsService(Slow(launch.options.get("compute_s", 0)), launch.language)


if __name__ == "__main__":
    run(parse(), load)
