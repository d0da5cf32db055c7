from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import numpy as np
import pytest
from tests.engine_contract.exercise import SENTENCES, Exercise, Hearing, Speaking, spoken
from tests.engine_contract.launched import Launched
from wyoming.client import AsyncUnixClient
from wyoming.event import Event

from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.errors import EngineError
from ondam.types import HEARING_RATE_HZ, Audio, Language

AT_ONCE_S = 0.5
"""What a person would call at once, on a machine whose cores are all busy with the job."""


async def asked(socket: Path, *question: Event) -> Event:
    """The first event that comes back."""
    async with AsyncUnixClient(socket) as client:
        for event in question:
            await client.write_event(event)
        answer: Event | None = await client.read_event()
        assert answer is not None
        return answer


async def test_describe_tells_stage_and_languages(engine: Launched, wyoming: Path) -> None:
    info = (await asked(wyoming, Event("describe"))).data
    manifest = engine.prepared.folder.manifest
    kind, entries = ("asr", "models") if manifest.stage == "stt" else ("tts", "voices")
    told = {
        language for program in info[kind] for entry in program[entries] for language in entry["languages"]
    }
    assert set(manifest.capabilities.languages) <= told


async def test_a_ping_and_describe_are_answered_while_a_job_runs(wyoming: Path, exercise: Exercise) -> None:
    begun = asyncio.Event()
    job = asyncio.create_task(exercise.long(begun))
    await begun.wait()
    waits = []
    for question in (Event("ping", {"text": "a"}), Event("describe")):
        asked_at = time.monotonic()
        answer = await asked(wyoming, question)
        waits.append(time.monotonic() - asked_at)
        assert answer.type == {"ping": "pong", "describe": "info"}[question.type]
    still_busy = not job.done()
    job.cancel()
    await asyncio.wait([job])
    assert max(waits) < AT_ONCE_S
    if not still_busy:
        pytest.skip("it was too quick to be asked while it was busy")


async def test_a_second_request_waits_its_turn_and_is_told_how_long(
    engine: Launched, hearing: Hearing
) -> None:
    audio, _ = spoken(hearing.language)
    recognizer = WyomingRecognizer(engine.address)
    answers = await asyncio.gather(*(recognizer.transcribe(audio, hearing.language) for _ in range(3)))
    queued = sorted(answer.queued_ms or 0.0 for answer in answers)
    each = min(answer.engine_ms or 0.0 for answer in answers)
    assert len({answer.text for answer in answers}) == 1
    assert each > 0
    assert queued[1] > 0.8 * each
    assert queued[2] > 1.6 * each


async def test_speech_is_written_down(engine: Launched, hearing: Hearing) -> None:
    hearing.understands()
    audio, words = spoken(hearing.language)
    began = time.monotonic()
    transcript = await WyomingRecognizer(engine.address).transcribe(audio, hearing.language)
    took_ms = 1e3 * (time.monotonic() - began)
    assert _plain(transcript.text) == _plain(words)
    assert transcript.engine_ms is not None
    assert transcript.queued_ms is not None
    assert 0 < transcript.engine_ms + transcript.queued_ms <= took_ms


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", "", text).lower().split())


async def test_korean_is_heard_as_korean(engine: Launched, hearing: Hearing) -> None:
    if "ko" not in engine.prepared.folder.manifest.capabilities.languages:
        pytest.skip("it does not claim to")
    transcript = await WyomingRecognizer(engine.address).transcribe(spoken("ko")[0], "ko", ["온담"])
    # Not the words: the voice is a machine's that no recognizer understands well.
    assert re.search(r"[가-힣]", transcript.text)


@pytest.mark.parametrize("seconds", [0, 0.01, 1])
async def test_silence_is_no_error(engine: Launched, hearing: Hearing, seconds: float) -> None:
    nothing = Audio(np.zeros(int(seconds * HEARING_RATE_HZ), np.int16), HEARING_RATE_HZ)
    await WyomingRecognizer(engine.address).transcribe(nothing, hearing.language)


async def test_sound_longer_than_a_window_loses_nothing(engine: Launched, hearing: Hearing) -> None:
    hearing.understands()
    audio, words = spoken(hearing.language)
    pause = np.zeros(HEARING_RATE_HZ, np.int16)
    times = 1 + int(40 / (audio.seconds + 1))
    long = Audio(np.concatenate([np.concatenate([audio.samples, pause])] * times), HEARING_RATE_HZ)
    transcript = await WyomingRecognizer(engine.address).transcribe(long, hearing.language)
    rare = max(_plain(words).split(), key=len)
    assert _plain(transcript.text).split().count(rare) == times


async def test_every_language_that_a_voice_claims_is_spoken(engine: Launched, speaking: Speaking) -> None:
    languages: list[Language] = ["ko", "en"]
    claimed = [
        known for known in languages if known in engine.prepared.folder.manifest.capabilities.languages
    ]
    assert claimed
    for language in claimed:
        start, samples = await speaking.say(SENTENCES[language], language)
        assert start.rate_hz == engine.prepared.folder.manifest.capabilities.sample_rate_hz
        assert start.engine_ms is not None
        assert start.engine_ms > 0
        assert 1 < len(samples) / start.rate_hz < 8
        loud = np.sqrt(np.mean(np.square(samples.astype(np.float64))))
        assert 300 < loud < 15_000


async def test_a_language_that_a_voice_lacks_is_refused(engine: Launched, speaking: Speaking) -> None:
    languages: list[Language] = ["ko", "en"]
    lacking = [
        language
        for language in languages
        if language not in engine.prepared.folder.manifest.capabilities.languages
    ]
    for language in lacking:
        with pytest.raises(EngineError) as caught:
            await speaking.say(SENTENCES[language], language)
        assert caught.value.facts["kind"] == "unsupported_language"


STRANGE = ["", " ", "...", "🙂", "a" * 300, "\0", "ㅋㅋ", "1번", "\u200b", "<b>&amp;</b>"]


@pytest.mark.parametrize("text", STRANGE)
async def test_no_text_kills_a_voice(speaking: Speaking, text: str) -> None:
    await speaking.say(text)
    await speaking.short()
