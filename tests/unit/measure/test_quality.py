"""Errors beside latency, in virtual time with engines made of a script."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time

from ondam.measure.quality import Quality, measure
from ondam.measure.transcripts import Recording
from ondam.pipeline.ports import Transcript
from ondam.types import HEARING_RATE_HZ, Audio, Language

SECOND = Audio(np.zeros(HEARING_RATE_HZ, np.int16), HEARING_RATE_HZ)


class Ears(ScriptedEngines):
    """Mishears a name that it was not told, and takes longer when it was."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[Sequence[str]] = []

    async def transcribe(self, audio: Audio, language: Language, names: Sequence[str] = ()) -> Transcript:
        self.names.append(names)
        self.heard_audio.append(audio)
        await asyncio.sleep(0.2 if names else 0.1)
        return Transcript("from Seoul to Busan" if names else "from salt to basin")


def clip(name: str = "a.wav", words: str = "From Seoul to Busan.") -> Recording:
    return Recording(name, words, 1.0, lambda: SECOND)


async def run(
    engines: ScriptedEngines,
    clips: Sequence[Recording] = (),
    sentences: Sequence[str] = (),
    names: Sequence[str] = (),
) -> Quality:
    def clock() -> int:
        return round(asyncio.get_running_loop().time() * 1e9)

    return await measure(engines, engines, clips, sentences, names, language="en", clock=clock)


@virtual_time
async def test_names_are_shown_to_cost_and_to_help_in_the_same_run() -> None:
    ears = Ears()
    told = (await run(ears, [clip("a"), clip("b")], names=["Seoul", "Busan"])).as_json()
    without, named = told["stt"]["without_names"], told["stt"]["with_names"]
    assert (without["wer"], without["ms"]["p50"]) == (0.5, 100)
    assert (named["wer"], named["ms"]["p50"]) == (0.0, 200)
    # Every second clip the other way round.
    assert [bool(names) for names in ears.names] == [False, True, True, False]
    assert told["clips"][0]["without_names"]["heard"] == "from salt to basin"


@virtual_time
async def test_without_names_there_is_no_second_side() -> None:
    told = (await run(Ears(), [clip()])).as_json()
    assert told["stt"]["with_names"] is None
    assert told["clips"][0]["with_names"] is None
    assert told["stt"]["without_names"]["words"] == 4


@virtual_time
async def test_a_sentence_is_spoken_and_heard_again() -> None:
    engines = ScriptedEngines(heard="It is three.", tts_s=0.05, stt_s=0.1)
    told = (await run(engines, sentences=["It is 3.", "It is four."])).as_json()
    back = told["round_trip"]
    assert [one["round_trip"]["wer"] for one in told["sentences"]] == [0.0, 0.3333]
    assert (back["wer"], back["first_audio_ms"]["p50"], back["ms"]["p50"]) == (0.1667, 50, 100)
    # The voice is given the reading, and what it made is heard at 16 kHz with a pause around it.
    assert engines.said[0] == "It is three."
    made = told["sentences"][0]["seconds"]
    assert abs(engines.heard_audio[0].seconds - made - 0.6) < 0.01
    assert back["rtf"] == pytest.approx(0.1 / sum(one["seconds"] for one in told["sentences"]), abs=2e-4)


@virtual_time
async def test_an_engine_that_fails_is_told_at_its_clip_and_counts_in_no_rate() -> None:
    engines = ScriptedEngines(breaks={"stt"})
    told = (await run(engines, [clip()], ["It is three."])).as_json()
    assert told["stt"]["without_names"]["failed"] == told["round_trip"]["failed"] == 1
    assert told["stt"]["without_names"]["cer"] is None
    assert told["clips"][0]["without_names"]["error"]
    silent = ScriptedEngines(breaks={"tts"})
    assert (await run(silent, [], ["It is three."])).as_json()["round_trip"]["failed"] == 1
