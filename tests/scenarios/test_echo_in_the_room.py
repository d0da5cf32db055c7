"""Whole conversations where the microphone hears the speaker: real voice detection, virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np
import pytest

from ondam.audio.duplex import Duplex
from ondam.audio.resample import resampled
from ondam.config import load
from ondam.control.sound import decode
from ondam.journal.turn import Turn
from ondam.measure.clips import clips
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.ports import SpeechStart
from ondam.pipeline.silero import Silero
from ondam.places import places
from ondam.session import Session
from ondam.types import HEARING_RATE_HZ, Audio, Language, Samples
from tests.fakes.engines import ScriptedEngines
from tests.fakes.room import Room
from tests.fakes.virtual_time import virtual_time

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

ANSWER_S = 3.0
"""Of speech in each answer."""


def speech(number: int) -> Audio:
    """A clip of real (synthesised) speech: what a microphone would take for a person."""
    shipped = clips("en")
    return resampled(decode(shipped[number % len(shipped)].wav, 10**7), HEARING_RATE_HZ)


class Talker(ScriptedEngines):
    """A voice that really speaks: clips, one after another, so that the echo is speech. 5 times as fast."""

    def __init__(self, **given: Any) -> None:
        super().__init__(tokens=["An answer that ends in a question, does it not?"], **given)
        self.answers = 0

    async def synthesize(self, text: str, language: Language) -> AsyncGenerator[SpeechStart | Samples, None]:
        self.answers += 1
        await asyncio.sleep(0.1)
        yield SpeechStart(HEARING_RATE_HZ, engine_ms=100.0)
        said: list[Samples] = []
        while sum(map(len, said)) < ANSWER_S * HEARING_RATE_HZ:
            said.append(speech(self.answers * 3 + len(said)).samples)
        samples = np.concatenate(said)[: round(ANSWER_S * HEARING_RATE_HZ)]
        for at in range(0, len(samples), 4000):
            await asyncio.sleep(0.05)
            yield samples[at : at + 4000]


class Conversation:
    """A session in a room."""

    def __init__(self, room: Room, engines: Talker) -> None:
        store, catalog = Store(places().models), Catalog.of(places())
        self.room = room
        self.engines = engines
        self.finished: list[Turn] = []
        self.duplex = Duplex(room.microphone, room.speaker)
        self.session = Session(
            "room",
            config=load(None, {"language": "en"}),
            language="en",
            engines=engines,
            voice=Silero(store.path(catalog.card("silero-vad"))),
            microphone=self.duplex,
            speaker=room.speaker,
            clock=_clock,
            finished=self.finished.append,
            changed=lambda event: None,
            full_duplex=lambda: self.duplex.trusted,
        )

    async def ask(self, number: int) -> Turn:
        over = self.session.next_turn()
        self.room.say(speech(number))
        return await over


def _clock() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


@asynccontextmanager
async def conversation(delay_ms: float, attenuation_db: float) -> AsyncIterator[Conversation]:
    room = Room(delay_ms=delay_ms, attenuation_db=attenuation_db, noise_dbfs=-70, clock=_clock)
    talk = Conversation(room, Talker())
    hearing = asyncio.create_task(talk.session.run())
    await asyncio.sleep(1)
    try:
        yield talk
    finally:
        await talk.session.close()
        hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing


def outcomes(turns: Sequence[Turn]) -> list[str | None]:
    return [turn.outcome for turn in turns]


@pytest.mark.parametrize(
    ("delay_ms", "attenuation_db"),
    [
        (80, 12),
        pytest.param(250, 30, marks=pytest.mark.thorough),
        pytest.param(600, 12, marks=pytest.mark.thorough),
    ],
)
@virtual_time
async def test_b19_ten_answers_make_no_turn_and_a_word_after_the_tail_is_heard(
    delay_ms: float, attenuation_db: float
) -> None:
    async with conversation(delay_ms, attenuation_db) as talk:
        for number in range(10):
            asked = await talk.ask(number)
            assert asked.outcome == "answered"
            # The last time the user speaks 300 ms after the echo's end: it must be a turn of its own.
            await asyncio.sleep(delay_ms / 1000 + 0.3 if number == 9 else 1.5)
        word = await talk.ask(0)
        await asyncio.sleep(3)
        assert word.outcome == "answered"
        assert outcomes(talk.finished) == ["answered"] * 11
        assert talk.duplex.mode == "cancelling"
        assert talk.engines.running == 0


@pytest.mark.parametrize(
    ("delay_ms", "attenuation_db"), [(80, 12), pytest.param(600, 12, marks=pytest.mark.thorough)]
)
@virtual_time
async def test_a_user_who_speaks_over_the_echo_silences_the_answer_within_200_ms(
    delay_ms: float, attenuation_db: float
) -> None:
    took_ms: list[float] = []
    async with conversation(delay_ms, attenuation_db) as talk:
        for number in range(3):
            await talk.ask(number)
            await asyncio.sleep(2)
        for number in range(6):
            over = talk.session.next_turn()
            talk.room.say(speech(number))
            while talk.session.phase != "speaking":
                await asyncio.sleep(0.01)
            await asyncio.sleep(1.6 + 0.13 * number)
            talk.engines.heard = f"Something else, number {number}."
            said = speech(number + 1)
            loud = np.flatnonzero(np.abs(said.samples) > 1500)[0]
            begins_ns = talk.room.say(Audio(said.samples[loud:], HEARING_RATE_HZ))
            interrupting = talk.session.next_turn()
            heard = -1
            while (now := talk.room.speaker.heard) != heard:
                heard = now
                await asyncio.sleep(0.015)
            took_ms.append((_clock() - begins_ns) / 1e6 - 15)
            assert (await over).outcome == "interrupted"
            second = await interrupting
            assert second.outcome == "answered"
            await asyncio.sleep(2)
    assert np.percentile(took_ms, 95) <= 200
