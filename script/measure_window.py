"""What Whisper's window costs and saves, on seven recordings of people; prints a Markdown table.

    .venv/bin/python script/measure_window.py
    .venv/bin/python script/measure_window.py --pads 1,3,30 --rounds 9 --threads 2

Starts one faster_whisper engine for each padding (seconds after the speech; 30 = Whisper's own fixed
window) and asks them in turn, in a new order each round, one request at a time. Needs what ``ondam engines
build faster_whisper`` and ``ondam models add whisper-base`` bring. Run it on a quiet machine; what it says of
the load is part of the result.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jiwer
import numpy as np
import psutil
from tests.fakes.human_clips import Clip, human_clips

from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.errors import EngineError
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.places import Places, places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.environment import installed
from ondam.supervisor.family import Identity
from ondam.supervisor.launch import launch
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines
from ondam.types import HEARING_RATE_HZ, Audio

ENGINE = "faster_whisper"
MODEL = "whisper-base"

READY_S = 60.0

SPELLINGS = {"mr": "mister"}
"""Where the recognizer's spelling and the corpus' are the same word."""

GROUPS = {"3 to 7 s": (0.0, 8.0), "11 s": (8.0, 30.0), "44 s": (30.0, 1e9)}
"""Column to the lengths of the clips in it."""


@dataclass(frozen=True)
class Serving:
    """A running engine."""

    recognizer: WyomingRecognizer
    process: psutil.Process

    def cpu_s(self) -> float:
        """Processor time used so far; hardly touched by what else runs, unlike the time on the clock."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


def words(text: str) -> str:
    """What counts when words are compared: letters, hyphens as spaces, one spelling."""
    plain = re.sub(r"[^a-z' ]", "", text.lower().replace("-", " "))
    return " ".join(SPELLINGS.get(word, word) for word in plain.split())


@contextmanager
def serving(
    engine: EngineFolder, model: Path, here: Places, pad_s: float, args: argparse.Namespace
) -> Iterator[Serving]:
    """The engine with this padding."""
    options = {**engine.manifest.options, "window_pad_s": pad_s, **args.options}
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        runtime = Path(folder)
        planned = PlannedEngine(ENGINE, "stt", MODEL, model, None, "cpu", args.threads, "en", options)
        started = launch(
            planned,
            manifest=engine.manifest,
            home=installed(engine, here),
            places=Places(here.config, here.data, runtime, runtime),
            daemon=Identity.of(os.getpid()),
            environ=os.environ,
        )
        log = (runtime / "log").open("wb")
        process = subprocess.Popen(
            started.command,
            env=dict(started.env),
            cwd=runtime,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            socket = Places(here.config, here.data, runtime, runtime).engine_socket(ENGINE)
            deadline = time.monotonic() + READY_S
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit((runtime / "log").read_text("utf-8", "replace"))
                time.sleep(0.05)
            yield Serving(WyomingRecognizer(f"unix://{socket}", timeout_s=120), psutil.Process(process.pid))
        finally:
            process.terminate()
            process.wait()
            log.close()


def cut_short(clip: Clip) -> Audio:
    """The clip up to its last voiced sample (-40 dB) and 100 ms, as an endpoint would cut it."""
    loud = np.flatnonzero(
        np.abs(clip.audio.samples.astype(np.int32)) > np.abs(clip.audio.samples).max() / 100
    )
    return Audio(clip.audio.samples[: int(loud[-1]) + HEARING_RATE_HZ // 10], HEARING_RATE_HZ)


async def measure(engines: dict[float, Serving], clips: Sequence[Clip], rounds: int) -> None:
    """Ask, and print the table."""
    took_ms: dict[tuple[float, str], list[float]] = defaultdict(list)
    computed_ms: dict[tuple[float, str], list[float]] = defaultdict(list)
    heard: dict[tuple[float, str], str] = {}
    audio = {clip.name: cut_short(clip) for clip in clips}
    order = random.Random(1)
    for done in range(rounds):
        for clip in order.sample(clips, len(clips)):
            for pad_s in order.sample(sorted(engines), len(engines)):
                before_s = engines[pad_s].cpu_s()
                transcript = await engines[pad_s].recognizer.transcribe(audio[clip.name], "en")
                computed_ms[pad_s, clip.name].append(1e3 * (engines[pad_s].cpu_s() - before_s))
                took_ms[pad_s, clip.name].append(transcript.engine_ms or 0.0)
                heard[pad_s, clip.name] = transcript.text
        print(f"round {done + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    columns = {
        name: [clip for clip in clips if low <= audio[clip.name].seconds < high]
        for name, (low, high) in GROUPS.items()
    }
    print(f"| window | WER | wrong words | {' | '.join(f'{name}: ms / CPU ms' for name in columns)} |")
    print(f"|---|---|---|{'---|' * len(columns)}")
    for pad_s in sorted(engines):
        wrong = jiwer.process_words(
            [words(clip.text) for clip in clips], [words(heard[pad_s, clip.name]) for clip in clips]
        )
        errors = wrong.substitutions + wrong.deletions + wrong.insertions
        # Of each clip the median over the rounds, and of the processor's time, which is counted in steps of
        # 10 ms, the mean; of a column the mean over its clips.
        cells = [
            f"{statistics.mean(statistics.median(took_ms[pad_s, clip.name]) for clip in column):.0f}"
            f" / {statistics.mean(statistics.mean(computed_ms[pad_s, clip.name]) for clip in column):.0f}"
            for column in columns.values()
        ]
        name = "30 s, fixed" if pad_s >= 30 else f"speech + {pad_s:g} s"
        print(f"| {name} | {wrong.wer:.3f} | {errors} | {' | '.join(cells)} |")
    print()
    for clip in clips:
        texts: dict[str, list[str]] = defaultdict(list)
        for pad_s in sorted(engines):
            texts[words(heard[pad_s, clip.name])].append(f"{pad_s:g}")
        for text, pads in texts.items():
            if text != words(clip.text):
                print(f"- {clip.name} at {', '.join(pads)}: {text}")


def conditions(engine: EngineFolder, args: argparse.Namespace) -> str:
    """What the numbers hold for."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, {MODEL} "
        f"{engine.manifest.options['compute_type']}, beam {engine.manifest.options['beam_size']}, "
        f"{args.threads} thread(s), {args.rounds} rounds, load before {os.getloadavg()[0]:.1f}"
    )


def _lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8").splitlines() if Path(path).exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pads", default="1,2,3,5,30", help="paddings in seconds, by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--beam", type=int, help="beam size, instead of the manifest's")
    args = parser.parse_args()
    args.options = {} if args.beam is None else {"beam_size": args.beam}
    here = places()
    try:
        engine = find_engines(engine_roots(here.user_engines))[ENGINE]
        model = Store(here.models).path(Catalog.of(here).cards[MODEL])
        clips = human_clips()
        print(conditions(engine, args), end="\n\n")
        with ExitStack() as stack:
            engines = {
                pad_s: stack.enter_context(serving(engine, model, here, pad_s, args))
                for pad_s in map(float, args.pads.split(","))
            }
            asyncio.run(measure(engines, clips, args.rounds))
    except EngineError as error:
        message = error.message()
        sys.exit(f"{message.text}\n{message.next}")


if __name__ == "__main__":
    main()
