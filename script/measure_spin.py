#!/usr/bin/env python3
"""How long OpenMP threads spin at a barrier, and what that costs on a machine that others use too.

    .venv/bin/python script/measure_spin.py [--engine llama_server] [--rounds 10]

One process of the engine for each value, all resident, asked in turn in random order; beside them nothing,
one or two programs that only compute. Then the voice: its first sound while the model writes, as in a turn.
Prints Markdown. Run it on a quiet machine; the load is part of the result.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from pathlib import Path

from ondam.app import installed_engines
from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.errors import EngineError
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.ports import Message, SpeechStart, Token
from ondam.places import Places, places

VALUES: dict[str, dict[str, str]] = {
    "as the runtime has it": {},
    "OMP_WAIT_POLICY=PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
    **{f"GOMP_SPINCOUNT={count}": {"GOMP_SPINCOUNT": str(count)} for count in (500, 2000, 10_000, 50_000)},
}
CLAUSE = 12
"""Tokens of about a first clause."""
ANSWER = 64
SENTENCE = "The largest planet in the solar system is Jupiter."
LOADED_S = 120
BUSY = "while True: pass"


@contextmanager
def engine(here: Places, name: str, model: Path, folder: Path, env: dict[str, str]) -> Iterator[str]:
    """The address of a process of its own, answering."""
    found = installed_engines(here)[name]
    folder.mkdir()
    given = {
        "python": str(here.environments / name / "bin" / "python"),
        "socket": str(folder / "socket"),
        "report": str(folder / "report.json"),
        "model": str(model),
        "model_id": "measured",
        "device": "cpu",
        "threads": "2",
        "language": "en",
        "options": json.dumps(found.manifest.options),
    }
    command = found.manifest.launch.command
    for key, value in given.items():
        command = [part.replace(f"{{{key}}}", value) for part in command]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OMP", "GOMP"))}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            env={**inherited, "OMP_NUM_THREADS": "2", **env},
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + LOADED_S
        while not (folder / "report.json").exists():
            if process.poll() is not None or time.monotonic() > until:
                sys.exit((folder / "log").read_text()[-2000:])
            time.sleep(0.1)
        yield f"unix://{folder / 'socket'}"
    finally:
        process.kill()
        process.wait()


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many programs that only compute."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


async def clause_ms(address: str, number: int) -> float:
    """From the request to the twelfth token, as the client sees it; a prompt that no cache knows."""
    asked: list[Message] = [{"role": "user", "content": f"{random.random()} Tell me about water ({number})."}]
    began, tokens = time.monotonic(), 0
    async with aclosing(OpenAIResponder(address).respond(asked, max_tokens=CLAUSE)) as stream:
        async for piece in stream:
            tokens += isinstance(piece, Token)
    return (time.monotonic() - began) * 1e3 * CLAUSE / max(1, tokens)


async def sound_ms(model: str, voice: str, number: int) -> float:
    """From the request to the voice's first samples, asked when the model's twelfth token has come."""
    asked: list[Message] = [{"role": "user", "content": f"{random.random()} Tell me about water ({number})."}]
    tokens = itertools.count()
    clause = asyncio.Event()

    async def write() -> None:
        async with aclosing(OpenAIResponder(model).respond(asked, max_tokens=ANSWER)) as stream:
            async for piece in stream:
                if isinstance(piece, Token) and next(tokens) == CLAUSE:
                    clause.set()
        clause.set()

    writing = asyncio.create_task(write())
    await clause.wait()
    began = time.monotonic()
    took = 0.0
    async with aclosing(WyomingSynthesizer(voice).synthesize(SENTENCE, "en")) as pieces:
        async for piece in pieces:
            if not isinstance(piece, SpeechStart) and not took:
                took = (time.monotonic() - began) * 1e3
    await writing
    return took


async def measured(models: dict[str, str], voice: str, rounds: int) -> None:
    """Prints a row for each value and each company."""
    print("| beside it | value | first 12 tokens, ms: median (max) | the voice's first sound meanwhile, ms |")
    print("|---|---|---:|---:|")
    for others in (0, 1, 2):
        clauses: dict[str, list[float]] = {value: [] for value in models}
        sounds: dict[str, list[float]] = {value: [] for value in models}
        with busy(others):
            for number in range(rounds):
                for value in random.sample(list(models), len(models)):
                    try:
                        clauses[value].append(await clause_ms(models[value], number))
                        sounds[value].append(await sound_ms(models[value], voice, number))
                    except EngineError as error:
                        print(f"{value}: {error}", file=sys.stderr)
                    await asyncio.sleep(0.1)
        for value in models:
            told = (
                f"{statistics.median(times):.0f} ({max(times):.0f})" if times else "–"
                for times in (clauses[value], sounds[value])
            )
            beside = "nothing" if not others else f"{others} busy"
            print(f"| {beside} | `{value}` | {' | '.join(told)} |", flush=True)
    print(f"\n{rounds} rounds, load {os.getloadavg()[0]:.2f} at the end.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", default="llama_server", choices=("llama_server", "llama_cpp"))
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # a time limit ends the engines as well
    here = places()
    catalog, store = Catalog.of(here), Store(here.models)
    with tempfile.TemporaryDirectory(prefix="ondam-spin-") as folder, ExitStack() as running:
        weights = store.path(catalog.card("smollm2-135m-instruct"))
        models = {
            value: running.enter_context(engine(here, given.engine, weights, Path(folder) / str(n), env))
            for n, (value, env) in enumerate(VALUES.items())
        }
        joe = store.path(catalog.card("joe"))
        voice = running.enter_context(engine(here, "piper", joe, Path(folder) / "voice", {}))
        asyncio.run(measured(models, voice, given.rounds))


if __name__ == "__main__":
    main()
