"""Watches a server that the user configured by address: never launched, always unreported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ondam.config import SupervisorConfig
from ondam.errors import EngineError
from ondam.planner.plan import OutsideEngine
from ondam.supervisor import restart
from ondam.supervisor.clock import Clock, within
from ondam.supervisor.first_answer import first_answer
from ondam.supervisor.inquiry import Told, inquire
from ondam.supervisor.readiness import NotYet, reachable
from ondam.supervisor.status import EngineState, EngineStatus, Fault

Tell = Callable[["Outside", Fault | None], None]


class Outside:
    """One such server. ``run`` watches it until cancelled."""

    def __init__(self, planned: OutsideEngine, config: SupervisorConfig, clock: Clock, tell: Tell) -> None:
        self.planned = planned
        self.state: EngineState = "loading"
        self.restarts = 0
        self._config = config
        self._clock = clock
        self._tell = tell
        self._ready_at: float | None = None
        self._answers = 0
        self._fault: Fault | None = None
        """Why it is not ready."""
        self._answer_faults: tuple[Fault, ...] = ()
        """What is wrong with its first answer since it was there last."""
        self._tells_health = True
        """Whether what it says of itself counts: some serve turns and have no list of models, or a gateway
        answers for them."""
        self._told = Told()

    def note_answer(self) -> None:
        """It has answered a request of the daemon's."""
        self._answers += 1
        if self.planned.stage == "stt":
            self._answer_faults = ()  # it refused a tone, and has understood words

    def note_failure(self, code: str) -> None:
        """Nothing follows: it is not ours to end."""

    def status(self) -> EngineStatus:
        """What is known of it now."""
        address = self.planned.address
        faults = [*self._answer_faults, Fault("engine_unreported", {"address": address})]
        served = self._told.models
        if served and self.planned.model and self.planned.model not in served:
            facts = {"address": address, "model": self.planned.model, "models": ", ".join(served[:8])}
            faults.insert(0, Fault("engine_outside_model", facts))
        if self._fault is not None:
            faults.insert(0, self._fault)
        return EngineStatus(
            name=address,
            stage=self.planned.stage,
            state=self.state,
            address=address,
            outside=True,
            policy=self.planned.policy,
            fit="refused" if self.planned.policy == "require" else "unreported",
            model=self.planned.model or next(iter(served), None),
            report=self._told.as_report(),
            ready_s=0.0 if self._ready_at is None else self._clock.now() - self._ready_at,
            answers=self._answers,
            faults=tuple(faults),
        )

    async def run(self) -> None:
        """Ask whether it answers, as often as engines of ours are asked; with back-off while it does not."""
        config, failures = self._config, 0
        if self.planned.policy == "require":
            # The planner says so before anything starts; this is for plans that were made by other means.
            self._become("failed", Fault("engine_unreported_refused", {"address": self.planned.address}))
            return
        try:
            while True:
                fault = await self._look()
                self._become("failed" if fault else "ready", fault)
                if fault is None:
                    failures, wait_s = 0, config.ping_every_s
                else:
                    wait_s = restart.back_off(config.backoff_first_s, config.backoff_last_s, failures)
                    failures += 1
                await self._clock.sleep(wait_s)
        except asyncio.CancelledError:
            self._become("stopped")
            raise

    async def _look(self) -> Fault | None:
        """What is wrong with it now."""
        address, stage = self.planned.address, self.planned.stage
        protocol = "openai" if stage == "llm" else "wyoming"
        away = Fault("engine_outside_unreachable", {"address": address, "stage": stage})
        try:
            well = await within(self._clock, self._config.ping_timeout_s, reachable(address, protocol))
        except EngineError as error:
            return Fault(error.code, error.facts)
        except (NotYet, TimeoutError):
            return away
        ill = await self._inquire() if stage == "llm" else None
        if self.state == "ready":
            return (ill or (None if well else away)) if self._tells_health else None
        fault = await self._first_answer()
        self._tells_health = fault is not None or (well and ill is None)
        return fault and (ill or fault)

    async def _first_answer(self) -> Fault | None:
        """Why no turn could use it; what is only wrong with its answer stands in ``_answer_faults``."""
        planned, self._answer_faults = self.planned, ()
        try:
            self._answer_faults = await within(self._clock, planned.patience_s, first_answer(planned))
        except EngineError as error:
            return Fault(error.code, error.facts)
        except TimeoutError:
            facts = {"address": planned.address, "reason": f"no answer within {planned.patience_s:g} s"}
            return Fault("engine_no_answer", facts)
        return None

    async def _inquire(self) -> Fault | None:
        """Of a language server that answers: what it tells of itself, and whether it says that it is ill."""
        address = self.planned.address
        asking = inquire(address, self.planned.model, self._told if self.state == "ready" else None)
        try:
            self._told = await within(self._clock, self._config.ping_timeout_s, asking)
        except (NotYet, EngineError, TimeoutError):
            return None  # it has answered what all answer; that it tells no more is no fault
        return Fault("engine_outside_ill", {"address": address}) if self._told.healthy is False else None

    def _become(self, state: EngineState, fault: Fault | None = None) -> None:
        before, known, self.state, self._fault = self.state, self._fault, state, fault
        if state == before and fault == known:
            return
        if state != before:
            self._ready_at = self._clock.now() if state == "ready" else None
        if state == "ready" and before == "failed":
            fault = Fault(f"engine_back_{self.planned.stage}", {"engine": self.planned.address})
        self._tell(self, fault)
