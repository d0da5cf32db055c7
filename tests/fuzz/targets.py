"""What is attacked, and what must hold: the process lives, its memory is bounded, nobody else is held up."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.control.pace import CONNECTIONS
from ondam.control.sound import decode, encode
from ondam.errors import EngineError, OndamError
from ondam.measure.clips import clips
from ondam.types import Audio
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.jobs import Worker
from ondam_engines.kit.limits import LIMITS
from ondam_engines.kit.server import Server, Service
from ondam_engines.kit.stt import Heard, SttService
from ondam_engines.kit.tts import TtsService, Voice
from tests.fuzz.hostile import Hostile
from tests.scenarios.house import House

AT_ONCE = 24
"""Attackers side by side."""

GROWTH_MIB = 96.0
"""What memory may grow by. Each of the attackers may hold a few of the longest things that are allowed."""

KNOCKS_PER_S = 0.9 * CONNECTIONS.per_s

HEARING = ("transcribe", "audio-start", "audio-chunk", "audio-stop")

PATIENCE_S = 3.0
"""Whoever is no attacker is answered in this time. A status takes about a millisecond on an idle machine."""


@dataclass
class Result:
    """One target, attacked."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    grown_mib: float = 0.0
    slowest_ms: float = 0.0
    """The longest that somebody else had to wait meanwhile."""
    turns: int = 0
    """Whole turns of somebody else meanwhile."""
    met: Counter[str] = field(default_factory=Counter)
    """What attackers were told."""


@contextmanager
def broken_off() -> Iterator[None]:
    """The other side hung up; asyncio says so in several ways."""
    try:
        yield
    except TimeoutError:
        raise
    except OSError:
        pass


Attack = Callable[[Hostile], Awaitable[str]]


async def attack(
    result: Result, one: Attack, count: int, seed: int, until: float, process: psutil.Process
) -> None:
    """``count`` inputs, or fewer where ``until`` (monotonic) comes first. Raises what no peer may cause."""
    before, began = process.memory_info().rss, time.monotonic()
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            if time.monotonic() > until:
                return
            try:
                result.met[await one(Hostile(seed + number))] += 1
            except Exception as error:
                error.add_note(f"{result.target}: input {number} of seed {seed}")
                raise
            result.inputs += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())
    result.seconds = time.monotonic() - began
    result.grown_mib = (process.memory_info().rss - before) / 2**20
    assert result.grown_mib < GROWTH_MIB, result


async def control(house: House, count: int, seed: int, until: float) -> Result:
    """The control socket of a real daemon; somebody else asks for its status and speaks with it meanwhile."""
    assert house.process is not None
    result, path = Result("control socket"), house.places.control_socket
    over = asyncio.Event()

    began, sent = time.monotonic(), 0

    async def one(hostile: Hostile) -> str:
        nonlocal sent
        sent += 1
        # No faster than the daemon lets a program knock: what it turns away unread is no input.
        await asyncio.sleep(max(0.0, began + sent / KNOCKS_PER_S - time.monotonic()))
        data = hostile.http()
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except OSError:
            return "refused"
        try:
            with broken_off():
                writer.write(data)
                if hostile.random.random() < 0.05:
                    return "never read"
                async with asyncio.timeout(0.1):
                    answer = await reader.read(64)
                return answer[:12].decode("latin-1") if answer else "closed"
        except TimeoutError:
            return "waits for more"
        finally:
            writer.transport.abort()
        return "closed"

    async def somebody_else() -> None:
        question = encode(_second(clips("en")[0].wav))
        async with house.client() as client:
            while not over.is_set():
                began = time.monotonic()
                async with asyncio.timeout(PATIENCE_S):
                    await client.status()
                result.slowest_ms = max(result.slowest_ms, (time.monotonic() - began) * 1e3)
                turn, _ = await client.wav_turn(question, "en")
                assert turn["outcome"] in {"answered", "no_speech"}, turn
                result.turns += 1

    other = asyncio.create_task(somebody_else())
    try:
        await attack(result, one, count, seed, until, psutil.Process(house.process.pid))
    finally:
        over.set()
    await other
    assert house.process.poll() is None, house.log.read_text("utf-8")
    return result


def _second(wav: bytes) -> Audio:
    sound = decode(wav, 10**7)
    return Audio(sound.samples[: sound.rate_hz], sound.rate_hz)


@asynccontextmanager
async def hostile_server(path: Path, answer: Callable[[Hostile], bytes]) -> AsyncIterator[list[Hostile]]:
    """An engine that answers the next connection with what the next of the list makes."""
    waiting: list[Hostile] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with broken_off():
                asked = await reader.read(4096)
                if asked.startswith(b"GET "):
                    writer.write(
                        b'HTTP/1.1 200 X\r\nContent-Length: 11\r\nConnection: close\r\n\r\n{"data": []}'
                    )
                    return
                if b'"ping"' in asked:
                    writer.write(b'{"type": "pong"}\n')
                    await reader.read(4096)
                    return
                hostile = waiting.pop(0) if waiting else Hostile(0)
                writer.write(answer(hostile))
                if hostile.random.random() < 0.3:
                    writer.write_eof()
                    await writer.drain()
                    await asyncio.sleep(0.005)
                else:
                    await writer.drain()
                    await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            pass  # the run is over; asyncio would tell of it
        finally:
            writer.transport.abort()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield waiting
    finally:
        server.close()


async def clients(folder: Path, count: int, seed: int, until: float) -> list[Result]:
    """Our clients of a recognizer, a voice and a language engine, each of which answers with anything."""
    sound = Audio(np.zeros(1600, np.int16), 16_000)
    own = psutil.Process()
    results = []

    async def heard(address: str) -> str:
        text = (await WyomingRecognizer(address, timeout_s=0.3).transcribe(sound, "en")).text
        assert isinstance(text, str)
        return "answered"

    async def spoken(address: str) -> str:
        voice = WyomingSynthesizer(address, first_timeout_s=0.3, idle_timeout_s=0.3)
        samples = 0
        async with aclosing(voice.synthesize("Hello.", "en")) as pieces:
            async for piece in pieces:
                samples += len(piece) if isinstance(piece, np.ndarray) else 0
        assert samples < 192_000 * 6
        return "answered"

    async def answered(address: str) -> str:
        llm = OpenAIResponder(address, first_token_timeout_s=0.3, idle_timeout_s=0.3)
        said = 0
        async with aclosing(llm.respond([{"role": "user", "content": "Hi"}], max_tokens=64)) as tokens:
            async for token in tokens:
                said += len(getattr(token, "text", ""))
        assert said < 10_000
        return "answered"

    async def made(
        name: str, ask: Callable[[str], Awaitable[str]], answer: Callable[[Hostile], bytes]
    ) -> None:
        result, path = Result(name), folder / f"{name.partition(' ')[0]}.sock"
        async with hostile_server(path, answer) as waiting:

            async def one(hostile: Hostile) -> str:
                waiting.append(hostile)
                try:
                    return await ask(f"unix://{path}")
                except EngineError as error:
                    error.message("ko")  # can be told
                    return error.code

            await attack(result, one, count, seed, until, own)
        results.append(result)

    await made(
        "recognizer's client",
        heard,
        lambda hostile: hostile.frames("transcript", "transcript", "audio-chunk"),
    )
    await made(
        "voice's client", spoken, lambda hostile: hostile.frames("audio-start", "audio-chunk", "audio-stop")
    )
    await made("language client", answered, Hostile.sse)
    return results


class _Deaf:
    """A recognizer and a voice of no model."""

    name, version = "deaf", "1"
    languages = ("en", "ko")
    voices = (Voice("deaf", "en"),)
    rate_hz = 16_000

    def transcribe(self, samples: bytes, language: str, names: object, cancel: Cancel) -> Heard:
        """Nothing."""
        return Heard("nothing")

    def synthesize(self, text: str, voice: Voice, cancel: Cancel) -> Iterator[bytes]:
        """A little."""
        yield b"\1\0" * 160


async def kit(folder: Path, count: int, seed: int, until: float) -> list[Result]:
    """The server that our speech engines are made of."""
    results = []
    services: tuple[tuple[str, Service, tuple[str, ...]], ...] = (
        ("kit's recognizer", SttService(_Deaf(), "en"), HEARING),
        ("kit's voice", TtsService(_Deaf(), "en"), ("synthesize", "synthesize")),
    )
    for name, service, kinds in services:
        result, path = Result(name), folder / f"{kinds[0]}.sock"
        worker = Worker(LIMITS)
        server = Server(path, service, worker)
        await server.start()
        over = asyncio.Event()

        async def one(hostile: Hostile, path: Path = path, kinds: tuple[str, ...] = kinds) -> str:
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                with broken_off():
                    writer.write(hostile.frames(*kinds))
                    if hostile.random.random() < 0.3:
                        writer.write_eof()
                    async with asyncio.timeout(0.02):
                        answer = await reader.read(300)
                    return "error" if b'"error"' in answer else "answered" if answer else "closed"
            except TimeoutError:
                return "waits for more"
            finally:
                writer.transport.abort()
            return "closed"

        async def somebody_else(
            result: Result = result, path: Path = path, over: asyncio.Event = over
        ) -> None:
            while not over.is_set():
                began = time.monotonic()
                async with asyncio.timeout(PATIENCE_S):
                    if path.name.startswith("transcribe"):
                        recognizer = WyomingRecognizer(f"unix://{path}")
                        await recognizer.transcribe(Audio(np.zeros(160, np.int16), 16_000), "en")
                    else:
                        async with aclosing(
                            WyomingSynthesizer(f"unix://{path}").synthesize("Hi.", "en")
                        ) as said:
                            async for _ in said:
                                pass
                result.slowest_ms = max(result.slowest_ms, (time.monotonic() - began) * 1e3)
                result.turns += 1
                await asyncio.sleep(0.05)

        other = asyncio.create_task(somebody_else())
        try:
            await attack(result, one, count, seed, until, psutil.Process())
        finally:
            over.set()
            await other
            await server.close()
            await worker.close(5.0)
        results.append(result)
    return results


async def engines(house: House, count: int, folder: Path, seed: int, until: float) -> Result:
    """A real daemon all of whose engines, by address, answer with anything: whole turns on them."""
    assert house.process is not None
    result = Result("daemon on hostile engines")
    hostile = {
        "stt": lambda one: one.frames("transcript", "transcript", "pong"),
        "tts": lambda one: one.frames("audio-start", "audio-chunk", "audio-stop"),
        "llm": Hostile.sse,
    }  # fmt: skip
    async with (
        hostile_server(folder / "stt.sock", hostile["stt"]) as stt,
        hostile_server(folder / "tts.sock", hostile["tts"]) as tts,
        hostile_server(folder / "llm.sock", hostile["llm"]) as llm,
        house.client() as client,
    ):
        sound = encode(Audio(np.zeros(1600, np.int16), 16_000))

        asking = asyncio.Lock()  # a question ends the answer to the one before it

        async def one(source: Hostile) -> str:
            for waiting in (stt, tts, llm):
                del waiting[200:]
                waiting.append(source)
            try:
                match source.random.randrange(3):
                    case 0:
                        async with asking:
                            return (await client.ask("Hi", speak=source.random.random() < 0.3))[
                                "outcome"
                            ] or "?"
                    case 1:
                        await client.transcribe(sound, "en")
                    case _:
                        await client.status()
            except OndamError as error:
                return error.code
            return "answered"

        await attack(result, one, count, seed, until, psutil.Process(house.process.pid))
    assert house.process.poll() is None, house.log.read_text("utf-8")
    return result
