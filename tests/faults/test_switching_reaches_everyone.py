"""A change of engines as those see it who look at the daemon: status, events, conditions, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.fakes.engine.rig import Rig, planned, until
from tests.unit.test_session import Loud

from ondam.assistant import Assistant
from ondam.config import Config, load
from ondam.control import wire
from ondam.errors import ControlError, EngineError
from ondam.places import Places
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan, PlannedEngine


def llm(name: str, gib: float = 3.0, **options: Any) -> PlannedEngine:
    return replace(planned("llm", memory_gib=gib, **options), model=name)


class Daemon:
    """An assistant without devices on a fleet of fakes, and all that it tells."""

    def __init__(self, home: Places, rig: Rig, gib: float, new: PlannedEngine) -> None:
        self.events: list[wire.Event] = []
        self.rig = rig
        engines = {"old": llm("old"), "new": new}

        def plan(config: Config) -> tuple[Plan, Facts]:
            facts = Facts(2, 2, "a cpu", frozenset(), round(gib * 1024), "linux", "x86_64")
            return Plan((planned("stt"), engines[config.llm.model], planned("tts"))), facts

        self.turns: list[Any] = []
        recorder = SimpleNamespace(
            lost=0,
            unkept={},
            trouble=None,
            aside=None,
            cpu_ns=0,
            written=0,
            record=lambda turn, row: self.turns.append(turn),
        )
        audio = {"microphone": "none", "speaker": "none"}
        self.assistant = Assistant(
            config=load(None, {"language": "ko", "llm": {"model": "old"}, "audio": audio}),
            places=home,
            planner=plan,
            config_file=home.config_file,
            fleet=rig.fleet,
            engines={},
            recorder=cast(Any, recorder),
            voice=cast(Any, Loud),
            end_of_turn=None,
            end=lambda *, asked: None,
        )
        self.assistant._switching.available_gib = lambda: gib

    async def listen(self) -> None:
        async with self.assistant.subscribe() as events:
            async for event in events:
                self.events.append(event)

    @property
    def switch(self) -> wire.Switch:
        found = self.assistant.status()["switch"]
        assert found is not None
        return found

    def states(self) -> list[str]:
        return [event["state"] for event in self.events if event["type"] == "state"]


@asynccontextmanager
async def daemon(home: Places, gib: float, new: PlannedEngine) -> AsyncIterator[Daemon]:
    rig = Rig(home, planned("stt"), llm("old"), planned("tts"))
    async with rig:
        made = Daemon(home, rig, gib, new)
        await rig.start()
        await made.assistant.start()
        listening = asyncio.create_task(made.listen())
        await asyncio.sleep(0)
        try:
            yield made
        finally:
            await made.assistant.close()
            await listening


async def test_between_two_engines_the_state_says_so_and_the_numbers_begin_anew(home: Places) -> None:
    async with daemon(home, 5.0, llm("new")) as it:
        assert it.assistant.status()["switch"] is None
        before = it.assistant.conditions()
        assert (before["engines"]["llm"]["model"], it.assistant.config.llm.model) == ("old", "old")
        done = await it.assistant.switch({"llm.model": "new"}, False)
        assert (done["state"], done["beside"], done["stages"]) == ("done", False, ["llm"])
        assert it.states()[-2:] == ["switching", "listening"]
        steps = [event["switch"]["state"] for event in it.events if event["type"] == "switch"]
        assert list(dict.fromkeys(steps)) == ["planning", "waiting", "stopping", "loading", "warming", "done"]
        status = it.assistant.status()
        assert status["faults"] == [] and status["state"] == "listening"
        assert [e["model"] for e in status["engines"] if e["stage"] == "llm"] == ["new"]
        after = it.assistant.conditions()
        assert after["engines"]["llm"]["model"] == "new" and after["name"] != before["name"]
        assert it.assistant.config.llm.model == "new"


async def test_a_failure_is_in_status_and_events_in_the_users_language(home: Places) -> None:
    async with daemon(home, 64.0, llm("new", crash=3)) as it:
        before = it.assistant.conditions()["name"]
        with pytest.raises(EngineError):
            await it.assistant.switch({"llm.model": "new"}, False)
        assert it.switch["state"] == "failed" and it.switch["beside"] is True
        fault = it.switch["fault"]
        assert fault is not None and fault["code"] == "switch_failed"
        assert "이전 구성을 그대로 사용합니다" in fault["text"] and "3" in fault["text"]
        assert it.events[-1]["type"] == "switch" and it.events[-1]["switch"] == it.switch
        status = it.assistant.status()
        assert (status["faults"], status["state"]) == ([], "listening")
        assert it.assistant.conditions()["name"] == before, "nothing is otherwise than before"
        assert not [event for event in it.events if event["type"] == "engine"], "nobody was disturbed"


async def test_a_turn_that_ends_after_the_change_has_the_conditions_that_it_was_made_under(
    home: Places,
) -> None:
    async with daemon(home, 64.0, llm("new")) as it:
        crew = it.rig.fleet.crew
        before = it.assistant.conditions()["name"]
        lease = it.assistant._engines.lease()
        switching = asyncio.create_task(it.assistant.switch({"llm.model": "new"}, False))
        await until(lambda: it.rig.fleet.crew is not crew)
        remembering, theirs = it.assistant._remembering, it.rig.fleet.crew_of(lease.crew)
        assert remembering.lasting(it.assistant.config, theirs).name == before
        assert it.assistant.conditions()["name"] != before
        assert lease.engines.warmth().answers == 0
        lease.let_go()
        await switching


async def test_who_asks_for_a_chat_meanwhile_is_told_to_wait(home: Places, tmp_path: Any) -> None:
    loads = tmp_path / "load"
    async with daemon(home, 5.0, llm("new", load_until=str(loads))) as it:
        switching = asyncio.create_task(it.assistant.switch({"llm.model": "new"}, False))
        await until(lambda: it.rig.fleet.crew.switching)
        with pytest.raises(EngineError) as caught:
            await it.assistant.chat({"messages": []})
        assert caught.value.code == "engine_switching"
        with pytest.raises(ControlError):
            await it.assistant.switch({"llm.model": "old"}, False)
        assert it.assistant.status()["state"] == "switching"
        loads.touch()
        await switching
        answer = await it.assistant.chat({"messages": []})
        assert b"".join([chunk async for chunk in answer.chunks]).startswith(b'{"choices"')
        assert it.rig.fleet.crew.users == 0
