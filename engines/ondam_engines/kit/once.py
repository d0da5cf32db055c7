"""One job in a process of its own: the way without a resident engine, to be measured against it.

    python -m ondam_engines.kit.once MODULE:MODEL [the engine's own arguments]

Reads the job from stdin (stt: samples, mono, 16-bit little-endian, at the model's rate; tts: text in UTF-8),
and prints one line of JSON: ``text`` or ``audio_s``, ``load_ms`` (the model alone, without Python's start and
the imports) and ``engine_ms``. The same code as in the engine, without a warm-up, a report and a socket.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.stt import SAMPLE_BYTES


def once(model_of: Callable[[Launch], Any], launch: Launch, given: bytes) -> dict[str, object]:
    """What ``main`` prints. ``model_of`` makes an SttModel or a TtsModel; ValueError for a language that the
    voice does not know."""
    began_ns = time.monotonic_ns()
    model = model_of(launch)
    loaded_ns = time.monotonic_ns()
    if hasattr(model, "transcribe"):
        done: dict[str, object] = {"text": model.transcribe(given, launch.language, (), Cancel()).text}
    else:
        known = [voice for voice in model.voices if voice.language == launch.language]
        if not known:
            raise ValueError(f"no voice for {launch.language}")
        sound = model.synthesize(given.decode(), known[0], Cancel())
        done = {"audio_s": sum(map(len, sound)) / SAMPLE_BYTES / model.rate_hz}
    ended_ns = time.monotonic_ns()
    return done | {"load_ms": (loaded_ns - began_ns) / 1e6, "engine_ms": (ended_ns - loaded_ns) / 1e6}


def main(argv: Sequence[str]) -> None:
    """One job from stdin to stdout."""
    module, _, name = argv[0].partition(":")
    model_of = getattr(import_module(module), name)
    print(json.dumps(once(model_of, parse(argv[1:]), sys.stdin.buffer.read())))


if __name__ == "__main__":
    main(sys.argv[1:])
