"""All engines of a plan: started side by side, stopped together, and which one to talk to now."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ondam.config import SupervisorConfig
from ondam.places import Places
from ondam.planner.plan import OutsideEngine, Plan
from ondam.supervisor.clock import Clock, MonotonicClock
from ondam.supervisor.environment import installed
from ondam.supervisor.family import Identity
from ondam.supervisor.keeper import Keeper
from ondam.supervisor.launch import Home
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.outside import Outside
from ondam.supervisor.status import Change, EngineStatus, Fault
from ondam.supervisor.warden import Warden
from ondam.types import Stage

_log = logging.getLogger(__name__)

Subscriber = Callable[[Change], None]


class Fleet:
    """The engines of one daemon. Hold ``instance.claim`` while using it; all on the event loop's thread."""

    def __init__(
        self,
        places: Places,
        config: SupervisorConfig,
        engines: Mapping[str, EngineFolder],
        *,
        clock: Clock | None = None,
        find_home: Callable[[EngineFolder], Home] | None = None,
    ) -> None:
        """``find_home`` says where an engine's environment is; else it is where ``build`` puts it."""
        self._places = places
        self._config = config
        self._engines = engines
        self._clock = clock or MonotonicClock()
        self._find_home = find_home
        self._daemon = Identity.of(os.getpid())
        self._warden = Warden(places.runtime.name)
        self._keepers: dict[str, Keeper | Outside] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._subscribers: list[Subscriber] = []
        self._restarting: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._stopping = False

    def launch(self, plan: Plan) -> None:
        """Begin to start every engine of ``plan``; returns at once. Raises KeyError on an unknown engine."""
        self._warden.ensure()
        for planned in plan.launched:
            self._keepers[planned.engine] = Keeper(
                planned,
                self._engines[planned.engine],
                find_home=self._find_home or partial(installed, places=self._places, variant=planned.variant),
                places=self._places,
                config=self._config,
                clock=self._clock,
                daemon=self._daemon,
                tell=self._changed,
            )
        for outside in plan.outside:
            self._keepers[outside.address] = self._outside(outside)
        for name in self._keepers:
            self._run(name)

    async def stop(self) -> None:
        """End every engine and what it started, in any state: ``stop_timeout_s`` and about a second."""
        self._stopping = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._warden.stop)

    async def restart(self, name: str) -> None:
        """End an engine and begin to start it anew, its past forgotten. Raises KeyError."""
        keeper = self._keepers[name]
        # Two at once would both see the old one end, and each start a new one on the same socket.
        async with self._restarting[name]:
            task = self._tasks[name]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if self._stopping:
                return
            keeper.restarts += 1
            self._run(name)

    def status(self) -> tuple[EngineStatus, ...]:
        """Every engine, in the plan's order."""
        return tuple(keeper.status() for keeper in self._keepers.values())

    def engine(self, stage: Stage) -> EngineStatus | None:
        """Whom to talk to now: the first that is ready, else the ready spare (``.spare``), else None."""
        ready = [status for status in self.status() if status.stage == stage and status.state == "ready"]
        return next(iter(sorted(ready, key=lambda status: status.spare)), None)

    def note_answer(self, name: str) -> None:
        """The engine has answered a request of ours. Raises KeyError."""
        self._keepers[name].note_answer()

    def note_failure(self, name: str, code: str) -> None:
        """A request of ours ended with the error ``code``. Two in a row that were not answered: it is hung.

        Raises KeyError.
        """
        self._keepers[name].note_failure(code)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` on the loop with every change from now on. Returns how to stop that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def _outside(self, outside: OutsideEngine) -> Outside:
        return Outside(outside, self._config, self._clock, self._changed)

    def _run(self, name: str) -> None:
        task = asyncio.create_task(self._keepers[name].run(), name=f"engine {name}")
        task.add_done_callback(_log_fault)
        self._tasks[name] = task

    def _changed(self, keeper: Keeper | Outside, fault: Fault | None) -> None:
        status = keeper.status()
        if status.state == "restarting":
            self._warden.ensure()
        if status.stage == "tts" and fault and fault.code.startswith(("engine_restarting", "engine_down")):
            voice = self.engine("tts")
            if voice is not None and voice.spare and not status.spare:
                fault = replace(fault, code="engine_spare_speaks", facts={**fault.facts, "spare": voice.name})
        for subscriber in tuple(self._subscribers):
            subscriber(Change(status, fault))


def _log_fault(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (fault := task.exception()) is not None:
        _log.error("%s is no longer watched", task.get_name(), exc_info=fault)
