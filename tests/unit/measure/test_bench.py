"""The run itself, in virtual time: a client and engines made of a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time
from tests.unit.control.fake_daemon import turn as wire_turn

from ondam.config import load
from ondam.control.client import Client
from ondam.errors import AudioError, ControlError
from ondam.measure.bench import Question, Run, Side, asked, cut_short, measure, order, same_words
from ondam.measure.raw import SLOTS, RawEngines
from ondam.types import HEARING_RATE_HZ, Audio

SKY = "05f514fae7ca5710f9e9289a20a5c9b372af781bfc94dd23d9cb8a044122460f"

SILENCE_MODE = {"endpoint": {"mode": "silence"}}


def question(name: str = "sky.wav", words: str | None = None) -> Question:
    return Question(name, name.encode(), Audio(np.zeros(1600, np.int16), HEARING_RATE_HZ), words)


@dataclass
class ScriptedClient:
    """Remembers what was asked; ``failing`` is raised at the n-th question."""

    failing: Mapping[int, Exception] = field(default_factory=dict)
    settles_after: int = 0
    asked: list[tuple[str, object]] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)

    async def wav_turn(
        self, wav: bytes, language: str, *, reset_history: bool, settings: Mapping[str, object] | None
    ) -> tuple[Any, bytes]:
        assert reset_history
        self.asked.append((wav.decode(), settings))
        self.at_s.append(asyncio.get_running_loop().time())
        if len(self.asked) in self.failing:
            raise self.failing[len(self.asked)]
        warmth = {"answers": len(self.asked), "ready_s": self.at_s[-1], "idle_s": 1.0}
        told = {"transcript": "Why is the sky blue?", "warmth": warmth}
        return dict(wire_turn()) | told | {"settled": len(self.asked) > self.settles_after}, b""


def engines_of(scripted: ScriptedEngines) -> RawEngines:
    def clock() -> int:
        return round(asyncio.get_running_loop().time() * 1e9)

    config = load(None, {"language": "en"})
    return RawEngines(scripted, scripted, scripted, config=config, language="en", clock=clock)


async def run(client: ScriptedClient, scripted: ScriptedEngines, turns: int, **others: Any) -> Run:
    questions = others.pop("questions", [question("a"), question("b")])
    settle = others.pop("settle", 0)
    engines, against = engines_of(scripted), others.pop("against", None)
    sides = [Side(cast(Client, client), engines)]
    if against is not None:
        sides.append(Side(cast(Client, client), engines, against))
    return await measure(
        sides,
        questions,
        language="en",
        turns=turns,
        settle=settle,
        **others,
    )


def test_sides_take_turns_at_being_first() -> None:
    assert [order(n, against=True) for n in (0, 1, 2)] == [
        ("turn", "against", "raw"),
        ("raw", "against", "turn"),
        ("turn", "against", "raw"),
    ]
    assert [order(n, against=False) for n in (0, 1)] == [("turn", "raw"), ("raw", "turn")]


@virtual_time
async def test_both_sides_are_asked_the_same_clip_one_right_after_the_other() -> None:
    client = ScriptedClient()
    made = await run(client, ScriptedEngines(), turns=2, against=SILENCE_MODE)
    assert client.asked == [("a", None), ("a", SILENCE_MODE), ("b", SILENCE_MODE), ("b", None)]
    assert [t["clip"] for t in made.turns] == [t["clip"] for t in made.against] == ["a", "b"]


@virtual_time
async def test_turns_before_the_engines_have_settled_are_not_counted() -> None:
    client = ScriptedClient()
    made = await run(client, ScriptedEngines(), turns=3, settle=2)
    assert len(client.asked) == 5
    assert [t["clip"] for t in made.turns] == ["a", "b", "a"]
    assert len(made.raw) == 3


@virtual_time
async def test_the_raw_sum_is_what_the_engines_take_one_after_another() -> None:
    scripted = ScriptedEngines(stt_s=0.1, ttft_s=0.08, token_s=0.01, tts_s=0.05)
    made = await run(ScriptedClient(), scripted, turns=1)
    raw = made.turns[0]["raw_ms"]
    # The fourth token proves that the sentence has ended: 80 ms to the first, three times 10 ms from there.
    assert (raw["stt"], raw["llm_first_token"], raw["llm_first_clause"]) == (100, 80, 110)
    assert (raw["tts_first_audio"], raw["sum"]) == (50, 260)
    assert raw["clause"] == "It is three."
    assert raw["tokens"] == {"prompt": 20, "cached": 12}
    assert scripted.running == 0


@virtual_time
async def test_nothing_else_runs_while_something_is_measured() -> None:
    class Alone(ScriptedEngines):
        async def synthesize(self, text: str, language: Any) -> AsyncGenerator[Any, None]:
            assert self.running == 0, "an engine is still at work"
            async for piece in super().synthesize(text, language):
                yield piece

    client, scripted = ScriptedClient(), Alone(pause_at_end_s=0.5)
    await run(client, scripted, turns=2)
    assert scripted.said == ["It is three.", "It is three."]


@virtual_time
async def test_every_measurement_finds_prompts_that_no_cache_knows() -> None:
    scripted = ScriptedEngines()
    await run(ScriptedClient(), scripted, turns=2, against=SILENCE_MODE)
    displacing = [asked[-1]["content"] for asked in scripted.asked if asked[-1]["content"] != scripted.heard]
    assert len(displacing) == len(set(displacing)) == SLOTS * 6
    assert {asked[0]["content"] for asked in scripted.asked} == {scripted.asked[0][0]["content"]}


@virtual_time
async def test_a_turn_that_fails_is_recorded_and_the_run_goes_on() -> None:
    client = ScriptedClient(failing={1: AudioError("wav_without_speech")})
    made = await run(client, ScriptedEngines(), turns=2)
    assert [t["outcome"] for t in made.turns] == ["failed", "answered"]
    assert made.turns[0]["error"]["code"] == "wav_without_speech"
    assert made.as_json(budget_ms=800, against=None)["failed"] == 1


@virtual_time
async def test_a_daemon_that_is_gone_ends_the_run() -> None:
    client = ScriptedClient(failing={2: ControlError("daemon_gone", reason="EOF")})
    with pytest.raises(ControlError, match="EOF"):
        await run(client, ScriptedEngines(), turns=3)


@virtual_time
async def test_an_engine_that_fails_without_the_daemon_is_counted() -> None:
    made = await run(ScriptedClient(), ScriptedEngines(breaks={"tts"}), turns=2)
    told = made.as_json(budget_ms=800, against=None)
    assert (told["raw_failed"], told["engine_sum_ms"]["n"], told["failed"]) == (2, 0, 0)
    assert told["times_engine_sum"] is None


@virtual_time
async def test_what_is_printed_has_both_sides_and_their_difference() -> None:
    made = await run(ScriptedClient(), ScriptedEngines(), turns=2, against=SILENCE_MODE)
    told = made.as_json(budget_ms=800, against={"settings": SILENCE_MODE})
    assert told["against"]["settings"] == SILENCE_MODE
    assert told["against"]["first_audio_ms"]["p50"] == 640
    assert told["difference_ms"] == {"p50": 0, "p90": 0, "p95": 0, "p99": 0, "max": 0, "n": 2}
    assert told["engine_sum_ms"]["n"] == 2


@virtual_time
async def test_other_words_than_the_clips_are_noticed() -> None:
    questions = [question("a", "Why is the sky blue?"), question("b", "Why is the sea blue?")]
    made = await run(ScriptedClient(), ScriptedEngines(), turns=2, questions=questions)
    assert [t["misheard"] for t in made.turns] == [False, True]


def test_marks_and_case_are_no_words() -> None:
    assert same_words("Why is the sky blue?", "why is the sky blue")
    assert same_words("몇 시야?", "몇시야")
    assert not same_words("sky", "sea")


@pytest.mark.parametrize(("sent", "cut"), [(-20.0, True), (64.0, False)])
def test_recognition_asked_before_the_last_voice_hears_too_little(sent: float, cut: bool) -> None:
    assert cut_short({"marks_ms": {"stt_sent": sent}}) is cut


def test_a_turn_that_never_reached_recognition_was_not_cut_short() -> None:
    assert not cut_short({"marks_ms": {}})


def names(seed: int | None, count: int) -> list[str]:
    return [each.name for each in asked([question(name) for name in "abcd"], count, seed)]


def test_the_same_seed_asks_in_the_same_order_and_every_clip_equally_often() -> None:
    assert names(7, 12) == names(7, 12) != names(8, 12)
    for begin in (0, 4, 8):
        assert sorted(names(7, 12)[begin : begin + 4]) == ["a", "b", "c", "d"]
    assert names(None, 6) == ["a", "b", "c", "d", "a", "b"]


def test_the_second_of_two_pairs_goes_the_other_way_round_whoever_began() -> None:
    assert order(0, against=True, flipped=True) == ("raw", "against", "turn")
    assert order(1, against=True, flipped=True) == ("turn", "against", "raw")
    assert order(0, against=True, apart=True) == ("turn", "against", "raw", "raw_against")


@virtual_time
async def test_it_warms_up_only_until_every_side_has_settled() -> None:
    client = ScriptedClient(settles_after=3)
    made = await run(client, ScriptedEngines(), turns=1, settle=10, against=SILENCE_MODE, until_settled=True)
    # Two answers a question: the fourth is settled, the third of the same question is not.
    assert made.before == 3
    assert len(client.asked) == 2 * 3 + 2


@virtual_time
async def test_it_waits_until_the_engines_have_served_long_enough() -> None:
    client = ScriptedClient(settles_after=99)
    await run(client, ScriptedEngines(), turns=1, settle=2, until_settled=True, settled_s=30.0)
    assert client.at_s[1] < 5
    assert client.at_s[2] >= 30


@virtual_time
async def test_sides_with_engines_of_their_own_are_measured_without_the_daemon_each() -> None:
    one, other = ScriptedClient(), ScriptedClient()
    slow = engines_of(ScriptedEngines(tts_s=0.5))
    sides = [
        Side(cast(Client, one), engines_of(ScriptedEngines(tts_s=0.1))),
        Side(cast(Client, other), slow),
    ]
    made = await measure(sides, [question()], language="en", turns=2, settle=0)
    assert (len(one.asked), len(other.asked)) == (2, 2)
    assert [t["raw_ms"]["tts_first_audio"] for t in made.turns] == [100, 100]
    assert [t["raw_ms"]["tts_first_audio"] for t in made.against] == [500, 500]
    told = made.as_json(budget_ms=800, against={})
    assert told["against"]["raw_ms"]["tts_first_audio"]["p50"] == 500


@virtual_time
async def test_what_was_measured_before_the_daemon_went_away_is_kept() -> None:
    client = ScriptedClient(failing={4: ControlError("daemon_gone", reason="EOF")})
    made = Run()
    with pytest.raises(ControlError):
        await run(client, ScriptedEngines(), turns=3, against=SILENCE_MODE, into=made)
    assert (len(made.turns), len(made.against)) == (1, 2)
    assert made.as_json(budget_ms=800, against={})["difference_ms"]["n"] == 1


def test_a_clip_is_named_by_what_is_in_it() -> None:
    # printf sky | sha256sum
    told = question("sky").as_json()
    assert told == {"name": "sky", "sha256": SKY, "seconds": 0.1}
