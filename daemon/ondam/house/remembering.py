"""What is remembered of turns: their rows, their number and figures, and what they were made under."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import psutil

from ondam.config import Config
from ondam.control import wire
from ondam.control.metrics import Metrics
from ondam.house.conditions import at_the_moment, lasting_of
from ondam.journal.conditions import Conditions
from ondam.journal.recorder import Recorder
from ondam.journal.steady import Steadiness
from ondam.journal.summary import Summary
from ondam.journal.turn import Turn
from ondam.memory import give_back
from ondam.supervisor.crew import Crew
from ondam.supervisor.fleet import Fleet


class Remembering:
    """Takes every turn that ends, of any conversation, and counts what that costs.

    On the event loop there is only what cannot wait; the figures are made in a thread.
    """

    def __init__(self, config: Config, recorder: Recorder, fleet: Fleet) -> None:
        self._config = config
        self._recorder = recorder
        self._fleet = fleet
        self._began = time.monotonic()
        self.metrics = Metrics(config.measure.budget_ms)
        """Of all turns."""
        self.turns = 0
        """How many have ended."""
        self.last_turn: wire.Turn | None = None
        self._summary = self._summary_before = _summary(config)
        """The other: of turns that ended on engines which serve no more. Told to nobody."""
        self._conditions: Conditions | None = None
        """What the numbers are made under; None when something has changed since they were looked at."""
        self._noting_ns = self._counting_ns = 0
        """Processor time that it has taken so far, of the event loop and beside it."""
        self._counting: set[asyncio.Task[None]] = set()

    @property
    def uptime_s(self) -> float:
        """Since the daemon began."""
        return time.monotonic() - self._began

    @property
    def summary(self) -> Summary:
        """Of turns with the engines that serve now."""
        return self._summary

    def configure(self, config: Config) -> None:
        """The daemon's settings from now on."""
        self._config = config
        self._conditions = None

    def engines_changed(self) -> None:
        """An engine is otherwise than before: in state, or in what it got."""
        self._conditions = None

    def engines_switched(self) -> None:
        """Others serve from now on: their figures begin anew."""
        self._conditions = None
        self._summary_before, self._summary = self._summary, _summary(self._config)

    def finished(self, turn: Turn, own: Config | None) -> None:
        """``turn`` has ended. ``own``: the configuration of its conversation, where that has one."""
        began = time.thread_time_ns()
        row = self._note(turn, own or self._config)
        self._noting_ns += time.thread_time_ns() - began
        summary = self._summary if turn.crew == self._fleet.crew.number else self._summary_before
        counting = asyncio.create_task(asyncio.to_thread(self._count, row, summary), name="counting")
        self._counting.add(counting)
        counting.add_done_callback(self._counting.discard)

    def conditions(self) -> dict[str, Any]:
        """What every number travels with."""
        lasting = self.lasting(self._config, self._fleet.crew)
        return {
            "name": lasting.name,
            **lasting.facts,
            **at_the_moment(),
            "uptime_s": round(self.uptime_s, 1),
            "measuring_ms": {
                "loop": _ms_each(self._noting_ns, self.turns),
                "counting": _ms_each(self._counting_ns, self.turns),
                "writer": _ms_each(self._recorder.cpu_ns, self._recorder.written),
            },
            "daemon_rss_mib": round(psutil.Process().memory_info().rss / 2**20, 1),
        }

    def lasting(self, config: Config, crew: Crew) -> Conditions:
        """``config``: the conversation's. One with settings of its own has conditions of its own; a turn that
        began before a switch has those of the engines that it ended on.
        """
        ours = self._config
        own = (config.endpoint, config.drafts) != (ours.endpoint, ours.drafts)
        if own or crew is not self._fleet.crew:
            return Conditions.of(lasting_of(config, ours.spoken_language, crew.plan, crew))
        if self._conditions is None:
            self._conditions = Conditions.of(lasting_of(ours, ours.spoken_language, crew.plan, crew))
        return self._conditions

    async def close(self) -> None:
        """Count no more; what was noted is the recorder's."""
        for counting in self._counting:
            counting.cancel()
        await asyncio.gather(*self._counting, return_exceptions=True)

    def _note(self, turn: Turn, config: Config) -> wire.Turn:
        turn.conditions = self.lasting(config, self._fleet.crew_of(turn.crew))
        turn.moment = at_the_moment()
        self.turns += 1
        row = turn.as_json()
        self.last_turn = cast(wire.Turn, row)
        self._recorder.record(turn, row)
        return self.last_turn

    def _count(self, turn: wire.Turn, summary: Summary) -> None:
        """What can wait, in a thread of its own. ``summary``: of the turns with the same engines."""
        began = time.thread_time_ns()
        self.metrics.turn(turn)
        summary.add(turn)
        self._counting_ns += time.thread_time_ns() - began
        give_back()


def _summary(config: Config) -> Summary:
    return Summary(Steadiness(config.measure.steady_turns, config.measure.steady_within))


def _ms_each(ns: int, many: int) -> float:
    return round(ns / 1e6 / max(1, many), 3)
