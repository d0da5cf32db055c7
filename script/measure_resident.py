#!/usr/bin/env python3
"""A resident engine against a process per utterance: the same clips, the same code, interleaved in one run.

    .venv/bin/python script/measure_resident.py [--rounds N] [--json]

Starts the daemon if none runs (engines and models must be there: ``ondam demo`` sees to that). A process per
utterance is the engine's own model class, loaded, asked once and ended; it does no warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from ondam.cli.own_daemon import own_daemon, until_ready
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.config import load
from ondam.control.client import Client
from ondam.control.sound import decode
from ondam.measure.clips import clips
from ondam.places import places

STT_ONCE = """
import sys
from ondam_engines.faster_whisper.serve import Whisper
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import parse
print(Whisper(parse(sys.argv[1:])).transcribe(sys.stdin.buffer.read(), "en", (), Cancel()).text)
"""

TTS_ONCE = """
import sys
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import parse
from ondam_engines.kit.tts import Voice
from ondam_engines.piper.serve import Piper
voice = Voice("joe", "en")
print(len(b"".join(Piper(parse(sys.argv[1:])).synthesize(sys.stdin.read(), voice, Cancel()))))
"""


async def once(code: str, engine: str, model: Path, threads: int, options: str, given: bytes) -> float:
    """Seconds from spawning the process to its end."""
    python = places().environments / engine / "bin" / "python"
    arguments = ["--socket", "/nowhere.sock", "--report", "/nowhere.json", "--model", str(model)]
    arguments += ["--model-id", "m", "--device", "cpu", "--threads", str(threads), "--language", "en"]
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        str(python), "-P", "-c", code, *arguments, "--options", options,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    out, errors = await process.communicate(given)
    if process.returncode or not out.strip():
        sys.exit(errors.decode())
    return time.perf_counter() - begun


async def measure(rounds: int) -> dict[str, Any]:
    """Medians and spread in seconds, for STT and TTS."""
    here = places()
    times: dict[str, list[float]] = {
        name: [] for name in ("stt_resident", "stt_process", "tts_resident", "tts_process")
    }
    async with own_daemon(here, {"language": "en"}), Client(here.control_socket) as client:
        await until_ready(client)
        status = await client.status()
        threads = status["conditions"]["threads"]
        assert isinstance(threads, dict)
        recognizer = WyomingRecognizer(f"unix://{here.engine_socket('faster_whisper')}")
        voice = WyomingSynthesizer(f"unix://{here.engine_socket('piper')}")
        options = {name: json.dumps(_options(name)) for name in ("faster_whisper", "piper")}
        for _ in range(rounds):
            for clip in clips("en"):
                audio = decode(clip.wav, 10**7)
                begun = time.perf_counter()
                await recognizer.transcribe(audio, "en")
                times["stt_resident"].append(time.perf_counter() - begun)
                begun = time.perf_counter()
                async for _piece in voice.synthesize(clip.words, "en"):
                    pass
                times["tts_resident"].append(time.perf_counter() - begun)
                times["stt_process"].append(
                    await once(STT_ONCE, "faster_whisper", here.models / "whisper-base",
                               threads["faster_whisper"], options["faster_whisper"], audio.samples.tobytes())
                )  # fmt: skip
                times["tts_process"].append(
                    await once(TTS_ONCE, "piper", here.models / "joe" / "en_US-joe-medium.onnx",
                               threads["piper"], options["piper"], clip.words.encode())
                )  # fmt: skip
    figures = {
        name: {
            "median_s": round(statistics.median(v), 3),
            "min_s": round(min(v), 3),
            "max_s": round(max(v), 3),
        }
        for name, v in times.items()
    }
    ratios = {
        stage: round(
            statistics.median(
                p / r for p, r in zip(times[f"{stage}_process"], times[f"{stage}_resident"], strict=True)
            ),
            2,
        )
        for stage in ("stt", "tts")
    }
    conditions = {"n": rounds * len(clips("en")), "cores": os.cpu_count(), "machine": platform.machine(),
                  "load_average": os.getloadavg()[0], "threads": threads}  # fmt: skip
    return {"figures": figures, "ratio_of_pairs_median": ratios, "conditions": conditions}


def _options(engine: str) -> dict[str, Any]:
    from ondam.supervisor.manifest import engine_roots, find_engines

    return {
        **find_engines(engine_roots(places().user_engines))[engine].manifest.options,
        **load(None).engines.get(engine, {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result = asyncio.run(measure(given.rounds))
    if given.json:
        print(json.dumps(result, indent=2))
        return
    for name, figure in result["figures"].items():
        print(f"{name:14} median {figure['median_s']:.3f} s   {figure['min_s']:.3f} to {figure['max_s']:.3f}")
    for stage, ratio in result["ratio_of_pairs_median"].items():
        print(f"{stage}: a process per utterance takes {ratio} times as long (median of pairs)")
    print(result["conditions"])


if __name__ == "__main__":
    main()
