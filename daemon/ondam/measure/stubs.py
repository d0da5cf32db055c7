"""Engines made of waiting, to measure the daemon alone: real processes, real sockets, stated delays.

    python -m ondam.measure.stubs stt|llm|tts --socket PATH --ms A[,B]

Each answers one request at a time, and stops when its client leaves. The transcript depends on how many
samples came: nothing is won by asking early with half of the audio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web
from wyoming.asr import Transcript
from wyoming.event import Event, async_read_event, async_write_event
from wyoming.ping import Ping, Pong

from ondam.clients.wyoming_frames import AUDIO_CHUNK, AUDIO_START, AUDIO_STOP
from ondam.errors import ConfigError, EngineError
from ondam.supervisor.leash import leashed
from ondam.types import HEARING_RATE_HZ

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RATE_HZ = 22_050
MS_PER_CHARACTER = 60
"""How fast the stub voice speaks."""

FIRST_CLAUSE = ("That ", "is ", "a ", "good ", "question, ")
"""The last token comes when the clause is due."""
REST = ("and ", "this ", "is ", "the ", "answer.")

KEYS = ("stt", "ttft", "clause", "tts")

STAGES = ("stt", "llm", "tts")

STARTS_WITHIN_S = 30.0
ENDS_WITHIN_S = 3.0

BLOCK_MS = 10.0
"""A microphone's block: how exactly it is known where an utterance ends."""


def delays(text: str) -> dict[str, float]:
    """``stt=100,ttft=100,clause=180,tts=100`` in ms. Raises ConfigError on anything else."""
    given = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    try:
        found = {key: float(given[key]) for key in KEYS}
    except (KeyError, ValueError) as error:
        raise ConfigError("bench_stub_broken", given=text) from error
    if len(given) != len(KEYS) or min(found.values()) < 0:
        raise ConfigError("bench_stub_broken", given=text)
    return found


def stub_settings(folder: Path) -> dict[str, str]:
    """The settings that make a daemon use the stubs whose sockets are in ``folder``."""
    return {
        "stt.address": f"unix://{_socket(folder, 'stt')}",
        "llm.url": f"unix://{_socket(folder, 'llm')}",
        "tts.address": f"unix://{_socket(folder, 'tts')}",
        "tts.spare": "",
    }


@asynccontextmanager
async def stub_engines(folder: Path, ms: Mapping[str, float]) -> AsyncIterator[None]:
    """Three stub processes with sockets in ``folder``, for as long as this lasts. Raises EngineError.

    Ctrl-C in the terminal is not theirs to hear; they die with this process, however it dies.
    """
    times = {"stt": f"{ms['stt']}", "llm": f"{ms['ttft']},{ms['clause']}", "tts": f"{ms['tts']}"}
    async with AsyncExitStack() as running:
        processes = []
        for stage in STAGES:
            command = [sys.executable, "-m", "ondam.measure.stubs", stage, "--ms", times[stage]]
            command += ["--socket", str(_socket(folder, stage))]
            process = await asyncio.create_subprocess_exec(
                *leashed(command), stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
            running.push_async_callback(_end, process)
            processes.append(process)
        try:
            async with asyncio.timeout(STARTS_WITHIN_S):
                while not all(_socket(folder, stage).exists() for stage in STAGES):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        except TimeoutError as error:
            raise EngineError("bench_stubs_did_not_start", seconds=round(STARTS_WITHIN_S)) from error
        yield


def heard_short(turn: Mapping[str, Any]) -> bool:
    """Whether a turn's words, as the stub made them, came from fewer samples than the user spoke.

    The utterance ends about when the endpoint is decided; what of it is later than the last voice may be
    missing.
    """
    found = re.search(r"(\d+) samples", turn["transcript"] or "")
    endpoint_ms = turn["marks_ms"].get("endpoint")
    if found is None or endpoint_ms is None:
        return False
    heard_ms = int(found[1]) * 1000 / HEARING_RATE_HZ
    return bool(heard_ms < turn["utterance_s"] * 1000 - endpoint_ms - BLOCK_MS)


def _socket(folder: Path, stage: str) -> Path:
    return folder / f"stub-{stage}.sock"


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), ENDS_WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _while_connected(reader: asyncio.StreamReader, work: Awaitable[None]) -> None:
    """Do ``work`` until the client leaves."""
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(reader.read(1))
    await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
    for task in (doing, leaving):
        task.cancel()
    await asyncio.gather(doing, leaving, return_exceptions=True)


def _speech_server(
    answer: Callable[[asyncio.StreamWriter, str, int], Awaitable[None]],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    turn = asyncio.Lock()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        samples, text = 0, ""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while (event := await async_read_event(reader)) is not None:
                if event.type == "describe":
                    await async_write_event(Event("info"), writer)
                elif Ping.is_type(event.type):
                    await async_write_event(Pong().event(), writer)
                elif event.type == AUDIO_CHUNK:
                    samples += len(event.payload or b"") // 2
                elif event.type in (AUDIO_STOP, "synthesize"):
                    text = (event.data or {}).get("text", "")

                    async def work(text: str = text, samples: int = samples) -> None:
                        async with turn:
                            await answer(writer, text, samples)

                    await _while_connected(reader, work())
                    break
        writer.close()

    return serve


def _stt(ms: float) -> Callable[[asyncio.StreamWriter, str, int], Awaitable[None]]:
    async def answer(writer: asyncio.StreamWriter, _text: str, samples: int) -> None:
        await asyncio.sleep(ms / 1000)
        heard = f"I said something for {samples} samples."
        context = {"ondam": {"engine_ms": ms, "queued_ms": 0.0}}
        await async_write_event(Transcript(heard, context=context).event(), writer)

    return answer


def _tts(ms: float) -> Callable[[asyncio.StreamWriter, str, int], Awaitable[None]]:
    async def answer(writer: asyncio.StreamWriter, text: str, _samples: int) -> None:
        await asyncio.sleep(ms / 1000)
        form = {"rate": RATE_HZ, "width": 2, "channels": 1}
        own = {"ondam": {"engine_ms": ms, "queued_ms": 0.0}}
        await async_write_event(Event(AUDIO_START, {**form, "context": own}), writer)
        tone = b"\x00\x10" * (RATE_HZ // 50)
        for _ in range(max(1, len(text) * MS_PER_CHARACTER // 20)):
            await async_write_event(Event(AUDIO_CHUNK, form, tone), writer)
        await async_write_event(Event(AUDIO_STOP), writer)

    return answer


def _llm(ttft_ms: float, clause_ms: float) -> web.Application:
    turn = asyncio.Lock()

    async def chat(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        async with turn:
            begun = time.monotonic()
            await asyncio.sleep(ttft_ms / 1000)
            await response.prepare(request)
            step_ms = clause_ms / (len(FIRST_CLAUSE) - 1)
            for number, token in enumerate((*FIRST_CLAUSE, *REST)):
                due_ms = ttft_ms + step_ms * min(number, len(FIRST_CLAUSE) - 1)
                await asyncio.sleep(max(0.0, begun + due_ms / 1000 - time.monotonic()))
                choice = {"index": 0, "delta": {"content": token}, "finish_reason": None}
                timings = {"prompt_ms": ttft_ms, "predicted_ms": due_ms - ttft_ms, "prompt_n": 1}
                chunk = {"choices": [choice], "timings": timings}
                await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            await response.write(f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())
        return response

    async def healthy(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    application = web.Application()
    application.router.add_post("/v1/chat/completions", chat)
    application.router.add_get("/health", healthy)
    application.router.add_get("/v1/models", healthy)
    return application


async def _serve(stage: str, socket: Path, ms: list[float]) -> None:
    if stage == "llm":
        # A client that leaves cancels its request: the next is not kept waiting.
        runner = web.AppRunner(_llm(*ms), handler_cancellation=True)
        await runner.setup()
        await web.UnixSite(runner, str(socket)).start()
        await asyncio.Event().wait()
        return
    handler = _speech_server(_stt(ms[0]) if stage == "stt" else _tts(ms[0]))
    server = await asyncio.start_unix_server(handler, str(socket))
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serve one stage until terminated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=["stt", "llm", "tts"])
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--ms", required=True)
    given = parser.parse_args()
    asyncio.run(_serve(given.stage, given.socket, [float(part) for part in given.ms.split(",")]))


if __name__ == "__main__":
    main()
