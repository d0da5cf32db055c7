"""The engines that serve together. A turn keeps its crew to its end, whatever is switched meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from ondam.planner.plan import Plan
from ondam.supervisor.keeper import Keeper
from ondam.supervisor.outside import Outside
from ondam.supervisor.status import EngineStatus
from ondam.types import Stage


@dataclass(eq=False)
class Crew:
    """One of a fleet's. ``hold`` it for as long as its engines are needed, ``let_go`` afterwards."""

    number: int
    """Counted up with every change: names the conditions that a turn was made under."""
    plan: Plan
    """What its engines were started for."""
    keepers: Mapping[str, Keeper | Outside]
    """By the engine's name, in the plan's order."""
    switching: frozenset[Stage] = frozenset()
    """Stages that nobody serves, because their engine is being changed."""
    _users: int = 0
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def status(self) -> tuple[EngineStatus, ...]:
        """Every engine, in the plan's order."""
        return tuple(keeper.status() for keeper in self.keepers.values())

    def engine(self, stage: Stage) -> EngineStatus | None:
        """Whom to talk to now: the first that is ready, else the ready spare (``.spare``), else None."""
        ready = [status for status in self.status() if status.stage == stage and status.state == "ready"]
        return next(iter(sorted(ready, key=lambda status: status.spare)), None)

    def note_answer(self, name: str) -> None:
        """The engine has answered a request of ours. Raises KeyError."""
        self.keepers[name].note_answer()

    def note_failure(self, name: str, code: str) -> None:
        """A request of ours ended with the error ``code``. Two in a row that were not answered: it is hung.

        Raises KeyError.
        """
        self.keepers[name].note_failure(code)

    def hold(self) -> None:
        """Somebody needs these engines."""
        self._users += 1
        self._idle.clear()

    def let_go(self) -> None:
        """Somebody no longer does."""
        self._users -= 1
        if self._users == 0:
            self._idle.set()

    @property
    def users(self) -> int:
        """How many need them."""
        return self._users

    async def idle(self) -> None:
        """Return when nobody does."""
        if self._users:
            await self._idle.wait()
