"""A voice that speaks Korean and English, through the whole daemon, on a CPU. Its model stands in for the
real one: every network, shape and step is there, and what it says is a chord of 60 ms for each letter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from ondam.control.client import Client
from ondam.speech import ClauseStream
from ondam.types import Language
from tests.fakes.standins import supertonic
from tests.scenarios.house import House, engine

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

SPEED = 1.05
"""The engine's own."""


@asynccontextmanager
async def speaking(folder: Path, *, work: int, **options: object) -> AsyncIterator[tuple[House, Client]]:
    """A Korean house with that voice and no other."""
    model = supertonic.build(folder / "voice", work)
    settings = {
        "language": "ko",
        "tts.engine": "supertonic",
        "tts.model": str(model),
        "tts.spare": "",
        **{f"engines.supertonic.{name}": str(value) for name, value in options.items()},
    }
    house = House(folder / "house", settings)
    house.open()
    try:
        await house.ready()
        async with house.client() as client:
            yield house, client
    finally:
        assert house.close() == 0


def clauses(text: str, language: Language) -> list[str]:
    """What the daemon sends the voice."""
    stream = ClauseStream(language)
    return [clause.spoken for clause in (*stream.feed(text), *stream.finish())]


async def seconds(client: Client, text: str, language: Language) -> float:
    """How long it speaks; that it is heard."""
    speech = await client.synthesize(text, language)
    samples = np.frombuffer(speech.pcm, "<i2")
    assert speech.rate_hz == supertonic.RATE_HZ
    assert np.abs(samples).max() > 300
    return len(samples) / speech.rate_hz


def expected(parts: Sequence[str]) -> float:
    return supertonic.seconds(parts, SPEED)


async def test_it_speaks_all_of_what_it_is_given_and_leaves_out_only_what_has_no_sound(
    tmp_path: Path,
) -> None:
    async with speaking(tmp_path, work=4) as (house, client):
        status = await client.status()
        voice = engine(status, "supertonic")
        assert (voice["state"], voice["loads"], voice["faults"]) == ("ready", 1, [])

        # 700 syllables of two letters without a pause: 84 s and more, cut by us in parts and lost nowhere.
        long = "가" * 700
        sent = clauses(long, "ko")
        assert "".join(sent) == long
        spoken = await seconds(client, long, "ko")
        assert spoken == pytest.approx(expected(sent), abs=0.002)
        assert spoken > 700 * 2 * supertonic.SECONDS_PER_UNIT / SPEED

        # ⭐ and a family have no sound; 分析 is read 분석 in Korean and has none in English.
        strange = "⭐ 별점과 데이터 分析, 우리 가족 👨‍👩‍👧‍👦 사진입니다."
        assert clauses(strange, "ko") == ["별점과 데이터 분석,", "우리 가족 사진입니다."]
        assert await seconds(client, strange, "ko") == pytest.approx(
            expected(clauses(strange, "ko")), abs=0.002
        )
        plain = await seconds(client, "Stars and a family.", "en")
        assert await seconds(client, "Stars ⭐ and a 分析 👨‍👩‍👧‍👦 family.", "en") == pytest.approx(
            plain, abs=0.002
        )

        # The same text is the same sound.
        once, again = [await client.synthesize("안녕하세요.", "ko") for _ in range(2)]
        assert once == again
        assert house.process is not None


async def test_what_nobody_waits_for_ends_within_one_step(tmp_path: Path) -> None:
    steps, text = 4, "안녕하세요 반갑습니다 다시 뵙게 되어 기쁩니다."
    async with speaking(tmp_path, work=1500, steps=steps) as (_, client):
        status = await client.status()
        process = psutil.Process(engine(status, "supertonic")["pid"] or 0)
        await _at_rest(process)
        began = time.monotonic()
        # The same text: a longer one takes longer steps.
        await client.synthesize(text, "ko")
        step_s = (time.monotonic() - began) / steps
        assert step_s > 0.1, "a step is too quick to be interrupted"

        answer = asyncio.create_task(client.say(f"{text} " * 5, "ko"))
        while not await asyncio.to_thread(_busy, process):
            assert not answer.done()
            await asyncio.sleep(0)
        # Into the second step.
        await asyncio.sleep(1.2 * step_s)
        assert await asyncio.to_thread(_busy, process)
        await client.stop_speaking()
        left_at = time.monotonic()
        while await asyncio.to_thread(_busy, process):
            assert time.monotonic() < left_at + steps * step_s, "it computed on for nobody"
        stopped_s = time.monotonic() - left_at
        print(f"a step takes {step_s:.3f} s, stopped after {stopped_s:.3f} s")
        # Two looks at the clock are 0.1 s.
        assert stopped_s < step_s + 0.1
        await asyncio.wait_for(answer, 5)

        await client.synthesize("네.", "ko")


async def _at_rest(process: psutil.Process) -> None:
    """Returns when it has computed nothing for half a second: fixed phrases are spoken ahead at first."""
    deadline, rested = time.monotonic() + 60, 0
    while rested < 10:
        assert time.monotonic() < deadline
        rested = 0 if await asyncio.to_thread(_busy, process) else rested + 1


def _busy(process: psutil.Process) -> bool:
    """Whether it computes. A tick of the clock that counts it is 10 ms."""

    def used() -> float:
        times = process.cpu_times()
        return float(times.user + times.system)

    before = used()
    time.sleep(0.05)
    return used() - before > 0.015
