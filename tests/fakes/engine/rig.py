"""Puts the misbehaving engine into a fleet: folders, plans, and a time that can be wound on."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from ondam.config import SupervisorConfig
from ondam.places import Places
from ondam.planner.plan import Plan, PlannedEngine, Policy
from ondam.supervisor.clock import Clock
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.launch import Home
from ondam.supervisor.manifest import EngineFolder, Readiness, read_engine
from ondam.supervisor.status import Change
from ondam.types import Stage

FOLDER = Path(__file__).parent

SETTINGS: dict[str, Any] = {
    "policy": "warn",
    "backoff_first_s": 0.05,
    "backoff_last_s": 0.2,
    "restart_limit": 4,
    "restart_window_s": 60.0,
    "ping_every_s": 0.1,
    "ping_timeout_s": 0.4,
    "leak_mib": 1024.0,
    "keep_output": "own",
    "stop_timeout_s": 0.5,
    "isolation": "possible",
}


def settings(**changed: Any) -> SupervisorConfig:
    return SupervisorConfig(**{**SETTINGS, **changed})


def engine_folder(stage: Stage, name: str = "", *, ready_within_s: float = 20.0) -> EngineFolder:
    protocol = "openai" if stage == "llm" else "wyoming"
    changed = {
        "name": name or stage,
        "stage": stage,
        "protocol": protocol,
        "readiness": Readiness(timeout_s=ready_within_s),
    }
    return EngineFolder(FOLDER, read_engine(FOLDER).manifest.model_copy(update=changed))


def planned(
    stage: Stage,
    name: str = "",
    *,
    policy: Policy = "warn",
    spare: bool = False,
    model: Path | None = None,
    sha256: str | None = None,
    device: str = "cpu",
    quantization: str = "",
    memory_gib: float = 0.0,
    **options: Any,
) -> PlannedEngine:
    return PlannedEngine(
        engine=name or stage,
        stage=stage,
        model="a-model",
        model_path=model,
        model_sha256=sha256,
        device=device,
        threads=1,
        language="en",
        options={"stage": stage, **options},
        policy=policy,
        spare=spare,
        quantization=quantization,
        memory_gib=memory_gib,
    )


def here(engine: EngineFolder) -> Home:
    return Home(Path(sys.executable), engine.path)


class Rig:
    """A fleet of fakes and everything that was told about it."""

    def __init__(
        self, places: Places, *engines: PlannedEngine, ready_within_s: float = 20.0, **changed: Any
    ) -> None:
        clock: Clock | None = changed.pop("clock", None)
        python = Path(changed.pop("python", sys.executable))
        folders = {e.engine: engine_folder(e.stage, e.engine, ready_within_s=ready_within_s) for e in engines}
        self.plan = Plan(launched=engines)
        self.fleet = Fleet(
            places,
            settings(**changed),
            folders,
            clock=clock,
            find_home=lambda engine: Home(python, engine.path),
        )
        self.changes: list[Change] = []
        self.fleet.subscribe(self.changes.append)

    async def __aenter__(self) -> Rig:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.fleet.stop()

    async def start(self) -> None:
        """Launch the plan, and wait until every engine of it was ready or failed."""
        self.fleet.launch(self.plan)
        await self.ready_or_failed()

    async def ready_or_failed(self) -> None:
        """Every engine was so at least once."""
        names = {engine.engine for engine in self.plan.launched}
        await until(
            lambda: names <= {c.status.name for c in self.changes if c.status.state in {"ready", "failed"}},
            within_s=20.0,
        )

    @property
    def told(self) -> list[str]:
        """What the user was told."""
        return [change.fault.code for change in self.changes if change.fault]


async def until(true: Callable[[], object], within_s: float = 10.0) -> None:
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.01)


def alive(process: psutil.Process) -> bool:
    """A zombie whose adopted parent is slow to look is dead."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class WoundClock:
    """Time that passes a thousand times faster than the wall's, while somebody waits for it."""

    def __init__(self) -> None:
        self._now = 1000.0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        wake = self._now + seconds
        while self._now < wake:
            await asyncio.sleep(0.001)
            self._now += min(1.0, wake - self._now) if wake > self._now else 0.0
