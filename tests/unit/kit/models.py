"""Models that do what a test tells them, and a connection to the server that serves them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from wyoming.event import Event, async_read_event, async_write_event

from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.stt import Heard
from ondam_engines.kit.tts import Voice

RATE_HZ = 16_000
FORM = {"rate": RATE_HZ, "width": 2, "channels": 1}


class ScriptedStt:
    """Hears how many bytes there were, in ``language``, and who was expected."""

    name = "scripted"
    version = "1"
    languages: Sequence[str] = ("ko", "en")
    rate_hz = RATE_HZ

    def __init__(self) -> None:
        self.gate = threading.Event()
        """Jobs wait for it."""
        self.gate.set()
        self.started = threading.Event()
        self.stopped = threading.Event()
        """A job was told to stop."""
        self.failure: Exception | None = None

    def transcribe(self, samples: bytes, language: str, names: Sequence[str], cancel: Cancel) -> Heard:
        """As the class says; stops while it waits for the gate."""
        self.started.set()
        with cancel.calling(self._stop):
            assert self.gate.wait(10)
        cancel.check()
        if self.failure is not None:
            raise self.failure
        return Heard(f"{len(samples)} {language} {','.join(names)}", no_speech_prob=0.25, avg_logprob=-0.5)

    def _stop(self) -> None:
        self.stopped.set()
        self.gate.set()


class ScriptedTts:
    """Says what ``say`` yields."""

    name = "scripted"
    version = "1"
    voices: Sequence[Voice] = (Voice("Yuna", "ko"), Voice("Joe", "en"))
    rate_hz = RATE_HZ

    def __init__(self) -> None:
        self.say: Callable[[str, Cancel], Iterator[bytes]] = lambda text, cancel: iter(
            [text.encode("utf-16-le")]
        )
        self.asked: list[tuple[str, str]] = []
        """Text and name of the voice."""
        self.spoken: list[tuple[str, str]] = []
        """Name and language of the voice."""

    def synthesize(self, text: str, voice: Voice, cancel: Cancel) -> Iterator[bytes]:
        """Remembers what it was asked, and says it."""
        self.asked.append((text, voice.name))
        self.spoken.append((voice.name, voice.language))
        return self.say(text, cancel)


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, path: Path) -> Client:
        """Connect."""
        return cls(*await asyncio.open_unix_connection(path, limit=2**22))

    async def send(self, kind: str, data: dict[str, Any] | None = None, payload: bytes | None = None) -> None:
        """Write one event."""
        await async_write_event(Event(kind, data or {}, payload), self.writer)

    async def send_audio(self, *payloads: bytes) -> None:
        """A whole utterance."""
        await self.send("audio-start", FORM)
        for payload in payloads:
            await self.send("audio-chunk", FORM, payload)
        await self.send("audio-stop")

    async def next(self) -> Event:
        """The next event, in at most 5 s."""
        async with asyncio.timeout(5):
            event = await async_read_event(self.reader)
        assert event is not None, "the server hung up"
        return event

    async def until(self, last: str) -> list[Event]:
        """Events up to and with the first of type ``last``."""
        events = [await self.next()]
        while events[-1].type != last:
            events.append(await self.next())
        return events

    async def rest(self) -> bytes:
        """Everything until the server hangs up, in at most 5 s."""
        async with asyncio.timeout(5):
            return await self.reader.read()

    def leave(self) -> None:
        """Hang up without a word."""
        self.writer.transport.abort()
