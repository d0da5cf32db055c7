"""Watches a server that the user configured by address: never launched, always unreported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ondam.config import SupervisorConfig
from ondam.errors import EngineError
from ondam.planner.plan import OutsideEngine
from ondam.supervisor.clock import Clock, within
from ondam.supervisor.readiness import NotYet, reachable
from ondam.supervisor.status import EngineState, EngineStatus, Fault

Tell = Callable[["Outside", Fault | None], None]


class Outside:
    """One such server. ``run`` watches it until cancelled."""

    def __init__(self, planned: OutsideEngine, config: SupervisorConfig, clock: Clock, tell: Tell) -> None:
        self.planned = planned
        self.settled = asyncio.Event()
        self.state: EngineState = "loading"
        self.restarts = 0
        self._config = config
        self._clock = clock
        self._tell = tell
        self._ready_at: float | None = None
        self._answers = 0

    def note_answer(self) -> None:
        """It has answered a request of the daemon's."""
        self._answers += 1

    def status(self) -> EngineStatus:
        """What is known of it now."""
        address = self.planned.address
        faults = [Fault("engine_unreported", {"address": address})]
        if self.state == "failed":
            faults.insert(0, self._unreachable())
        return EngineStatus(
            name=address,
            stage=self.planned.stage,
            state=self.state,
            address=address,
            outside=True,
            model=self.planned.model or None,
            ready_s=0.0 if self._ready_at is None else self._clock.now() - self._ready_at,
            answers=self._answers,
            faults=tuple(faults),
        )

    async def run(self) -> None:
        """Ask whether it answers, as often as engines of ours are asked."""
        try:
            while True:
                self._become("ready" if await self._answers_now() else "failed")
                self.settled.set()
                await self._clock.sleep(self._config.ping_every_s)
        except asyncio.CancelledError:
            self._become("stopped")
            raise
        finally:
            self.settled.set()

    async def _answers_now(self) -> bool:
        protocol = "openai" if self.planned.stage == "llm" else "wyoming"
        try:
            return await within(
                self._clock, self._config.ping_timeout_s, reachable(self.planned.address, protocol)
            )
        except (NotYet, EngineError, TimeoutError):
            return False  # becomes a fault that status shows

    def _become(self, state: EngineState) -> None:
        if state == self.state:
            return
        before, self.state = self.state, state
        self._ready_at = self._clock.now() if state == "ready" else None
        if state == "failed":
            self._tell(self, self._unreachable())
        elif state == "ready" and before == "failed":
            self._tell(self, Fault(f"engine_back_{self.planned.stage}", {"engine": self.planned.address}))
        else:
            self._tell(self, None)

    def _unreachable(self) -> Fault:
        return Fault(
            "engine_outside_unreachable", {"address": self.planned.address, "stage": self.planned.stage}
        )
