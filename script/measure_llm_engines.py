"""Compares the two language engines with one GGUF in one interleaved run; prints a Markdown table, or JSON.

    .venv/bin/python script/measure_llm_engines.py --rounds 9
    .venv/bin/python script/measure_llm_engines.py --batches 64,128,256,512   (llama_server alone)
    .venv/bin/python script/measure_llm_engines.py --flash                    (llama_server alone)

Environments are those that ``ondam engines build`` made, or any interpreter: ``--python-a`` (llama_server),
``--python-b`` (llama_cpp). Run it on a quiet machine; what it says of the load is part of the result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import signal
import statistics
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from ondam.places import places

ENGINES = Path(__file__).resolve().parent.parent / "engines"
MODEL = "smollm2-135m-instruct"

DECODED = 48
"""Tokens of an answer whose speed counts."""

PREFILL_HEAD_START_S = 0.25
"""How long a cold prefill runs before its client leaves."""

LONG = 590
"""Words in front of the long question; the prompt has about 600 tokens then."""

CACHED = (0, 100, 300, 600, 900)
"""Words in front of a question that were computed before it is asked, for ``--flash``."""

WORDS = ("time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school")

ROWS = {
    "ttft_short_cold": "first token, ~50 tokens, cold, ms",
    "ttft_short_cached": "first token, ~50 tokens, prefix cached, ms",
    "ttft_long_cold": "first token, ~600 tokens, cold, ms",
    "ttft_long_cached": "first token, ~600 tokens, prefix cached, ms",
    "prefill_tokens_s": "prefill of the ~600 tokens, tokens/s",
    "decode_tokens_s": "decode, tokens/s",
    "after_decode_cancel": "next first token after leaving in decode, ms",
    "after_prefill_cancel": "next first token after leaving in a cold prefill, ms",
    "after_prefill_cancel_progress": "the same, asked with return_progress, ms",
    "both_first_tokens": "two at once: later first token, ms",
    "both_whole": "two at once: both whole, ms",
    **{f"question_{n}": f"first token of a question after ~{n + 35} cached tokens, ms" for n in CACHED},
    **{f"decode_{n}": "decode there, tokens/s" for n in CACHED},
    "rss_mib": "resident memory at the end, MiB",
}


@dataclass
class Engine:
    label: str
    name: str
    python: str
    options: dict[str, Any]
    env: dict[str, str]
    socket: Path
    report: Path
    process: asyncio.subprocess.Process | None = None
    started_s: float = 0.0
    seen: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def rss_mib(self) -> float:
        assert self.process
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


@dataclass
class Answer:
    first_ms: float = 0.0
    whole_ms: float = 0.0
    tokens: int = 0
    finish: str | None = None
    timings: dict[str, float] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)


def chat(system: str, question: str, max_tokens: int, **more: Any) -> dict[str, Any]:
    return {
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": question}],
        "max_tokens": max_tokens,
        "temperature": 0,
        # llama-cpp-python's server would take 1.1; the two must do the same work.
        "repeat_penalty": 1.0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "timings_per_token": True,
        "chat_template_kwargs": {"enable_thinking": False},
    } | more


@asynccontextmanager
async def asked(engine: Engine, body: dict[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
    """A connection of its own for each request: llama.cpp drops the fourth stream on a kept-alive one."""
    connector = aiohttp.UnixConnector(str(engine.socket), force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post("http://x/v1/chat/completions", json=body) as response,
    ):
        if response.status != 200:
            raise RuntimeError(f"{engine.label}: {response.status} {await response.text()}")
        yield response


async def pieces(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in response.content:
        if line.startswith(b"data: {"):
            piece = json.loads(line[6:])
            if "error" in piece:
                raise RuntimeError(piece["error"])
            yield piece


def text_of(piece: dict[str, Any]) -> str:
    return (piece["choices"][0]["delta"].get("content") or "") if piece["choices"] else ""


async def answer(engine: Engine, body: dict[str, Any]) -> Answer:
    got, began = Answer(), time.perf_counter()
    async with asked(engine, body) as response:
        async for piece in pieces(response):
            now = (time.perf_counter() - began) * 1000
            if text_of(piece):
                got.tokens += 1
                got.first_ms = got.first_ms or now
                got.whole_ms = now
            if piece["choices"]:
                got.finish = piece["choices"][0]["finish_reason"] or got.finish
            got.timings = piece.get("timings", got.timings)
            got.usage = piece.get("usage") or got.usage
    return got


async def leave_in_decode(engine: Engine, body: dict[str, Any]) -> None:
    seen = 0
    async with asked(engine, body) as response:
        async for piece in pieces(response):
            seen += bool(text_of(piece))
            if seen >= 5:
                response.close()
                return


async def leave_in_prefill(engine: Engine, body: dict[str, Any]) -> None:
    async def go() -> None:
        async with asked(engine, body) as response:
            async for piece in pieces(response):
                if text_of(piece):
                    raise RuntimeError("the prefill was over before its client left")

    task = asyncio.create_task(go())
    await asyncio.sleep(PREFILL_HEAD_START_S)
    if task.done():
        task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def prefix(dice: random.Random, words: int) -> str:
    """A system prompt that no cache knows: its first word is new, and so is all that follows."""
    return f"{dice.randrange(10**9)} " + " ".join(dice.choice(WORDS) for _ in range(words))


async def prefill_round(engine: Engine, dice: random.Random) -> None:
    """What depends on the size of a batch."""
    seen, short = engine.seen, prefix(dice, 12)
    cold = await answer(engine, chat(prefix(dice, LONG), "What is it about?", 4))
    seen["ttft_long_cold"].append(cold.first_ms)
    seen["prefill_tokens_s"].append(cold.timings["prompt_n"] / cold.timings["prompt_ms"] * 1000)
    seen["prompt_tokens"].append(cold.usage["prompt_tokens"])
    await answer(engine, chat(short, "Who?", 4))
    for row, more in (
        ("after_prefill_cancel", {}),
        ("after_prefill_cancel_progress", {"return_progress": True}),
    ):
        await leave_in_prefill(engine, chat(prefix(dice, LONG), "What is it about?", 4, **more))
        seen[row].append((await answer(engine, chat(short, "Who else?", 4))).first_ms)


async def question_round(engine: Engine, dice: random.Random) -> None:
    """What depends on how attention is computed: questions after more and more that is cached."""
    for words in CACHED:
        system = prefix(dice, words)
        cold = await answer(engine, chat(system, "What is it about?", 4))
        if words == CACHED[-1]:
            engine.seen["prefill_tokens_s"].append(
                cold.timings["prompt_n"] / cold.timings["prompt_ms"] * 1000
            )
        asked = f"Which {dice.choice(WORDS)} comes first, and which one last?"
        got = await answer(engine, chat(system, asked, DECODED, ignore_eos=True))
        engine.seen[f"question_{words}"].append(got.timings["prompt_ms"])
        engine.seen[f"decode_{words}"].append(got.timings["predicted_n"] / got.timings["predicted_ms"] * 1000)
        engine.seen["prompt_tokens"].append(got.timings["prompt_n"])


async def whole_round(engine: Engine, dice: random.Random) -> None:
    """Every row of the table."""
    await prefill_round(engine, dice)
    seen = engine.seen
    short, long = prefix(dice, 12), prefix(dice, LONG)
    for name, system in (("short", short), ("long", long)):
        cold = await answer(engine, chat(system, "What is it about?", 4))
        seen[f"ttft_{name}_cold"].append(cold.first_ms)
        cached = await answer(engine, chat(system, "And which word comes first?", 4))
        seen[f"ttft_{name}_cached"].append(cached.first_ms)

    told = await answer(engine, chat(short, "Tell me a story.", DECODED, ignore_eos=True))
    seen["decode_tokens_s"].append((told.tokens - 1) / (told.whole_ms - told.first_ms) * 1000)

    await leave_in_decode(engine, chat(short, "Tell me a long story.", 400))
    seen["after_decode_cancel"].append((await answer(engine, chat(short, "Who?", 4))).first_ms)

    began = time.perf_counter()
    both = await asyncio.gather(
        answer(engine, chat(short, "Tell me a story.", DECODED)),
        answer(engine, chat(prefix(dice, 12), "Tell me another story.", DECODED)),
    )
    seen["both_whole"].append((time.perf_counter() - began) * 1000)
    seen["both_first_tokens"].append(max(a.first_ms for a in both))
    if any(a.finish not in {"length", "stop"} for a in both):
        raise RuntimeError(f"{engine.label}: of two answers at once one was cut: {both}")


async def start(engine: Engine, model: Path, threads: int) -> None:
    began = time.perf_counter()
    command = [engine.python, "-P", "-m", f"ondam_engines.{engine.name}.serve"]
    arguments = {
        "socket": engine.socket,
        "report": engine.report,
        "model": model,
        "model-id": MODEL,
        "threads": threads,
        "options": json.dumps(engine.options),
    }
    for name, value in arguments.items():
        command += [f"--{name}", str(value)]
    # The environment's own copy of the engine is found first where there is one.
    environ = os.environ | engine.env | {"HF_HUB_OFFLINE": "1"}
    probe = await asyncio.create_subprocess_exec(
        engine.python, "-P", "-c", "import ondam_engines", stderr=asyncio.subprocess.DEVNULL
    )
    if await probe.wait():
        environ["PYTHONPATH"] = str(ENGINES)
    log = os.open(
        Path(tempfile.gettempdir(), f"{engine.report.name}.log"), os.O_CREAT | os.O_TRUNC | os.O_WRONLY
    )
    engine.process = await asyncio.create_subprocess_exec(*command, env=environ, stdout=log, stderr=log)
    os.close(log)
    while not engine.socket.exists():
        if engine.process.returncode is not None:
            sys.exit(f"{engine.label} ended, see {tempfile.gettempdir()}/{engine.report.name}.log")
        await asyncio.sleep(0.02)
    engine.started_s = time.perf_counter() - began


async def stop(engine: Engine) -> None:
    if engine.process and engine.process.returncode is None:
        engine.process.send_signal(signal.SIGTERM)
        await engine.process.wait()


def table(engines: list[Engine]) -> str:
    lines = ["| median (min-max) | " + " | ".join(e.label for e in engines) + " |"]
    lines.append("|---|" + "---:|" * len(engines))
    for row, title in ROWS.items():
        if not all(e.seen[row] for e in engines):
            continue
        cells = []
        for e in engines:
            values = e.seen[row]
            cells.append(f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def engines_of(arguments: argparse.Namespace, folder: Path) -> list[Engine]:
    def engine(label: str, name: str, python: str, **options: Any) -> Engine:
        manifest = tomllib.loads((ENGINES / "ondam_engines" / name / "engine.toml").read_text("utf-8"))
        at = folder / label.replace(" ", "-")
        python = python or str(places().environments / name / "bin" / "python")
        options = manifest["options"] | options
        return Engine(
            label, name, python, options, manifest["launch"].get("env", {}), at.with_suffix(".sock"), at
        )

    if arguments.batches:
        sizes = [int(size) for size in arguments.batches.split(",")]
        return [engine(f"batch {n}", "llama_server", arguments.python_a, batch=n) for n in sizes]
    if arguments.flash:
        return [
            engine(
                f"flash attention {'on' if on else 'off'}",
                "llama_server",
                arguments.python_a,
                flash_attention=on,
            )
            for on in (True, False)
        ]
    return [
        engine("llama_server", "llama_server", arguments.python_a),
        engine("llama_cpp", "llama_cpp", arguments.python_b),
    ]


async def run(arguments: argparse.Namespace) -> None:
    model = arguments.model or next((places().models / MODEL).glob("*.gguf"))
    dice = random.Random(arguments.seed)
    kind = question_round if arguments.flash else prefill_round if arguments.batches else whole_round
    with tempfile.TemporaryDirectory() as folder:
        engines = engines_of(arguments, Path(folder))
        load = [os.getloadavg()[0]]
        try:
            for engine in engines if not arguments.flash else []:
                await start(engine, model, arguments.threads)
            for number in range(-1, arguments.rounds):
                print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
                for engine in dice.sample(engines, len(engines)):
                    if arguments.flash:  # each alone, since the difference is small
                        await start(engine, model, arguments.threads)
                    await kind(engine, dice)
                    if arguments.flash:
                        engine.seen["rss_mib"].append(engine.rss_mib())
                        await stop(engine)
                if number == -1:  # the first round only settles the engines
                    for engine in engines:
                        engine.seen.clear()
                load.append(os.getloadavg()[0])
            for engine in engines if not arguments.flash else []:
                engine.seen["rss_mib"].append(engine.rss_mib())
        finally:
            await asyncio.gather(*map(stop, engines))
        reports = {e.label: json.loads(e.report.read_text("utf-8")) for e in engines}
    conditions = {
        "rounds": arguments.rounds,
        "threads": arguments.threads,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "load_average": [round(min(load), 2), round(max(load), 2)],
        "started_s": {e.label: round(e.started_s, 1) for e in engines},
        "options": {e.label: e.options for e in engines},
        "versions": {label: report["versions"] for label, report in reports.items()},
        "prompt_tokens": statistics.median(v for e in engines for v in e.seen["prompt_tokens"]),
    }
    if arguments.json:
        print(json.dumps({"conditions": conditions, "seen": {e.label: e.seen for e in engines}}, indent=1))
    else:
        print(f"{table(engines)}\n\n{json.dumps(conditions, indent=1)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python-a", default="", help="interpreter of llama_server's environment")
    parser.add_argument("--python-b", default="", help="interpreter of llama_cpp's environment")
    parser.add_argument("--model", type=Path, help="a GGUF; default: SmolLM2 in the model store")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", default="", help="compare llama_server with itself: 64,128,256,512")
    parser.add_argument("--flash", action="store_true", help="llama_server with flash attention and without")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
