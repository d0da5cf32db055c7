from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.errors import ConfigError
from ondam.measure.stubs import delays, heard_short, stub_engines, stub_settings
from ondam.pipeline.ports import SpeechStart, Token
from ondam.speech import ClauseStream
from ondam.types import HEARING_RATE_HZ, Audio

MS = {"stt": 40.0, "ttft": 30.0, "clause": 60.0, "tts": 50.0}


def sound(samples: int) -> Audio:
    return Audio(np.zeros(samples, np.int16), HEARING_RATE_HZ)


def test_delays_are_read_in_milliseconds() -> None:
    assert delays("stt=100,ttft=100,clause=180,tts=99.5") == {
        "stt": 100, "ttft": 100, "clause": 180, "tts": 99.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    "given", ["", "stt=1", "stt=1,ttft=1,clause=1,tts=x", "stt=1,ttft=1,clause=1,tts=-1", "a=1,b=2,c=3,d=4"]
)
def test_anything_else_is_refused(given: str) -> None:
    with pytest.raises(ConfigError):
        delays(given)


def turn(samples: int, utterance_s: float, endpoint_ms: float) -> dict[str, Any]:
    heard = f"I said something for {samples} samples."
    return {"transcript": heard, "utterance_s": utterance_s, "marks_ms": {"endpoint": endpoint_ms}}


def test_words_from_fewer_samples_than_were_spoken_are_found() -> None:
    # 2 s, of which the last 300 ms are the pause: 1.7 s of voice are 27,200 samples.
    assert not heard_short(turn(27_200, 2.0, 300.0))
    assert heard_short(turn(26_000, 2.0, 300.0))


async def test_stub_engines_take_their_time_one_request_at_a_time(tmp_path: Path) -> None:
    settings = stub_settings(tmp_path)
    before = set(psutil.Process().children(recursive=True))
    async with stub_engines(tmp_path, MS):
        recognizer = WyomingRecognizer(settings["stt.address"])
        begun = time.monotonic()
        heard = await asyncio.gather(*(recognizer.transcribe(sound(n), "en") for n in (1600, 3200)))
        assert time.monotonic() - begun >= 2 * 0.040
        assert [t.text for t in heard] == [
            "I said something for 1600 samples.",
            "I said something for 3200 samples.",
        ]
        begun = time.monotonic()
        clauses, tokens = ClauseStream("en"), []
        async for piece in OpenAIResponder(settings["llm.url"]).respond([], max_tokens=9):
            if isinstance(piece, Token):
                tokens.append(time.monotonic() - begun)
                if clauses.feed(piece.text):
                    break
        assert tokens[0] >= 0.030
        assert tokens[-1] >= 0.090, "no clause before it is due"
        begun = time.monotonic()
        async for sounded in WyomingSynthesizer(settings["tts.address"]).synthesize("Hello.", "en"):
            if not isinstance(sounded, SpeechStart):
                break
        assert time.monotonic() - begun >= 0.050
        running = set(psutil.Process().children(recursive=True)) - before
        assert len(running) >= 3
    assert not [process for process in running if process.is_running()]


async def test_a_stub_whose_client_left_is_free_for_the_next(tmp_path: Path) -> None:
    slow = MS | {"stt": 2000.0}
    async with stub_engines(tmp_path, slow):
        recognizer = WyomingRecognizer(stub_settings(tmp_path)["stt.address"])
        left = asyncio.create_task(recognizer.transcribe(sound(1600), "en"))
        await asyncio.sleep(0.1)
        left.cancel()
        begun = time.monotonic()
        await recognizer.transcribe(sound(1600), "en")
        assert time.monotonic() - begun < 3.0
