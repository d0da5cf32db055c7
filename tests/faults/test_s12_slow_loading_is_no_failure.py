"""An engine that needs three minutes to load is loading for three minutes: no restart, no fault."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fakes.engine.rig import Rig, WoundClock, planned, until

from ondam.places import Places


async def test_s12_three_minutes_of_loading_are_waited_for(home: Places, tmp_path: Path) -> None:
    clock, gate = WoundClock(), tmp_path / "loaded"
    async with Rig(home, planned("llm", load_until=str(gate)), ready_within_s=1e6, clock=clock) as rig:
        rig.fleet.launch(rig.plan)
        await until(lambda: rig.fleet.status()[0].state == "loading")
        began = clock.now()
        while clock.now() < began + 180:
            await asyncio.sleep(0.01)
            assert rig.fleet.status()[0].state == "loading"
        gate.touch()
        await rig.ready_or_failed()
        (status,) = rig.fleet.status()
        assert (status.state, status.restarts, status.faults) == ("ready", 0, ())
        assert rig.told == []


async def test_s12_loading_without_end_is_tried_twice_and_not_for_ever(home: Places, tmp_path: Path) -> None:
    clock = WoundClock()
    never = planned("llm", load_until=str(tmp_path / "never"))
    async with Rig(home, never, ready_within_s=30.0, clock=clock) as rig:
        await rig.start()
        (status,) = rig.fleet.status()
        assert (status.state, status.restarts) == ("failed", 1)
        assert [fault.code for fault in status.faults] == ["engine_slow"]
