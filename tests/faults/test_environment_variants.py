"""An environment that was built for another variant than the plan's is not started, and says what to type."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.engine.rig import FOLDER, engine_folder, planned, settings, until

from ondam.places import Places
from ondam.planner.plan import Plan
from ondam.supervisor.environment import build
from ondam.supervisor.fleet import Fleet


class Nothing:
    """No package is needed, and no progress watched."""

    def uv_environment(self) -> dict[str, str]:
        return {"UV_OFFLINE": "1"}

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        pass


async def test_another_variant_than_the_plans_is_not_started(home: Places) -> None:
    found = engine_folder("stt")
    assert found.path == FOLDER
    lock = home.data / "empty.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    tables = found.manifest.environment.model_copy(update={"locks": {"cpu": str(lock), "cu13": str(lock)}})
    found = replace(found, manifest=found.manifest.model_copy(update={"environment": tables}))
    build(found, "cpu", home, registry=Nothing(), progress=Nothing(), log=home.logs / "b.log")
    fleet = Fleet(home, settings(), {"stt": found})
    fleet.launch(Plan((replace(planned("stt"), variant="cu13"),)))
    await until(lambda: fleet.status()[0].faults)
    (status,) = fleet.status()
    (fault,) = status.faults
    assert (status.pid, fault.facts.get("built"), fault.facts.get("wanted")) == (None, "cpu", "cu13")
    assert fault.code == "engine_other_variant"
    await fleet.stop()
