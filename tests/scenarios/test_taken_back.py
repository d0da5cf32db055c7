"""A false endpoint is taken back: people who pause in a sentence, before the real detector and smart-turn.

Time is virtual. The engines are scripted, with a transcript that tells how much was heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from ondam.audio import WavMicrophone, WavSpeaker
from ondam.config import load
from ondam.journal.turn import Turn
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.ports import EndOfTurn, Transcript
from ondam.pipeline.silero import Silero
from ondam.pipeline.smart_turn import SmartTurn
from ondam.places import places
from ondam.session import Session
from ondam.types import HEARING_RATE_HZ, Audio, Language, Samples
from tests.fakes.engines import ScriptedEngines
from tests.fakes.human_clips import human_clips
from tests.fakes.paused_speech import ENGLISH_BY_PEOPLE, Utterance, interrupted
from tests.fakes.virtual_time import virtual_time

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

VERDICT_S = 0.055
"""What smart-turn takes on a small machine."""

PAUSES_S = (0.2, 0.5, 0.8, 1.0, 1.25, 1.5)

SENTENCES = (0, 7)
"""Of ``ENGLISH_BY_PEOPLE``: "and Mr. John Dashwood | had then leisure …", "it was the best | of times …"."""

ANSWER = ("It is three. ", "And it will be four after that, ", "and then five, ", "and so on.")
SECONDS_OF_ANSWER = 0.05 * len("It is three.And it will be four after that,and then five,and so on.")


@dataclass
class Ears(ScriptedEngines):
    """Understands how many samples it was given, and nothing else."""

    words: str | None = None
    """What it understands instead."""

    async def transcribe(self, audio: Audio, language: Language, names: Sequence[str] = ()) -> Transcript:
        await super().transcribe(audio, language, names)
        text = f"I heard {len(audio.samples)} samples." if self.words is None else self.words
        return Transcript(text, language, engine_ms=self.stt_s * 1000)


def quick() -> Ears:
    """The answer sounds long before a user who pauses goes on."""
    return Ears(tokens=ANSWER, stt_s=0.05, ttft_s=0.05, tts_s=0.03)


def slow() -> Ears:
    """The answer is not ready before the user goes on."""
    return Ears(tokens=ANSWER, stt_s=0.5, ttft_s=0.8, tts_s=0.8)


@cache
def recording(number: int) -> Samples:
    name = ENGLISH_BY_PEOPLE[number].name
    return next(clip.audio.samples for clip in human_clips() if clip.name == name)


@cache
def model() -> SmartTurn:
    return SmartTurn(Store(places().models).path(Catalog.of(places()).card("smart-turn")))


async def judged(samples: Samples) -> float:
    """Smart-turn, with a wait that is the same every time."""
    complete = model().probability(samples)
    await asyncio.sleep(VERDICT_S)
    return complete


async def hasty(samples: Samples) -> float:
    """Takes every pause for the end."""
    await asyncio.sleep(VERDICT_S)
    return 0.99


class Room:
    """A session with the real detector, and everything that was said in front of it."""

    def __init__(self, engines: Ears, judge: EndOfTurn | None, *, full_duplex: bool, **config: Any) -> None:
        loop = asyncio.get_running_loop()

        def clock() -> int:
            return round(loop.time() * 1e9)

        self.engines = engines
        self.finished: list[Turn] = []
        self.states: list[str] = []
        self.microphone = WavMicrophone(None, clock=clock)
        self.speaker = WavSpeaker(clock=clock)
        self.said: Samples = np.zeros(0, np.int16)
        """Everything since the microphone was opened."""
        self.session = Session(
            "room",
            config=load(None, {"language": "en", **config}),
            language="en",
            engines=engines,
            voice=Silero(Store(places().models).path(Catalog.of(places()).card("silero-vad"))),
            end_of_turn=judge,
            microphone=self.microphone,
            speaker=self.speaker,
            clock=clock,
            finished=self.finished.append,
            changed=self._changed,
            full_duplex=lambda: full_duplex,
        )

    def _changed(self, event: dict[str, Any]) -> None:
        if event["type"] == "state":
            self.states.append(event["state"])

    def say(self, samples: Samples) -> int:
        """The number of its first sample since the microphone was opened."""
        first = self.microphone.play(Audio(samples, HEARING_RATE_HZ))
        self.said = np.concatenate([self.said, np.zeros(first - len(self.said), np.int16), samples])
        return first

    def heard(self) -> tuple[int, int]:
        """Where what the recognizer was given last lies in what was said: first sample, and past the last.

        Fails when it is no unbroken piece of that.
        """
        given = self.engines.heard_audio[-1].samples
        said = np.concatenate([self.said, np.zeros(60 * HEARING_RATE_HZ, np.int16)])
        for first in range(0, len(self.said), 160):
            if np.array_equal(said[first : first + len(given)], given):
                return first, first + len(given)
        raise AssertionError("what the recognizer was given is not what was said")

    @property
    def taken_back(self) -> int:
        """How often it was seen that the user was heard again after an endpoint, in one turn."""
        pairs = zip(self.states, self.states[1:], strict=False)
        return sum(1 for before, after in pairs if after == "hearing" and before != "listening")


@asynccontextmanager
async def room(
    engines: Ears, judge: EndOfTurn | None = judged, *, full_duplex: bool = True, **config: Any
) -> AsyncIterator[Room]:
    made = Room(engines, judge, full_duplex=full_duplex, **config)
    hearing = asyncio.create_task(made.session.run())
    await asyncio.sleep(0.5)
    try:
        yield made
    finally:
        await made.session.close()
        hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing
    assert engines.running == 0


async def spoken(r: Room, utterance: Utterance) -> Turn:
    """The turn that comes of it; the room is quiet afterwards."""
    over = r.session.next_turn()
    first = r.say(utterance.samples)
    turn = await over
    await asyncio.sleep(3)
    # One utterance, one turn, one exchange.
    assert [finished.outcome for finished in r.finished] == ["answered"]
    assert turn.taken_back == r.taken_back
    begin, end = r.heard()
    assert begin <= first + utterance.begins
    assert end >= first + utterance.ends
    assert turn.transcript == f"I heard {end - begin} samples."
    assert [exchange.question for exchange in r.session.history.exchanges] == [turn.transcript]
    # The answer to all of it was heard to its end.
    assert turn.heard == "".join(ANSWER).strip()
    assert r.session.history.exchanges[0].answer == turn.heard
    return turn


@pytest.mark.parametrize("number", [SENTENCES[0], pytest.param(SENTENCES[1], marks=pytest.mark.thorough)])
@pytest.mark.parametrize("pause_s", PAUSES_S)
@pytest.mark.parametrize("judge", [judged, hasty])
@virtual_time
async def test_who_goes_on_before_the_answer_sounds_is_one_turn_and_hears_one_answer(
    judge: EndOfTurn, pause_s: float, number: int
) -> None:
    utterance = interrupted(ENGLISH_BY_PEOPLE[number], recording(number), pause_s)
    async with room(slow(), judge, full_duplex=False) as r:
        turn = await spoken(r, utterance)
        if judge is hasty and pause_s > 0.6:  # a shorter one is waited for, as long as no answer is ready
            assert turn.taken_back >= 1
        # Nothing of what was begun for the first piece was heard.
        assert r.speaker.heard / r.speaker.rate_hz == pytest.approx(SECONDS_OF_ANSWER, abs=0.15)


@pytest.mark.parametrize("number", [SENTENCES[0], pytest.param(SENTENCES[1], marks=pytest.mark.thorough)])
@pytest.mark.parametrize("pause_s", PAUSES_S)
@pytest.mark.parametrize("judge", [judged, hasty])
@virtual_time
async def test_who_goes_on_while_the_answer_sounds_stops_it_and_is_one_turn(
    judge: EndOfTurn, pause_s: float, number: int
) -> None:
    utterance = interrupted(ENGLISH_BY_PEOPLE[number], recording(number), pause_s)
    async with room(quick(), judge, full_duplex=True) as r:
        turn = await spoken(r, utterance)
        if judge is hasty and pause_s > 0.6:  # a shorter one is waited for, as long as no answer is ready
            assert turn.taken_back >= 1
        # Of answers that were taken back no more was heard than the pauses are long.
        most = SECONDS_OF_ANSWER + turn.taken_back * (pause_s + 0.2)
        assert SECONDS_OF_ANSWER - 0.15 <= r.speaker.heard / r.speaker.rate_hz <= most + 0.15


def without_pauses(seconds: float) -> Samples:
    """People who never stop: recordings end to end."""
    clips = [clip.audio.samples for clip in human_clips() if clip.name.startswith("librivox")]
    speech = np.concatenate(clips)
    wanted = round(seconds * HEARING_RATE_HZ)
    return np.tile(speech, wanted // len(speech) + 1)[:wanted]


@pytest.mark.slow
@pytest.mark.parametrize("judge", [judged, None])
@virtual_time
async def test_130_seconds_of_speech_lose_nothing(judge: EndOfTurn | None) -> None:
    async with room(slow(), judge, full_duplex=False, endpoint={"silence_ms": 900}) as r:
        over = r.session.next_turn()
        first = r.say(without_pauses(130))
        turn = await over
        begin, end = r.heard()
    assert [finished.outcome for finished in r.finished] == ["answered"]
    assert begin <= first
    assert end >= first + 129.7 * HEARING_RATE_HZ, "the last 0.3 s may be breath"
    assert turn.transcript == f"I heard {end - begin} samples."


@pytest.mark.slow
@virtual_time
async def test_130_seconds_of_speech_past_the_limit_lose_nothing() -> None:
    """Piece by piece, of no more than 20 s each."""
    engines = slow()
    long = {
        "detect": {"max_utterance_s": 20},
        "endpoint": {"silence_ms": 900},
        "drafts": {"most_per_turn": 0},
    }
    async with room(engines, judged, full_duplex=False, **long) as r:
        over = r.session.next_turn()
        first = r.say(without_pauses(130))
        turn = await over
    assert [finished.outcome for finished in r.finished] == ["answered"]
    assert max(audio.seconds for audio in engines.heard_audio) <= 20.1
    # The pieces that the question is made of; between them lie endpoints that were taken back.
    assert turn.transcript is not None
    wanted = [int(word) for word in turn.transcript.split() if word.isdigit()]
    pieces: list[Samples] = []
    for audio in reversed(engines.heard_audio):
        if wanted and len(audio.samples) == wanted[-1]:
            pieces.insert(0, audio.samples)
            wanted.pop()
    assert not wanted
    assert len(pieces) >= 7
    engines.heard_audio = [Audio(np.concatenate(pieces), HEARING_RATE_HZ)]
    begin, end = r.heard()
    assert begin <= first
    assert end >= first + 129.7 * HEARING_RATE_HZ


@virtual_time
async def test_noise_like_voices_that_never_ends_is_closed_at_the_limit_and_dropped() -> None:
    engines = quick()
    engines.words = ""
    voices = without_pauses(70).astype(np.float32)
    # Several people at once, none of them to be understood.
    babble = sum(np.roll(voices, round(shift * HEARING_RATE_HZ)) for shift in (0, 4.3, 9.1, 15.7)) / 3
    async with room(engines, detect={"max_utterance_s": 20}, endpoint={"incomplete_ms": 1400}) as r:
        r.say(np.clip(babble, -32768, 32767).astype(np.int16))
        await asyncio.sleep(75)
        assert r.session.phase == "listening"
        assert {turn.outcome for turn in r.finished} == {"no_speech"}
        assert max(audio.seconds for audio in engines.heard_audio) <= 20.1
        assert max(audio.seconds for audio in engines.heard_audio) >= 14.9, "it was closed by the limit"
        assert engines.said == []
        engines.words = "What time is it?"
        over = r.session.next_turn()
        r.say(recording(SENTENCES[0]))
        assert (await over).outcome == "answered"
    assert len(r.session.history.exchanges) == 1
