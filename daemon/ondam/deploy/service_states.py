"""What the service manager hears from the daemon's start to its end.

Ready: every engine has answered once, or it is known why not; a slow load is told as such and given time (a
start that is cut short begins from nothing, for ever). Alive: this task runs on the daemon's event loop, and
feeds the watchdog only while sound moves too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from ondam.audio.alive import Stuck
from ondam.deploy.notify import Manager
from ondam.messages import text
from ondam.supervisor.status import EngineStatus
from ondam.types import Language

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
"""Half of what the manager asks for at most: a watchdog of two seconds is the shortest that makes sense."""

EXTEND_S = 30
"""While engines load the start may take so much longer, told anew with each look. How long an engine may take
is its manifest's affair, and the supervisor's who ends it."""


class ServiceStates:
    """Tells ``manager`` from ``start`` to ``stop``."""

    def __init__(
        self,
        manager: Manager,
        *,
        engines: Callable[[], Sequence[EngineStatus]],
        stuck: Callable[[], Stuck | None],
        language: Language,
    ) -> None:
        self._manager = manager
        self._engines = engines
        self._stuck = stuck
        self._language = language
        self._arrived: set[str] = set()
        """Engines of which something is known: they were ready, or did not become so at the first try."""
        self._ready = False
        self._told = ""
        self._was_stuck: Stuck | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, on the running loop."""
        self._task = asyncio.create_task(self._run(), name="service states")

    async def stop(self) -> None:
        """Tell that the daemon ends."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._manager.tell(STOPPING=1, STATUS=text("service_state_stopping", self._language))

    async def _run(self) -> None:
        while True:
            try:
                self._look()
            except Exception:  # whoever is not told restarts us: one look that fails is not the end
                log.exception("the service manager could not be told how it is")
            await asyncio.sleep(min(LOOK_EVERY_S, (self._manager.watchdog_s or 4.0) / 4))

    def _look(self) -> None:
        engines = self._engines()
        self._arrived |= {e.name for e in engines if e.state not in {"starting", "loading"}}
        stuck = self._stuck()
        states: dict[str, str | int] = {}
        if not self._ready:
            self._ready = all(engine.name in self._arrived for engine in engines)
            states |= {"READY": 1} if self._ready else {"EXTEND_TIMEOUT_USEC": EXTEND_S * 1_000_000}
        if stuck is None:
            states["WATCHDOG"] = 1
        elif self._was_stuck is None:
            log.error("sound no longer moves (%s); the watchdog is no longer fed", stuck)
        self._was_stuck = stuck
        if (status := self._status(engines, stuck)) != self._told:
            states["STATUS"] = self._told = status
        self._manager.tell(**states)

    def _status(self, engines: Sequence[EngineStatus], stuck: Stuck | None) -> str:
        def tell(code: str, **facts: object) -> str:
            return text(code, self._language, **facts)

        if stuck is not None:
            return tell(f"service_stuck_{stuck}")
        waited = [e.name for e in engines if e.state in {"starting", "loading"}]
        down = [e.name for e in engines if e.state in {"restarting", "failed", "stopped"}]
        parts = []
        if waited:
            parts.append(tell("service_state_loading", names=", ".join(waited)))
        if down:
            parts.append(tell("service_state_without", names=", ".join(down)))
        return "; ".join(parts) or tell("service_state_ready")
