"""Plays a sound and listens to it: how late and how loud it comes back, and how much of it can be removed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ondam.audio.duplex import Duplex
from ondam.audio.echo import level_db
from ondam.audio.faults import LOST, Clock, Sleep
from ondam.errors import AudioError
from ondam.pipeline.ports import Microphone, Speaker
from ondam.types import Block, Samples

Verdict: TypeAlias = Literal["cancelling", "no_echo", "half_duplex"]

SECONDS = 7.0
"""Of sound. Half of it finds the delay, half a second after that the canceller is settled."""

LEVEL_DBFS = -20.0
"""As loud as an answer."""

OPENS_WITHIN_S = 4.0
"""The microphone gives its first sound; a missing device has been told of by then."""

PATIENCE_S = 3.0
"""The speaker may take longer than the sound lasts."""

AFTER_S = 1.2
"""Listened to after the last sample: the latest echo that is looked for."""


@dataclass(frozen=True, slots=True)
class EchoReport:
    """What came back."""

    verdict: Verdict
    microphone: str
    speaker: str
    delay_ms: float | None
    """From the time that the speaker told for a sample; None without an echo."""
    echo_db: float | None
    """Level in the microphone over the level that was played."""
    cancellation_db: float | None
    """None without an echo that stands out of the room's noise."""
    noise_dbfs: float
    """Of the room, before anything was played."""


class Faults:
    """What keeps a device from working now. Give ``on_fault`` to its maker."""

    def __init__(self) -> None:
        self._now: dict[str, tuple[str, dict[str, object]]] = {}

    def of(self, device: str) -> Callable[..., None]:
        """The ``OnFault`` of one device."""

        def on_fault(code: str | None, /, **facts: object) -> None:
            if code is None:
                self._now.pop(device, None)
            elif code in LOST:
                self._now[device] = (code, facts)

        return on_fault

    def check(self) -> None:
        """Raises AudioError while a device is lost."""
        for code, facts in self._now.values():
            raise AudioError(code, **facts)


class Ears:
    """A ``ports.Microphone`` around another that notes what it gave, before anything was done with it."""

    def __init__(self, microphone: Microphone) -> None:
        self._microphone = microphone
        self.heard: list[Samples] = []

    @property
    def name(self) -> str:
        """See ``ports.Microphone``."""
        return self._microphone.name

    async def blocks(self) -> AsyncGenerator[Block, None]:
        """See ``ports.Microphone``."""
        async for block in self._microphone.blocks():
            self.heard.append(block.samples)
            yield block

    async def close(self) -> None:
        """See ``ports.Microphone``."""
        await self._microphone.close()


async def check_echo(
    microphone: Microphone,
    speaker: Speaker,
    faults: Faults,
    *,
    clock: Clock = time.monotonic_ns,
    sleep: Sleep = asyncio.sleep,
    progress: Callable[[float], None] = lambda share: None,
) -> EchoReport:
    """Ten seconds. Both devices stay open. ``progress`` is told how much of it is over, 0 to 1.

    Raises AudioError when a device is not there, is lost meanwhile, or the microphone is muted.
    """
    ears = Ears(microphone)
    duplex = Duplex(ears, speaker, setting="on")
    heard = ears.heard

    async def listen() -> None:
        async for _block in duplex.blocks():
            pass

    listening = asyncio.create_task(listen(), name="listening to the echo")
    try:
        await _until(lambda: len(heard) >= 50, OPENS_WITHIN_S, clock, sleep)
        faults.check()
        if not heard:
            raise AudioError("microphone_stalled", name=microphone.name)
        before = np.concatenate(heard[-30:])
        speaker.wake()
        sound = probe_sound(SECONDS, speaker.rate_hz)
        begun_ns, until_ns = clock(), clock() + round((SECONDS + PATIENCE_S) * 1e9)
        playing = asyncio.create_task(_play(speaker, sound), name="playing the test sound")
        try:
            while not playing.done():
                faults.check()
                if clock() > until_ns:
                    raise AudioError("speaker_stalled", name=speaker.name)
                progress(min(1.0, (clock() - begun_ns) / 1e9 / (SECONDS + AFTER_S)))
                await sleep(0.05)
            await playing
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
        await sleep(AFTER_S)
        progress(1.0)
        faults.check()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    if not any(block.any() for block in heard):
        raise AudioError("doctor_echo_muted", name=microphone.name)
    found = duplex.delay_ms is not None
    verdict: Verdict = "half_duplex"
    if duplex.mode in {"cancelling", "no_echo"}:
        verdict = "cancelling" if duplex.mode == "cancelling" else "no_echo"
    return EchoReport(
        verdict,
        microphone.name,
        speaker.name,
        duplex.delay_ms,
        duplex.echo_db if found else None,
        duplex.erle_db if found else None,
        level_db(before),
    )


def probe_sound(seconds: float, rate_hz: int) -> Samples:
    """Something like speech: four syllables a second of hiss and gliding tones, with pauses."""
    random = np.random.default_rng(20_261)
    length = rate_hz // 4
    times = np.arange(length) / rate_hz
    syllables = []
    for number in range(-(-round(seconds * rate_hz) // length)):
        phase = 2 * np.pi * random.uniform(100, 200) * (times + random.uniform(-1, 1) * times**2)
        tones = sum((np.sin(phase * k + random.uniform(0, 6)) / k for k in range(1, 25)), np.zeros(length))
        # Noise only up to some 4 kHz: more is unpleasant, and no voice.
        hiss = np.convolve(random.normal(0, 2, length), np.ones(rate_hz // 8000) / (rate_hz // 8000), "same")
        silent = number % 5 == 4
        syllables.append((tones + hiss) * np.hanning(length) * (0 if silent else min(1, (number + 1) / 4)))
    whole = np.concatenate(syllables)[: round(seconds * rate_hz)]
    whole *= 32768 * 10 ** (LEVEL_DBFS / 20) / np.sqrt(np.mean(whole**2))
    sound: Samples = np.clip(np.rint(whole), -32768, 32767).astype(np.int16)
    return sound


async def _play(speaker: Speaker, sound: Samples) -> None:
    for piece in np.array_split(sound, max(1, len(sound) * 10 // speaker.rate_hz)):
        await speaker.write(piece)
    await speaker.drained()


async def _until(true: Callable[[], bool], within_s: float, clock: Clock, sleep: Sleep) -> None:
    end_ns = clock() + round(within_s * 1e9)
    while not true() and clock() < end_ns:
        await sleep(0.02)
