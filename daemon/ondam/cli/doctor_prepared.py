"""``ondam doctor``: whether what engines keep for this machine's cards (``ondam engines warm``) is made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ondam.cli.finding import Finding
from ondam.errors import EngineError, OndamError
from ondam.messages import Phrase
from ondam.places import Places
from ondam.supervisor.environment import installed
from ondam.supervisor.warm import warm

if TYPE_CHECKING:
    from ondam.config import SupervisorConfig
    from ondam.planner.plan import Plan, PlannedEngine
    from ondam.supervisor.manifest import EngineFolder


def prepared(
    plan: Plan, engines: Mapping[str, EngineFolder], here: Places, config: SupervisorConfig
) -> Iterator[Finding]:
    """They say it themselves. An engine without its environment is told elsewhere."""
    for planned in plan.launched:
        engine = engines[planned.engine]
        if not engine.manifest.launch.warmed or planned.device == "cpu":
            continue
        with suppress(OndamError):
            installed(engine, here, planned.variant)
            yield _looked_at(engine, planned, here, config)


def _looked_at(
    engine: EngineFolder, planned: PlannedEngine, here: Places, config: SupervisorConfig
) -> Finding:
    cut_off = {"isolated": config.isolation != "off", "required": config.isolation == "require"}
    try:
        warm(engine, planned, here, **cut_off, progress=_Unseen(), log=Path(os.devnull), look=True)
    except EngineError as error:
        reason = error.facts.get("reason", error.code)
        return Finding.told(
            "engines", False, Phrase("doctor_engine_unprepared", name=engine.name, reason=reason)
        )
    return Finding.told("engines", True, Phrase("engine_warm", engine=engine.name))


class _Unseen:
    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """A look is over before anybody could read it."""
