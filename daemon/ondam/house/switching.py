"""Another model, or another engine, while the conversation goes on. One change at a time.

Where there is room for both, the new engine is started and warmed beside the old one, and takes over between
turns. Where there is not, the old one is stopped first; until the new one is ready, whoever speaks is told to
wait a moment. Either way a turn ends on the engines that it began with, and whatever goes wrong, the old ones
serve again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import psutil

from ondam.config import Config
from ondam.config.contradictions import contradictions
from ondam.config.file import keep
from ondam.config.schema import check
from ondam.errors import ConfigError, ControlError, EngineError, OndamError
from ondam.messages import Phrase, Phrases
from ondam.planner.changeover import Changeover, changeover
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan, PlannedEngine
from ondam.supervisor.crew import Crew
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.keeper import Keeper
from ondam.supervisor.outside import Outside
from ondam.supervisor.status import Fault
from ondam.types import Stage

log = logging.getLogger(__name__)

LONGEST_TURN_S = 300.0
"""How long a turn that began on the old engine may keep it: an answer as long as a model may make it, read
aloud, takes half of that."""

LONGEST_WARM_UP_S = 60.0
"""Computing a conversation ahead is a favour to its next turn; what takes longer is left out."""

STAGES: tuple[Stage, ...] = ("stt", "llm", "tts")

KEYS = tuple(f"{stage}.{name}" for stage in STAGES for name in ("model", "engine"))
"""What can be switched. Everything else is read when the daemon starts."""

AUTO = "auto"

State = Literal["planning", "loading", "warming", "waiting", "stopping", "going_back", "done", "failed"]
"""``waiting``: for turns that began on the old engine. ``going_back``: the old one is started again."""


@dataclass(frozen=True, slots=True)
class Switch:
    """The change that is under way, or the last one."""

    state: State
    wanted: Mapping[str, str]
    """Keys of the configuration (``llm.model``) to what they are to become."""
    since: str
    """When it was asked for, ISO 8601 with offset."""
    stages: tuple[Stage, ...] = ()
    """Whose engines change; empty until the plan is made, and where it stays as it is."""
    beside: bool | None = None
    """Whether both fit at once; None until that is known."""
    short: tuple[Phrase, ...] = ()
    """Why they do not."""
    kept: bool = False
    """Whether config.toml says so now too."""
    fault: Fault | None = None
    """Why it failed."""

    @property
    def over(self) -> bool:
        """Nothing is under way any more."""
        return self.state in {"done", "failed"}


class Planner(Protocol):
    """Makes a plan for this machine as it is now."""

    def __call__(self, config: Config) -> tuple[Plan, Facts]:
        """Blocks for as long as looking at the machine takes. Raises ConfigError, ModelError."""


class Able(Protocol):
    """Knows which engines of a stage can load a model of the catalog."""

    def __call__(self, stage: Stage, model: str) -> Collection[str]:
        """Their names; none for a path, or an id that nobody knows."""


def nobody_known(stage: Stage, model: str) -> Collection[str]:
    """Of no model is it known."""
    return ()


class Floor(Protocol):
    """The conversations that go on meanwhile."""

    async def warm_up(self, crew: Crew, stages: frozenset[Stage]) -> None:
        """Let engines that do not serve yet compute what the next turn will ask first. Raises nothing."""

    def switched(self, config: Config, stages: frozenset[Stage]) -> None:
        """Other engines serve from now on, or for a while none."""

    def tell(self, switch: Switch) -> None:
        """It is so far now."""


@dataclass
class Switching:
    """Hold ``instance.claim`` while using it, as for the fleet."""

    fleet: Fleet
    config: Config
    """What is in force: what the engines that serve were planned by, and all else."""
    config_file: Path
    plan: Planner
    floor: Floor
    able: Able = nobody_known
    available_gib: Callable[[], float] = lambda: psutil.virtual_memory().available / 2**30
    longest_turn_s: float = LONGEST_TURN_S
    last: Switch | None = field(default=None, init=False)
    _task: asyncio.Task[Switch] | None = field(default=None, init=False)

    @property
    def under_way(self) -> bool:
        """Engines are being changed now."""
        return self._task is not None and not self._task.done()

    async def switch(self, wanted: Mapping[str, str], *, kept: bool) -> Switch:
        """``wanted``: ``{"llm.model": "qwen3-8b"}``. Returns when it is done; goes on when the caller leaves.

        ``kept``: written into config.toml afterwards. Raises ConfigError or ModelError where it cannot be
        planned, EngineError where the new engine did not come up and the old ones serve; ControlError
        ``switch_under_way``.
        """
        whole = implied(self.config, wanted, self.able)
        stages = {key.partition(".")[0] for key in wanted}
        return await self._begun(wanted, partial(laid_over, wanted=whole), stages, whole if kept else None)

    async def follow(
        self, wanted: Mapping[str, str], lay: Callable[[Config], Config], stages: Collection[str]
    ) -> Switch:
        """Like ``switch``, for any keys that engines are started by: ``lay`` puts them into a configuration.

        ``wanted`` is what is told of it, ``stages`` whose engines may change.
        """
        return await self._begun(wanted, lay, set(stages), None)

    async def _begun(
        self,
        wanted: Mapping[str, str],
        lay: Callable[[Config], Config],
        stages: set[str],
        kept: Mapping[str, str] | None,
    ) -> Switch:
        if self.under_way:
            assert self.last is not None
            raise ControlError("switch_under_way", wanted=told(self.last.wanted))
        self.last = None
        self._become(Switch("planning", dict(wanted), datetime.now(UTC).isoformat(timespec="seconds")))
        self._task = asyncio.create_task(self._whole(lay, stages, kept), name="switching")
        self._task.add_done_callback(_logged)
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Leave it as it is: the fleet ends whatever runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _whole(
        self, lay: Callable[[Config], Config], stages: set[str], whole: Mapping[str, str] | None
    ) -> Switch:
        """``whole``: what is written into config.toml afterwards; None: nothing is."""
        assert self.last is not None
        wanted = self.last.wanted
        kept = whole is not None
        try:
            config = lay(self.config)
            if kept:
                # Nothing is stopped for a wish that could not be kept afterwards.
                await asyncio.to_thread(keep, self.config_file, {})
            change = await self._planned(config, stages)
            log.info("switching %s: %s", told(wanted), "beside" if change.beside else "one after the other")
            self._become(replace(self.last, stages=_in_order(change.stages), short=change.short))
            if change.stages:
                self._become(replace(self.last, beside=change.beside))
                await (self._beside(change, lay) if change.beside else self._in_turn(change, lay))
            self.config, fault = lay(self.config), None
            if whole is not None:
                try:
                    await asyncio.to_thread(keep, self.config_file, _tables(whole))
                except ConfigError as error:  # the disk is full by now: it serves, and is not remembered
                    kept, fault = False, Fault(error.code, error.facts)
            self._become(replace(self.last, state="done", kept=kept, fault=fault))
        except EngineError as error:
            reason = Phrase(error.code, **error.facts)
            back = all(self.fleet.engine(stage) is not None for stage in self.last.stages)
            code = "switch_failed" if back else "switch_failed_old_too"
            facts = {"wanted": told(wanted), "reason": reason}
            self._become(replace(self.last, state="failed", fault=Fault(code, facts)))
            raise EngineError(code, **facts) from error
        except OndamError as error:
            self._become(replace(self.last, state="failed", fault=Fault(error.code, error.facts)))
            raise
        except BaseException as error:
            self._become(replace(self.last, state="failed", fault=Fault("switch_broken", {"reason": error})))
            raise
        return self.last

    async def _planned(self, config: Config, named: set[str]) -> Changeover:
        plan, facts = await asyncio.to_thread(self.plan, _pinned(config, self.fleet.crew.plan, named))
        held = {status.name: (status.rss_mib or 0) / 1024 for status in self.fleet.status()}
        now = self.fleet.crew.plan
        running = replace(now, launched=tuple(_at_least(e, held.get(e.engine, 0.0)) for e in now.launched))
        # Nobody asked for another engine of the other stages.
        wanted = [engine for engine in plan.launched if engine.stage in named]
        wanted = [_at_least(engine, await asyncio.to_thread(_weights_gib, engine)) for engine in wanted]
        launched = [*wanted, *(engine for engine in running.launched if engine.stage not in named)]
        launched.sort(key=lambda engine: (engine.spare, STAGES.index(engine.stage)))
        coming = replace(plan, launched=tuple(launched))
        change = changeover(running, coming, facts, config.plan, self.available_gib())
        if change.lacking:
            raise ConfigError("switch_does_not_fit", problems=Phrases(change.lacking, between=" "))
        return change

    async def _beside(self, change: Changeover, lay: Callable[[Config], Config]) -> None:
        newcomers = {planned.engine: self.fleet.hire(planned) for planned in change.comes}
        try:
            await self._come_up(change, newcomers)
        except BaseException:
            # Also when the daemon ends meanwhile: nobody else knows of the newcomers yet.
            await self.fleet.dismiss(newcomers.values())
            self.fleet.forget(newcomers.values())
            raise
        before = self._serve(change, newcomers)
        # Other settings may have changed since it was planned.
        self.floor.switched(lay(self.config), change.stages)
        self._at("waiting")
        goes = self._leaving(before, change)
        with suppress(TimeoutError):  # one that goes on for so long loses its engine
            async with asyncio.timeout(self.longest_turn_s):
                await before.idle()
        self._at("stopping")
        await self.fleet.dismiss(goes)
        self.fleet.forget(goes)

    async def _in_turn(self, change: Changeover, lay: Callable[[Config], Config]) -> None:
        for planned in change.comes:
            self.fleet.hire(planned).home()  # what can be known before anything is stopped
        crew = self.fleet.crew
        goes = self._leaving(crew, change)
        rest = replace(crew.plan, launched=change.stays)
        before = self.fleet.serve(rest, [k for k in crew.keepers.values() if k not in goes], change.stages)
        self.floor.switched(self.config, change.stages)
        self._at("waiting")
        try:
            async with asyncio.timeout(self.longest_turn_s):
                await before.idle()
        except TimeoutError:
            self.fleet.serve(before.plan, before.keepers.values())
            self.floor.switched(self.config, change.stages)
            raise EngineError("switch_turn_goes_on", seconds=round(self.longest_turn_s)) from None
        self._at("stopping")
        await self.fleet.dismiss(goes)
        newcomers: dict[str, Keeper] = {}
        try:
            newcomers |= {planned.engine: self.fleet.hire(planned) for planned in change.comes}
            await self._come_up(change, newcomers)
        except BaseException as error:
            await self.fleet.dismiss(newcomers.values())
            self.fleet.forget(newcomers.values())
            if not isinstance(error, asyncio.CancelledError):  # else the daemon ends
                self._at("going_back")
                self.fleet.serve(before.plan, before.keepers.values())
                self.fleet.start(goes)
                await self.fleet.up(goes)
                self.floor.switched(self.config, change.stages)
            raise
        self._serve(change, newcomers)
        self.fleet.forget(goes)
        self.floor.switched(lay(self.config), change.stages)

    async def _come_up(self, change: Changeover, newcomers: Mapping[str, Keeper]) -> None:
        """Raises EngineError where one of them did not."""
        self._at("loading")
        await self.fleet.try_out(newcomers.values())
        self._at("warming")
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WARM_UP_S):
                await self.floor.warm_up(self._crew(change, newcomers), change.stages)
        self.fleet.still_up(newcomers.values())

    def _crew(self, change: Changeover, newcomers: Mapping[str, Keeper]) -> Crew:
        """Who would serve."""
        now = self.fleet.crew
        found: dict[str, Any] = {
            planned.engine: newcomers.get(planned.engine) or now.keepers[planned.engine]
            for planned in change.plan.launched
        }
        found |= {outside.address: now.keepers[outside.address] for outside in change.plan.outside}
        return Crew(now.number + 1, change.plan, found)

    def _serve(self, change: Changeover, newcomers: Mapping[str, Keeper]) -> Crew:
        crew = self._crew(change, newcomers)
        return self.fleet.serve(crew.plan, crew.keepers.values())

    def _leaving(self, crew: Crew, change: Changeover) -> list[Keeper | Outside]:
        return [crew.keepers[planned.engine] for planned in change.goes]

    def _at(self, state: State) -> None:
        assert self.last is not None
        self._become(replace(self.last, state=state))

    def _become(self, switch: Switch) -> None:
        self.last = switch
        self.floor.tell(switch)


def laid_over(config: Config, wanted: Mapping[str, str]) -> Config:
    """The configuration with ``wanted`` in it.

    Raises ConfigError on a key that cannot be switched, and for a stage that the user gave an address for.
    """
    values = config.model_dump(by_alias=True)
    for key, value in wanted.items():
        if key not in KEYS:
            raise ConfigError("switch_unknown_key", key=key, known=", ".join(KEYS))
        stage, _, name = key.partition(".")
        address = "url" if stage == "llm" else "address"
        if values[stage][address]:
            raise ConfigError("switch_outside", key=f"{stage}.{address}", address=values[stage][address])
        values[stage][name] = value
    return check(Config, values, "config.toml", contradictions=contradictions)


def implied(config: Config, wanted: Mapping[str, str], able: Able = nobody_known) -> dict[str, str]:
    """``wanted`` and what follows from it: an engine that is named alone brings a model of its own, and a
    model that is named alone another engine, where the one that was set cannot load it."""
    follows: dict[str, str] = {}
    for stage in STAGES:
        engine, model = f"{stage}.engine", f"{stage}.model"
        if engine in wanted and model not in wanted:
            follows[model] = AUTO
        elif model in wanted and engine not in wanted:
            fit = able(stage, wanted[model])
            if fit and getattr(config, stage).engine not in (AUTO, *fit):
                follows[engine] = AUTO
    return {**follows, **wanted}


def told(wanted: Mapping[str, str]) -> str:
    """As it is typed."""
    return " ".join(f"{key}={value}" for key, value in wanted.items())


def _tables(wanted: Mapping[str, str]) -> dict[str, dict[str, str]]:
    tables: dict[str, dict[str, str]] = {}
    for key, value in wanted.items():
        stage, _, name = key.partition(".")
        tables.setdefault(stage, {})[name] = value
    return tables


def _pinned(config: Config, now: Plan, named: set[str]) -> Config:
    """The other stages as they run: what is left of the machine is planned for the one that is named."""
    update: dict[str, Any] = {}
    for engine in now.launched:
        table = getattr(config, engine.stage)
        if engine.spare or engine.stage in named or table.engine != AUTO:
            continue
        pin = {"engine": engine.engine}
        if engine.model_path is not None and table.model == AUTO:
            pin["model"] = engine.model
        update[engine.stage] = table.model_copy(update=pin)
    return config.model_copy(update=update)


def _at_least(engine: PlannedEngine, gib: float) -> PlannedEngine:
    """Counted with what it is known to take, where that is more than was planned."""
    return replace(engine, memory_gib=max(engine.memory_gib, round(gib, 2)))


def _weights_gib(engine: PlannedEngine) -> float:
    path = engine.model_path
    try:
        if path is None:
            return 0.0
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        return sum(file.stat().st_size for file in files) / 2**30
    except OSError:
        return 0.0  # told when it is started


def _in_order(stages: frozenset[Stage]) -> tuple[Stage, ...]:
    return tuple(stage for stage in STAGES if stage in stages)


def _logged(task: asyncio.Task[Switch]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("nothing was switched: %s", error)
