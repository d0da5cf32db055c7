"""vLLM's engine core dies while the server in front of it lives: noticed, told and started again."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.fakes.engine.rig import alive, settings, until
from tests.fakes.vllm_program import engine_folder, model, planned

from ondam.places import Places
from ondam.planner.plan import Plan, Policy
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.launch import Home
from ondam.supervisor.status import Change


def fleet(home: Places, case: str, note: Path) -> tuple[Fleet, list[Change]]:
    engine = engine_folder(case, file=str(note))
    found = Fleet(
        home,
        settings(ping_timeout_s=0.3),
        {"vllm": engine},
        find_home=lambda engine: Home(Path(sys.executable), engine.path),
    )
    changes: list[Change] = []
    found.subscribe(changes.append)
    return found, changes


def told(changes: list[Change]) -> list[str]:
    return [change.fault.code for change in changes if change.fault]


async def test_a_dead_core_is_noticed_and_the_whole_engine_started_again(
    home: Places, tmp_path: Path
) -> None:
    note = tmp_path / "note.json"
    watched, changes = fleet(home, "graphs", note)
    try:
        watched.launch(Plan((planned(model(tmp_path / "m")),)))
        await until(lambda: watched.engine("llm"), within_s=20)
        (status,) = watched.status()
        assert (status.state, status.fit, status.loads, status.faults) == ("ready", "as_planned", 1, ())
        core = psutil.Process(json.loads(note.read_text())["core"])
        family = psutil.Process(status.pid).children(recursive=True)
        core.kill()
        await until(lambda: "engine_restarting_llm" in told(changes))
        await until(lambda: not any(alive(process) for process in family))
        await until(lambda: told(changes)[-1] == "engine_back_llm", within_s=20)
        (again,) = watched.status()
        assert (again.state, again.fit, again.restarts) == ("ready", "as_planned", 1)
        assert again.pid != status.pid
        hung = [
            change.fault for change in changes if change.fault and change.fault.code.startswith("engine_re")
        ]
        assert hung[0] is not None and hung[0].facts["why"] == "engine_hung"
    finally:
        await watched.stop()
    assert not list(home.runtime.glob("*.sock"))


@pytest.mark.parametrize("policy", ["warn", "require"])
async def test_eager_is_loud_and_refused_where_the_plan_requires(
    home: Places, tmp_path: Path, policy: Policy
) -> None:
    watched, changes = fleet(home, "eager", tmp_path / "note.json")
    plan = replace(planned(model(tmp_path / "m")), policy=policy)
    try:
        watched.launch(Plan((plan,)))
        await until(lambda: changes and changes[-1].status.state in {"ready", "failed"}, within_s=20)
        (status,) = watched.status()
        if policy == "warn":
            assert (status.state, status.fit) == ("ready", "differs")
            assert [fault.code for fault in status.faults] == ["engine_lost_graphs"]
        else:
            assert (status.state, status.fit) == ("failed", "refused")
            assert status.faults[0].code == "engine_refused_by_plan"
    finally:
        await watched.stop()
