"""Speech to text by a Wyoming server. Implements ``pipeline.ports.Recognizer``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from wyoming.asr import Transcribe
from wyoming.asr import Transcript as TranscriptEvent
from wyoming.event import Event

from ondam.clients.address import speech_address
from ondam.clients.json_text import number_at, object_at, text_at
from ondam.clients.wyoming_exchange import exchange
from ondam.clients.wyoming_frames import AUDIO_CHUNK, AUDIO_START, AUDIO_STOP
from ondam.pipeline.ports import Transcript
from ondam.types import Audio, Language

CHUNK_S = 0.25
"""Sound per event. Fewer, larger events cost less; a server that streams still gets its first one at once."""


class WyomingRecognizer:
    """Asks the server at ``address`` (``unix:///path`` or ``tcp://host:port``).

    An answer is given up after ``timeout_s`` plus twice the length of the sound: a recognizer slower than
    that is no use in a conversation. Raises EngineError for an address of another form.
    """

    def __init__(self, address: str, *, timeout_s: float = 20.0) -> None:
        self.address = address
        self._place = speech_address(address)
        self._timeout_s = timeout_s

    async def transcribe(self, audio: Audio, language: Language, names: Sequence[str] = ()) -> Transcript:
        """The words in ``audio``; ``names`` bias it. Cancelling closes the connection. Raises EngineError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_s + 2 * audio.seconds
        async with exchange(self._place, self.address, _question(audio, language, names)) as answers:
            while True:
                event = await answers.next(deadline - loop.time())
                if TranscriptEvent.is_type(event.type):
                    break
            try:
                return _transcript(event)
            except ValueError as error:
                raise answers.broken(str(error)) from error


def _question(audio: Audio, language: Language, names: Sequence[str]) -> Iterator[Event]:
    yield Transcribe(language=language, transcript_names=list(names) or None).event()
    form = {"rate": audio.rate_hz, "width": 2, "channels": 1}
    yield Event(AUDIO_START, form)
    step = max(1, int(CHUNK_S * audio.rate_hz))
    for at in range(0, len(audio.samples), step):
        sound = audio.samples[at : at + step].astype("<i2", copy=False).tobytes()
        yield Event(AUDIO_CHUNK, form, sound)
    yield Event(AUDIO_STOP)


def _transcript(event: Event) -> Transcript:
    text = text_at(event.data, "text")
    if text is None:
        raise ValueError('a transcript without "text"')
    told = object_at(object_at(event.data, "context"), "ondam")
    return Transcript(
        text,
        language=text_at(event.data, "language"),
        engine_ms=number_at(told, "engine_ms"),
        queued_ms=number_at(told, "queued_ms"),
        no_speech_prob=number_at(told, "no_speech_prob"),
        avg_logprob=number_at(told, "avg_logprob"),
    )
