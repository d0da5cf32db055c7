"""Text to speech by a Wyoming server. Implements ``pipeline.ports.Synthesizer``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import numpy as np
from wyoming.event import Event
from wyoming.tts import Synthesize

from ondam.clients.address import speech_address
from ondam.clients.json_text import count_at, number_at, object_at
from ondam.clients.wyoming_exchange import exchange
from ondam.clients.wyoming_frames import AUDIO_CHUNK, AUDIO_START, AUDIO_STOP
from ondam.errors import EngineError
from ondam.pipeline.ports import Sounded, SpeechEnd, SpeechStart
from ondam.types import Language, Samples

LONGEST_S = 2.0
LONGEST_S_PER_CHARACTER = 0.35
"""Speech of n characters lasts at most 2 s + 0.35 s × n. A model that misses its stop token makes 164 s of
noise out of two characters; slow Korean is about 0.25 s a syllable."""

FADE_S = 0.01
"""A cut fades out over this, so that it does not click."""

RATES_HZ = range(8_000, 192_001)
MOST_CHANNELS = 8


@dataclass(frozen=True, slots=True)
class _Form:
    rate_hz: int
    channels: int


class WyomingSynthesizer:
    """Asks the server at ``address`` (``unix:///path`` or ``tcp://host:port``), for ``voice`` if given.

    ``first_timeout_s`` bounds the wait for the first event, ``idle_timeout_s`` the wait for samples after it:
    events that bring none do not keep an engine alive. Raises EngineError for an address of another form.
    """

    def __init__(
        self,
        address: str,
        voice: str | None = None,
        *,
        first_timeout_s: float = 20.0,
        idle_timeout_s: float = 10.0,
    ) -> None:
        self.address = address
        self._place = speech_address(address)
        self._voice = voice
        self._first_timeout_s = first_timeout_s
        self._idle_timeout_s = idle_timeout_s

    async def synthesize(self, text: str, language: Language) -> AsyncGenerator[Sounded, None]:
        """``SpeechStart``, samples as they come, ``SpeechEnd`` if told. Closing it closes the connection.

        A server that has nothing to say yields no samples, or nothing at all. Raises EngineError; with code
        ``speech_too_long`` after the last samples, faded out, when the server said far more than ``text``:
        what was yielded is fit to be played, and the next text may be asked for.
        """
        loop = asyncio.get_running_loop()
        timeout_s = left_s = self._first_timeout_s
        answered = False
        form: _Form | None = None
        rest = b""
        free = fade = 0
        """Samples that go out at once, and those before the bound that wait: if more come, they fade out."""
        held: Samples = np.zeros(0, np.int16)
        async with exchange(self._place, self.address, [self._question(text, language)]) as answers:
            while True:
                began = loop.time()
                event = await answers.next(left_s, of_s=timeout_s)
                # Only the waiting counts: what the listener does between two pieces is its own time.
                left_s -= loop.time() - began
                if not answered:
                    answered, timeout_s, left_s = True, self._idle_timeout_s, self._idle_timeout_s
                if event.type == AUDIO_STOP:
                    # A last odd byte is half a sample: nothing to play.
                    if len(held):
                        yield held
                    try:
                        end = _end(event)
                    except ValueError as error:
                        raise answers.broken(str(error)) from error
                    if end is not None:
                        yield end
                    return
                if event.type not in {AUDIO_START, AUDIO_CHUNK}:
                    continue
                try:
                    told = _form(event)
                    if form is None:
                        form, start = told, _start(event, told)
                    elif told != form:
                        raise ValueError("the format changed within an answer")
                    else:
                        start = None
                except ValueError as error:
                    raise answers.broken(str(error)) from error
                if start is not None:
                    fade = int(FADE_S * form.rate_hz)
                    free = int((LONGEST_S + LONGEST_S_PER_CHARACTER * len(text)) * form.rate_hz) - fade
                    yield start
                if not event.payload or event.type != AUDIO_CHUNK:
                    continue
                samples, rest = _mono(rest + event.payload, form.channels)
                at_once, late = samples[:free], samples[free:]
                if len(at_once):
                    free -= len(at_once)
                    yield at_once
                if len(samples):
                    left_s = timeout_s
                if len(late):
                    held = np.concatenate([held, late])
                if len(held) > fade:
                    yield _faded(held[:fade])
                    raise EngineError(
                        "speech_too_long",
                        address=self.address,
                        characters=len(text),
                        seconds=f"{LONGEST_S + LONGEST_S_PER_CHARACTER * len(text):.1f}",
                    )

    def _question(self, text: str, language: Language) -> Event:
        # Not SynthesizeVoice: it leaves the language out as soon as there is a name.
        voice = {"language": language} | ({"name": self._voice} if self._voice else {})
        event = Synthesize(text).event()
        event.data["voice"] = voice
        return event


def _form(event: Event) -> _Form:
    rate, width, channels = (count_at(event.data, key) for key in ("rate", "width", "channels"))
    if (
        rate is None
        or rate not in RATES_HZ
        or width != 2
        or channels is None
        or not 1 <= channels <= MOST_CHANNELS
    ):
        raise ValueError(f"sound of {rate} Hz, {width} bytes a sample, {channels} channels")
    return _Form(rate, channels)


def _start(event: Event, form: _Form) -> SpeechStart:
    told = object_at(object_at(event.data, "context"), "ondam")
    return SpeechStart(form.rate_hz, number_at(told, "engine_ms"), number_at(told, "queued_ms"))


def _end(event: Event) -> SpeechEnd | None:
    told = object_at(object_at(event.data, "context"), "ondam")
    took, sounds = number_at(told, "engine_ms"), number_at(told, "audio_s")
    return None if took is None or not sounds else SpeechEnd(took, sounds)


def _mono(pcm: bytes, channels: int) -> tuple[Samples, bytes]:
    """The whole frames of ``pcm``, mixed down, and the bytes of the frame that is not whole yet."""
    whole = len(pcm) - len(pcm) % (2 * channels)
    samples = np.frombuffer(pcm[:whole], dtype="<i2").astype(np.int16, copy=False)
    if channels > 1:
        # Mean in 32 bits: two loud channels overflow 16.
        samples = samples.reshape(-1, channels).mean(axis=1, dtype=np.float32).round().astype(np.int16)
    return samples, pcm[whole:]


def _faded(samples: Samples) -> Samples:
    return (samples * np.linspace(1.0, 0.0, len(samples), dtype=np.float32)).astype(np.int16)
