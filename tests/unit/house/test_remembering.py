"""What is remembered of turns: conditions, figures of the engines that serve, and what that costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from ondam.config import Config, load
from ondam.house.remembering import Remembering
from ondam.journal.marks import Marks
from ondam.journal.turn import Turn
from ondam.planner.plan import Plan
from ondam.supervisor.crew import Crew
from ondam.types import TurnId

CONFIG = load(None)


class Past:
    """What remembers, on crews without engines and a recorder that keeps all in a list."""

    def __init__(self) -> None:
        self.crews = {0: Crew(0, Plan(()), {})}
        self.recorded: list[tuple[Turn, dict[str, Any]]] = []
        self.fleet = cast(Any, SimpleNamespace(crew=self.crews[0], crew_of=lambda number: self.crews[number]))
        recorder = SimpleNamespace(
            cpu_ns=6_000_000, written=4, record=lambda turn, row: self.recorded.append((turn, row))
        )
        self.remembering = Remembering(CONFIG, cast(Any, recorder), self.fleet)

    def switch(self) -> None:
        """Another crew serves."""
        number = len(self.crews)
        self.crews[number] = self.fleet.crew = Crew(number, Plan(()), {})
        self.remembering.engines_switched()

    async def ends(self, *, crew: int = 0, own: Config | None = None) -> Turn:
        """A turn, heard 400 ms after the last voiced sample; returns when it is counted."""
        marks = Marks({"last_voiced": 1_000_000_000, "dac_first_sample": 1_400_000_000})
        turn = Turn(TurnId(len(self.recorded)), "s", datetime.now(UTC), outcome="answered", crew=crew)
        turn.marks, turn.population = marks, "settled"
        self.remembering.finished(turn, own)
        await asyncio.gather(*self.remembering._counting)
        return turn

    def counted(self) -> int:
        """Turns in the figures of the engines that serve."""
        return cast(int, self.remembering.summary.as_json()["turns"])


@asynccontextmanager
async def past() -> AsyncIterator[Past]:
    made = Past()
    yield made
    await made.remembering.close()


def named(turn: Turn) -> str:
    assert turn.conditions is not None
    return turn.conditions.name


async def test_a_turn_is_recorded_shown_and_counted() -> None:
    async with past() as it:
        assert (it.remembering.turns, it.remembering.last_turn) == (0, None)
        turn = await it.ends()
        assert it.remembering.turns == 1
        [(recorded, row)] = it.recorded
        assert recorded is turn
        assert it.remembering.last_turn == row
        assert row == turn.as_json()
        assert row["first_audio_ms"] == 400.0
        assert turn.moment["power"] in {"battery", "mains"}
        settled = it.remembering.summary.as_json()["populations"]["settled"]
        assert (it.counted(), settled["first_audio_ms"]["p50"]) == (1, 400.0)


async def test_after_a_switch_the_figures_begin_anew_and_a_late_turn_is_in_none() -> None:
    async with past() as it:
        await it.ends()
        it.switch()
        assert it.counted() == 0
        await it.ends(crew=0)  # it began before
        assert it.counted() == 0
        await it.ends(crew=1)
        assert it.counted() == 1
        assert it.remembering.turns == 3


async def test_a_conversation_with_settings_of_its_own_has_conditions_of_its_own() -> None:
    async with past() as it:
        silence = CONFIG.endpoint.model_copy(update={"silence_ms": 999})
        own = CONFIG.model_copy(update={"endpoint": silence})
        ours, theirs, again = await it.ends(), await it.ends(own=own), await it.ends()
        assert named(ours) == named(again) == it.remembering.conditions()["name"]
        assert named(theirs) != named(ours)
        assert theirs.conditions is not None
        assert theirs.conditions.facts["endpoint"]["silence_ms"] == 999


async def test_conditions_are_looked_at_once_until_something_changes() -> None:
    async with past() as it:
        first = (await it.ends()).conditions
        assert (await it.ends()).conditions is first
        it.remembering.engines_changed()
        looked_anew = (await it.ends()).conditions
        assert looked_anew is not first
        assert looked_anew == first  # nothing was otherwise
        llm = CONFIG.llm.model_copy(update={"max_tokens": 9})
        it.remembering.configure(CONFIG.model_copy(update={"llm": llm}))
        changed = (await it.ends()).conditions
        assert changed is not None and changed.facts["max_tokens"] == 9


async def test_what_remembering_costs_is_told_for_each_turn() -> None:
    async with past() as it:
        assert it.remembering.conditions()["measuring_ms"] == {"loop": 0.0, "counting": 0.0, "writer": 1.5}
        it.remembering._noting_ns, it.remembering._counting_ns = 6_000_000, 3_000_000
        it.remembering.turns = 2
        assert it.remembering.conditions()["measuring_ms"] == {"loop": 3.0, "counting": 1.5, "writer": 1.5}
        await it.ends()
        assert it.remembering._noting_ns > 6_000_000
        assert it.remembering._counting_ns > 3_000_000
