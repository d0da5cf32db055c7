"""A difference, from the engine's process to whoever looks at the daemon: status, events, and its end."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

from tests.fakes.engine.rig import Rig, planned, until

from ondam.assistant import Assistant
from ondam.config import load
from ondam.control import wire
from ondam.places import Places

LOST = {"device": "cpu", "why": {"device": "the NVIDIA driver is for CUDA 12.4, CUDA 13 is needed"}}


def assistant_of(rig: Rig, home: Places) -> Assistant:
    return Assistant(
        config=load(None, {"language": "ko"}),
        places=home,
        planner=cast(Any, None),
        config_file=home.config_file,
        fleet=rig.fleet,
        engines={},
        recorder=cast(Any, SimpleNamespace(lost=0, unkept={}, trouble=None, aside=None, cpu_ns=0, written=0)),
        voice=cast(Any, None),
        end_of_turn=None,
        end=lambda *, asked: None,
    )


async def heard(assistant: Assistant, into: list[wire.Event]) -> None:
    async with assistant.subscribe() as events:
        async for event in events:
            into.append(event)


async def test_what_differs_is_in_status_and_events_until_it_is_gone(home: Places) -> None:
    async with Rig(home, planned("stt", device="cuda:0", report={**LOST, "providers": {}})) as rig:
        assistant, events = assistant_of(rig, home), []  # type: tuple[Assistant, list[wire.Event]]
        listening = asyncio.create_task(heard(assistant, events))
        await asyncio.sleep(0)
        await rig.start()
        status = assistant.status()
        assert (status["fit"], status["engines"][0]["fit"], status["engines"][0]["policy"]) == (
            "differs", "differs", "warn"
        )  # fmt: skip
        (fault,) = status["faults"]
        assert (fault["code"], fault["next"]) == ("engine_lost_gpu", "ondam doctor")
        assert "그래픽카드(cuda:0) 대신 CPU에서" in fault["text"] and "CUDA 12.4" in fault["text"]
        assert [told["code"] for told in status["engines"][0]["faults"]] == ["engine_lost_gpu"]
        engines = cast(dict[str, Any], assistant.conditions()["engines"])
        assert engines["stt"]["differs"] == [
            {"what": "device", "wanted": "cuda:0", "got": "cpu", "why": LOST["why"]["device"]}  # type: ignore[index]
        ]
        path = home.engine_report("stt")
        path.write_text(json.dumps({**json.loads(path.read_text()), "device": "cuda:0", "why": {}}))
        await until(lambda: assistant.status()["fit"] == "as_planned")
        await until(lambda: any(event["type"] == "fault_cleared" for event in events))
        assert assistant.status()["faults"] == []
        assert [e["fault"]["code"] for e in events if e["type"] == "fault"][:1] == ["engine_lost_gpu"]
        fits = [e["engine"]["fit"] for e in events if e["type"] == "engine"]
        assert "differs" in fits and fits[-1] == "as_planned"
        listening.cancel()


async def test_a_refusal_says_why_beside_what_the_user_lost_and_ends_when_it_fits(home: Places) -> None:
    reports: list[dict[str, Any]] = [{**LOST, "providers": {}}, {"providers": {}}]
    lives = str(home.runtime / "lives")
    engine = planned("stt", policy="require", device="cuda:0", reports=reports, lives=lives)
    async with Rig(home, engine) as rig:
        assistant = assistant_of(rig, home)
        await rig.start()
        status = assistant.status()
        assert status["fit"] == "refused"
        assert [fault["code"] for fault in status["faults"]] == ["engine_down_stt", "engine_refused_by_plan"]
        assert "CUDA 12.4" in status["faults"][1]["text"]
        assert "ondam engines restart stt" in status["faults"][1]["next"]
        await rig.fleet.restart("stt")
        await until(lambda: assistant.status()["fit"] == "as_planned")
        assert assistant.status()["faults"] == []
