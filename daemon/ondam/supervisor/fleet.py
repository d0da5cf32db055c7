"""All engines of a plan: started side by side, stopped together, and which one to talk to now."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from ondam.config import SupervisorConfig
from ondam.errors import EngineError
from ondam.places import BERTHS, Places
from ondam.planner.plan import OutsideEngine, Plan, PlannedEngine
from ondam.supervisor.clock import Clock, MonotonicClock
from ondam.supervisor.crew import Crew
from ondam.supervisor.environment import installed
from ondam.supervisor.family import Identity
from ondam.supervisor.keeper import LOOK_EVERY_S, Keeper
from ondam.supervisor.launch import Home
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.outside import Outside
from ondam.supervisor.status import Change, EngineStatus, Fault
from ondam.supervisor.warden import Warden
from ondam.types import Stage

_log = logging.getLogger(__name__)

Subscriber = Callable[[Change], None]

KEPT_CREWS = 4
"""Turns that are still under way belong to one of the last two."""


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
        self._crew = Crew(0, Plan(()), {})
        self._before: deque[Crew] = deque(maxlen=KEPT_CREWS)
        """Who served before, the latest last."""
        self._tasks: dict[Keeper | Outside, asyncio.Task[None]] = {}
        """Of all that run, whether they serve or not."""
        self._trials: dict[Keeper | Outside, asyncio.Future[None]] = {}
        """Of newcomers that are being started."""
        self._served: set[Keeper | Outside] = set()
        """All that serve or did, until they are forgotten."""
        self._subscribers: list[Subscriber] = []
        self._restarting: defaultdict[Keeper | Outside, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._stopping = False

    def launch(self, plan: Plan) -> None:
        """Begin to start every engine of ``plan``; returns at once. Raises KeyError on an unknown engine."""
        self._warden.ensure()
        keepers: dict[str, Keeper | Outside] = {engine.engine: self.hire(engine) for engine in plan.launched}
        keepers |= {outside.address: self._outside(outside) for outside in plan.outside}
        self._crew = Crew(0, plan, keepers)
        self._served.update(keepers.values())
        for keeper in keepers.values():
            self._run(keeper)

    @property
    def crew(self) -> Crew:
        """Who serves now."""
        return self._crew

    def crew_of(self, number: int) -> Crew:
        """Those who served under that number; who serves now, where they were forgotten."""
        return next((crew for crew in self._before if crew.number == number), self._crew)

    def hire(self, planned: PlannedEngine) -> Keeper:
        """One more engine, which is not started yet and serves nobody. Raises KeyError on an unknown one."""
        taken = {
            keeper.berth
            for keeper, task in self._tasks.items()
            if isinstance(keeper, Keeper) and keeper.planned.engine == planned.engine and not task.done()
        }
        return Keeper(
            planned,
            self._engines[planned.engine],
            find_home=self._find_home or partial(installed, places=self._places, variant=planned.variant),
            places=self._places,
            config=self._config,
            clock=self._clock,
            daemon=self._daemon,
            tell=self._changed,
            berth=next(berth for berth in BERTHS if berth not in taken),
        )

    async def try_out(self, newcomers: Iterable[Keeper]) -> None:
        """Start them all; return when all have answered once.

        Raises EngineError with what befell the first that did not; all are then still to be dismissed.
        """
        self._warden.ensure()
        coming = tuple(newcomers)
        trials = [asyncio.get_running_loop().create_future() for _ in coming]
        self._trials |= zip(coming, trials, strict=True)
        try:
            for keeper in coming:
                self._run(keeper)
            await asyncio.gather(*trials)
        finally:
            for keeper in coming:
                self._trials.pop(keeper, None)
        self.still_up(coming)

    def still_up(self, keepers: Iterable[Keeper]) -> None:
        """Raises EngineError with what befell the first of them that has ended since it was ready."""
        for keeper in keepers:
            if keeper.state != "ready" or keeper.restarts:
                raise _why_not(keeper)

    def serve(self, plan: Plan, keepers: Iterable[Keeper | Outside], switching: Iterable[Stage] = ()) -> Crew:
        """These serve from now on; returns who did until now. Whoever is new is told of as a change."""
        before = self._crew
        self._before.append(before)
        named = {_name(keeper): keeper for keeper in keepers}
        self._crew = Crew(before.number + 1, plan, named, frozenset(switching))
        self._served.update(named.values())
        for keeper in named.values():
            if before.keepers.get(_name(keeper)) is not keeper:
                self._changed(keeper, None)
        return before

    def start(self, keepers: Iterable[Keeper | Outside]) -> None:
        """Begin to start those that serve and were dismissed, their past forgotten."""
        for keeper in keepers:
            if not self._stopping and self._tasks[keeper].done():
                self._run(keeper)

    async def up(self, keepers: Iterable[Keeper | Outside]) -> None:
        """Return when each of these is ready or has failed for good."""
        while any(keeper.state not in {"ready", "failed"} for keeper in keepers):
            await self._clock.sleep(LOOK_EVERY_S)

    async def dismiss(self, keepers: Iterable[Keeper | Outside]) -> None:
        """End these engines and all they started; return when nothing of them is left."""

        async def ended(keeper: Keeper | Outside) -> None:
            async with self._restarting[keeper]:
                if (task := self._tasks.get(keeper)) is not None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

        await asyncio.gather(*(ended(keeper) for keeper in keepers))

    def forget(self, keepers: Iterable[Keeper | Outside]) -> None:
        """They were dismissed for good."""
        for keeper in keepers:
            self._tasks.pop(keeper, None)
            self._restarting.pop(keeper, None)
            self._served.discard(keeper)

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
        keeper = self._crew.keepers[name]
        # Two at once would both see the old one end, and each start a new one on the same socket.
        async with self._restarting[keeper]:
            task = self._tasks[keeper]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if self._stopping or self._crew.keepers.get(name) is not keeper:
                return
            keeper.restarts += 1
            self._run(keeper)

    def status(self) -> tuple[EngineStatus, ...]:
        """Every engine that serves, in the plan's order."""
        return self._crew.status()

    def engine(self, stage: Stage) -> EngineStatus | None:
        """Whom to talk to now: the first that is ready, else the ready spare (``.spare``), else None."""
        return self._crew.engine(stage)

    def note_answer(self, name: str) -> None:
        """The engine has answered a request of ours. Raises KeyError."""
        self._crew.note_answer(name)

    def note_failure(self, name: str, code: str) -> None:
        """A request of ours ended with the error ``code``. Two in a row that were not answered: it is hung.

        Raises KeyError.
        """
        self._crew.note_failure(name, code)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` on the loop with every change from now on. Returns how to stop that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def _outside(self, outside: OutsideEngine) -> Outside:
        return Outside(outside, self._config, self._clock, self._changed)

    def _run(self, keeper: Keeper | Outside) -> None:
        task = asyncio.create_task(keeper.run(), name=f"engine {_name(keeper)}")
        task.add_done_callback(_log_fault)
        task.add_done_callback(lambda _: self._tried(keeper, over=True))
        self._tasks[keeper] = task

    def _tried(self, keeper: Keeper | Outside, *, over: bool = False) -> None:
        """A newcomer is ready, or will not be: its first end is the end of the trial."""
        trial = self._trials.get(keeper)
        if trial is None or trial.done():
            return
        if over or keeper.state in {"restarting", "failed"}:
            trial.set_exception(_why_not(keeper))
        elif keeper.state == "ready":
            trial.set_result(None)

    def _changed(self, keeper: Keeper | Outside, fault: Fault | None) -> None:
        name = _name(keeper)
        if self._crew.keepers.get(name) is not keeper:
            self._tried(keeper)
            # Of one that leaves it is told that it is gone, unless there is another of that name.
            if keeper not in self._served or keeper.state != "stopped" or name in self._crew.keepers:
                return
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


def _name(keeper: Keeper | Outside) -> str:
    return keeper.planned.engine if isinstance(keeper, Keeper) else keeper.planned.address


def _why_not(keeper: Keeper | Outside) -> EngineError:
    # It may be up again by now, with its faults forgotten.
    ended = keeper.last_end if isinstance(keeper, Keeper) else None
    fault = ended or next(iter(keeper.status().faults), None)
    if fault is None:
        return EngineError("engine_not_started", engine=_name(keeper), reason=keeper.state)
    return EngineError(fault.code, **fault.facts)
