"""Whole turns on the real embedded engines: real sockets, real processes, a WAV in real time."""

from __future__ import annotations

import asyncio
import re
from typing import cast

import jiwer
import numpy as np
import pytest

from ondam.control import wire
from ondam.control.sound import decode, encode
from ondam.journal.marks import STAGES
from ondam.journal.recorder import read_turns
from ondam.measure.clips import clips
from ondam.speech import ClauseStream
from tests.fakes.human_clips import human_clips
from tests.scenarios.house import House, engine

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

ENGINES = ("faster_whisper", "llama_server", "piper", "espeak")


def plain(text: str) -> str:
    return re.sub(r"[^a-z0-9' ]", "", text.lower()).strip()


def aloud(text: str) -> str:
    """With numbers as words, however the model and the recognizer write them."""
    stream = ClauseStream("en")
    return " ".join(clause.spoken for clause in (*stream.feed(text), *stream.finish()))


async def ask(house: House, number: int, *, fresh: bool = True) -> tuple[wire.Turn, bytes]:
    shipped = clips("en")
    async with house.client() as client:
        return await client.wav_turn(shipped[number % len(shipped)].wav, "en", reset_history=fresh)


async def test_the_question_is_understood_and_the_answer_can_be_understood(resident: House) -> None:
    # Two at a time: the engines take their requests in turn, and people speak as long as they speak.
    shipped = clips("en")
    answers: list[tuple[wire.Turn, bytes]] = []
    for number in range(0, len(shipped), 2):
        answers += await asyncio.gather(*(ask(resident, one) for one in range(number, number + 2)))
    said: list[str] = []
    back: list[str] = []
    for clip, (turn, wav) in zip(shipped, answers, strict=True):
        assert turn["outcome"] == "answered"
        assert plain(turn["transcript"] or "") == plain(clip.words)
        answer = decode(wav, 10**8)
        assert np.abs(answer.samples).max() > 1000
        async with resident.client() as client:
            heard = await client.transcribe(wav, "en")
        said.append(plain(aloud(turn["reply"] or "")))
        back.append(plain(aloud(heard["text"])))
    # Of all together: a small recognizer may mishear a word of one.
    assert jiwer.cer(said, back) <= 0.1


async def test_a_recording_longer_than_what_is_kept_in_one_piece_is_understood_as_a_whole(
    resident: House,
) -> None:
    speech = next(clip for clip in human_clips() if clip.name == "jfk")
    assert speech.audio.seconds > 10
    settings = {"detect": {"max_utterance_s": 5}, "endpoint": {"mode": "silence", "silence_ms": 2500}}
    async with resident.client() as client:
        wav = encode(speech.audio)
        turn, _ = await client.wav_turn(wav, "en", reset_history=True, settings=settings)
    assert turn["outcome"] == "answered"
    assert turn["utterance_s"] > speech.audio.seconds
    assert jiwer.wer(plain(speech.text), plain(turn["transcript"] or "")) <= 0.15


async def test_stages_add_up_to_first_audio_and_marks_follow_one_another(resident: House) -> None:
    turn, _ = await ask(resident, 0)
    stages = turn["stages_ms"]
    assert set(stages) == set(STAGES)
    told = [value for name in STAGES if (value := stages[name]) is not None]
    assert len(told) == len(STAGES)
    assert sum(told) == pytest.approx(turn["first_audio_ms"], abs=0.1)
    assert all(value >= 0 for value in told)
    marks = {name: at for name, at in turn["marks_ms"].items() if at is not None}
    work = ("stt_sent", "stt_final", "llm_sent", "llm_first_token", "first_clause", "tts_sent")
    order = [marks[name] for name in (*work, "tts_first_audio", "dac_first_sample", "dac_last_sample")]
    assert order == sorted(order)
    assert marks["endpoint"] <= marks["dac_first_sample"], "a draft is not heard before the endpoint"
    # A complete question: the answer is ready, or the short window over; and what the detector lags behind.
    assert 192 <= marks["endpoint"] <= 800


async def test_twenty_turns_leave_every_engine_the_same_process_with_weights_loaded_once(
    resident: House,
) -> None:
    async with resident.client() as client:
        before = await client.status()
    for number in range(0, 20, 4):
        four = await asyncio.gather(*(ask(resident, number + one, fresh=False) for one in range(4)))
        for turn, _ in four:
            assert turn["outcome"] == "answered", turn
            assert turn["llm_calls"] == 1
    async with resident.client() as client:
        after = await client.status()
    for name in ENGINES:
        assert engine(after, name)["pid"] == engine(before, name)["pid"]
        assert engine(after, name)["restarts"] == 0
        assert engine(after, name)["loads"] == (0 if name == "espeak" else 1)
    assert after["last_turn"] is not None
    assert after["last_turn"]["settled"]
    costs = cast(dict[str, float], after["conditions"]["measuring_ms"])
    assert 0 < costs["loop"] < 0.5, "of a turn's time"
    assert 0 < costs["writer"] + costs["counting"] < 50, "1 % of a core in turns of five seconds"


async def test_the_journal_holds_figures_and_no_words(resident: House) -> None:
    turn, _ = await ask(resident, 1)
    async with resident.client() as client:
        shown = (await client.turns(1))[0]
    assert shown["transcript"] == turn["transcript"]
    for _ in range(100):
        rows = read_turns(resident.places.journal, limit=50)
        if any((row["session"], row["id"]) == (turn["session"], turn["id"]) for row in rows):
            break
        await asyncio.sleep(0.05)
    row = next(r for r in rows if (r["session"], r["id"]) == (turn["session"], turn["id"]))
    assert row["first_audio_ms"] == turn["first_audio_ms"]
    assert row["marks_ms"] == turn["marks_ms"]
    assert row["transcript"] is None
    words = {word for clip in clips("en") for word in plain(clip.words).split() if len(word) > 4}
    words -= {"system"}  # "solar system", and the name of a condition
    written = resident.places.journal.read_bytes().decode("latin-1").lower()
    assert not {word for word in words if word in written}


async def test_typed_questions_and_texts_to_say_go_through_the_same_engines(resident: House) -> None:
    async with resident.client() as client:
        turn = await client.ask("What is the capital of France?")
        assert turn["outcome"] == "answered"
        assert turn["reply"]
        assert turn["first_audio_ms"] is None
        said = await client.say("Hello there.")
        assert 0.3 < said["audio"]["seconds"] < 3
