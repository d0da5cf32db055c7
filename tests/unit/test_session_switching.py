"""One conversation while its engines are changed, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time
from tests.unit.test_session import table, voice

from ondam.errors import EngineError
from ondam.pipeline.ports import Lease, Responder


@dataclass
class Board:
    """Hands out whoever serves now, as the daemon's switchboard does."""

    crews: list[ScriptedEngines]
    serving: int = 0
    held: dict[int, int] = field(default_factory=dict)

    def lease(self) -> Lease:
        number = self.serving
        self.held[number] = self.held.get(number, 0) + 1

        def let_go() -> None:
            self.held[number] -= 1

        return Lease(self.crews[number], number, let_go)

    @property
    def running(self) -> int:
        return sum(crew.running for crew in self.crews)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.crews[self.serving], name)


class Between(ScriptedEngines):
    """The language engine is gone, the new one is not there yet."""

    def responder(self) -> Responder:
        raise EngineError("engine_switching")


def board(*crews: ScriptedEngines) -> Any:
    return Board(list(crews))


@virtual_time
async def test_a_turn_that_is_being_answered_ends_on_the_engines_it_began_with() -> None:
    old, new = ScriptedEngines(token_s=0.5), ScriptedEngines()
    engines = board(old, new)
    async with table(engines) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        while t.session.phase != "speaking":
            await asyncio.sleep(0.01)
        engines.serving = 1
        t.session.engines_switched()
        assert engines.held == {0: 1}
        turn = await over
        assert (turn.outcome, turn.heard, turn.crew) == ("answered", "It is three. Good bye.", 0)
        assert old.said == ["It is three.", "Good bye."] and new.said == [] and new.asked == []
        assert engines.held == {0: 0}
        await asyncio.sleep(1)
        after = await t.speak(voice(1.0))
    assert (after.outcome, after.crew) == ("answered", 1)
    # The conversation is the same one: the new model is asked with what the old one said.
    assert new.asked[0][1:] == [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": "It is three. Good bye."},
        {"role": "user", "content": "What time is it?"},
    ]
    assert len(old.asked) == 1
    assert engines.held == {0: 0, 1: 0}


@virtual_time
async def test_a_draft_is_dropped_and_its_question_answered_by_the_new_engines() -> None:
    old, new = ScriptedEngines(stt_s=5.0), ScriptedEngines()
    engines = board(old, new)
    async with table(engines, drafts={"after_ms": 64}) as t:
        over = t.session.next_turn()
        t.microphone.play(voice(1.0))
        while not old.running:
            await asyncio.sleep(0.01)
        assert t.session.phase == "hearing"
        engines.serving = 1
        t.session.engines_switched()
        await asyncio.sleep(0.02)
        assert old.running == 0, "nothing of it is computed any more"
        assert engines.held == {0: 0, 1: 1}
        turn = await over
    assert (turn.outcome, turn.crew, turn.drafts_dropped) == ("answered", 1, 1)
    assert old.asked == [] and new.said == ["It is three.", "Good bye."]


@virtual_time
async def test_who_asks_while_nobody_serves_is_told_to_wait_a_moment_and_history_stays() -> None:
    old, new = ScriptedEngines(), ScriptedEngines()
    engines = board(old, Between(), new)
    async with table(engines) as t:
        await t.speak(voice(1.0))
        await asyncio.sleep(1)
        engines.serving = 1
        t.session.engines_switched()
        told = await t.speak(voice(1.0))
        assert (told.outcome, told.fault, told.cause) == ("failed", "excuse_switching", "engine_switching")
        assert engines.crews[1].said[0].startswith("One moment please")
        await asyncio.sleep(1)
        engines.serving = 2
        t.session.engines_switched()
        turn = await t.speak(voice(1.0))
    assert (turn.outcome, turn.crew) == ("answered", 2)
    assert [message["content"] for message in new.asked[0][1:]] == [
        "What time is it?",
        "It is three. Good bye.",
        "What time is it?",
    ]
    assert engines.held == {0: 0, 1: 0, 2: 0}


@virtual_time
async def test_the_new_model_computes_the_conversation_before_it_serves() -> None:
    old, new = ScriptedEngines(), ScriptedEngines()
    engines = board(old, new)
    async with table(engines) as t:
        await t.speak(voice(1.0))
        await t.session.compute_ahead(new)
        engines.serving = 1
        t.session.engines_switched()
        await t.speak(voice(1.0))
    assert new.computed_ahead[0][:-1] == new.asked[0][:-1]
