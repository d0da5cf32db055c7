"""espeak-ng: the last-resort voice. Robotic, small, quick, Korean and English, and nothing to download."""

from __future__ import annotations

import importlib.metadata
import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import espeakng_loader

from ondam_engines.espeak.synthesizer import Espeak
from ondam_engines.kit import report
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.server import run
from ondam_engines.kit.tts import TtsService, Voice

WORDS_PER_MINUTE = 175
"""espeak-ng's own pace."""

WARM_UP = {"ko": "안녕하세요.", "en": "Hello."}


class EspeakVoice:
    """espeak-ng, initialised and warm."""

    name = "espeak"
    version = importlib.metadata.version("espeakng-loader")
    # The names are espeak-ng's.
    voices = (Voice("ko", "ko"), Voice("en-us", "en"))

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        library, data = Path(espeakng_loader.get_library_path()), Path(espeakng_loader.get_data_path())
        self._espeak = Espeak(library, data)
        self._pace = round(WORDS_PER_MINUTE * launch.options["speed"])
        self.rate_hz = self._espeak.rate_hz
        # espeak_Synth returns when all is said and hands out samples by a callback in between: it runs on a
        # thread of its own, so that what it hands out leaves at once.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="espeak")

    def warm_up(self) -> None:
        """Read both languages' data."""
        for voice in self.voices:
            for _ in self.synthesize(WARM_UP[voice.language], voice, Cancel()):
                pass

    def synthesize(self, text: str, voice: Voice, cancel: Cancel) -> Iterator[bytes]:
        """Pieces of at most 60 ms; stops within one."""
        pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        left = False

        def hear(samples: bytes) -> bool:
            pieces.put(samples)
            return not (left or cancel.cancelled)

        def say() -> None:
            try:
                self._espeak.choose(voice.name, self._pace)
                self._espeak.say(text, hear)
            finally:
                pieces.put(None)

        said = self._thread.submit(say)
        try:
            while (samples := pieces.get()) is not None:
                yield samples
        finally:
            left = True
        said.result()

    def report(self) -> report.Report:
        """What was got."""
        return report.Report(
            engine="espeak",
            device="cpu",
            threads=1,
            versions=report.versions(["espeakng-loader", "wyoming"]) | {"espeak-ng": self._espeak.version},
        )


def load(launch: Launch) -> TtsService:
    """A service that is ready to answer."""
    model = EspeakVoice(launch)
    model.warm_up()
    model.report().write(launch.report)
    return TtsService(model, launch.language)


if __name__ == "__main__":
    run(parse(), load)
