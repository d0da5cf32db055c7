"""Sessions at once, in virtual time: a daemon made of one engine that serves one request at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.fakes.virtual_time import virtual_time
from tests.unit.control.fake_daemon import engine
from tests.unit.control.fake_daemon import turn as wire_turn

from ondam.errors import AudioError, ControlError
from ondam.measure.bench import Question
from ondam.measure.concurrency import Step, as_json, measure
from ondam.types import HEARING_RATE_HZ, Audio

SPEAKS_S = 2.0
SERVES_S = 0.5


def question(name: str) -> Question:
    return Question(name, name.encode(), Audio(np.zeros(1600, np.int16), HEARING_RATE_HZ), None)


QUESTIONS = [question(name) for name in "abcd"]


@dataclass
class OneAtATime:
    """``failing`` is raised at the n-th turn."""

    failing: dict[int, Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    now: int = 0
    most: int = 0
    cancelled: int = 0
    engine: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def status(self) -> Any:
        return {"engines": [engine()], "pid": 1}

    async def wav_turn(
        self, wav: bytes, language: str | None = None, *, reset_history: bool = False
    ) -> tuple[Any, bytes]:
        assert reset_history
        self.asked.append(wav.decode())
        number = len(self.asked)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(SPEAKS_S)
            if number in self.failing:
                raise self.failing[number]
            loop = asyncio.get_running_loop()
            sent = loop.time()
            async with self.engine:
                await asyncio.sleep(SERVES_S)
            took = 1000 * (loop.time() - sent)
            marks = {"stt_sent": 0.0, "stt_final": took, "dac_first_sample": took}
            own = {"stt": 1000 * SERVES_S, "sum": None}
            return dict(wire_turn()) | {"marks_ms": marks, "engine_ms": own, "first_audio_ms": took}, b""
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.now -= 1


async def run(daemon: OneAtATime, *steps: int, **others: Any) -> list[Step]:
    loop = asyncio.get_running_loop()
    given: dict[str, Any] = {"turns": 8, "settle": 0, "seed": 1, **others}
    return await measure(daemon, QUESTIONS, steps, language="en", clock=loop.time, **given)


@virtual_time
async def test_every_step_has_its_sessions_at_once_and_the_same_number_of_turns() -> None:
    daemon = OneAtATime()
    steps = await run(daemon, 1, 4)
    assert [(step.sessions, len(step.turns)) for step in steps] == [(1, 8), (4, 8)]
    assert daemon.most == 4
    assert daemon.now == 0
    # The last counted turn had company until its end.
    assert daemon.cancelled > 0


@virtual_time
async def test_what_waits_for_others_is_shown_as_waiting() -> None:
    alone, many = await run(OneAtATime(), 1, 4, turns=16)
    told = [step.as_json(budget_ms=800) for step in (alone, many)]
    assert told[0]["waited_ms"]["stt"]["max"] == 0
    assert told[1]["waited_ms"]["stt"]["max"] > 0
    assert told[1]["engine_ms"]["stt"]["p50"] == 500
    assert told[1]["waited_ms"]["llm"]["n"] == 0
    per_min = [one["turns_per_min"] for one in told]
    assert per_min[1] > 2 * per_min[0]


@virtual_time
async def test_a_turn_and_its_pause_make_the_throughput() -> None:
    (step,) = await run(OneAtATime(), 1, turns=100)
    # 2 s of speech, 0.5 s of engine, 0.6 s of pause on average: 19.4 a minute.
    assert step.throughput == pytest.approx(60 / 3.1, rel=0.03)


@virtual_time
async def test_the_same_seed_asks_the_same_in_the_same_order() -> None:
    one, same, other = OneAtATime(), OneAtATime(), OneAtATime()
    await run(one, 2, seed=5)
    await run(same, 2, seed=5)
    await run(other, 2, seed=6)
    assert one.asked == same.asked != other.asked
    # Round by round: none twice before all were asked.
    assert all(one.asked.count(name) >= 2 for name in "abcd")


@virtual_time
async def test_settling_turns_and_the_first_of_each_session_do_not_count() -> None:
    daemon = OneAtATime()
    (step,) = await run(daemon, 1, settle=3, turns=2)
    assert len(daemon.asked) == 3 + 1 + 2
    assert len(step.turns) == 2


@virtual_time
async def test_prompts_that_came_whole_from_the_cache_are_counted() -> None:
    (step,) = await run(OneAtATime(), 1, turns=4)
    step.turns[0]["tokens"] = {"prompt": 42, "cached": 41}
    step.turns[1] |= {"tokens": {"prompt": 42, "cached": 42}, "outcome": "failed", "first_audio_ms": None}
    assert step.whole_from_cache == 1, "of those that were answered, and the others had something to compute"


@virtual_time
async def test_a_turn_that_fails_counts_as_failed_and_stops_the_scaling() -> None:
    daemon = OneAtATime(failing={3: AudioError("wav_without_speech")})
    steps = await run(daemon, 1, 2, turns=4)
    told = as_json(steps, budget_ms=800)
    assert told["steps"][0]["failed"] == 1
    assert told["steps"][0]["first_audio_ms"]["n"] == 3
    assert told["stops_at"] == {"sessions": 1, "reason": "failed"}
    assert told["serves"] is None


@virtual_time
async def test_a_daemon_that_is_gone_ends_the_run_and_leaves_no_session_behind() -> None:
    daemon = OneAtATime(failing={4: ControlError("daemon_gone", reason="EOF")})
    with pytest.raises(ControlError, match="EOF"):
        await run(daemon, 4)
    assert daemon.now == 0


@virtual_time
async def test_memory_is_looked_at_before_after_and_between() -> None:
    seen = iter([100.0, 130.0, *[120.0] * 1000])
    (step,) = await run(OneAtATime(), 1, turns=1, resident_mib=lambda: next(seen))
    assert step.as_json(budget_ms=800)["memory_mib"] == {
        "daemon": {"before": 100.0, "after": 120.0, "max": 130.0},
        "faster_whisper": {"before": 181.5, "after": 181.5},
    }
