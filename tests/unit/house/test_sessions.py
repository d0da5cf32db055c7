"""Which conversations go on, and what all of them share."""

from __future__ import annotations

import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time
from tests.unit.house.test_wav_turns import now_ns
from tests.unit.test_session import Loud

from ondam.audio import WavMicrophone, WavSpeaker
from ondam.config import Config, load
from ondam.control import wire
from ondam.house.sessions import Sessions
from ondam.journal.turn import Turn
from ondam.pipeline.phrases import Phrases
from ondam.session import Session


class Hall:
    """Conversations on scripted engines; what they tell."""

    def __init__(self) -> None:
        engines = ScriptedEngines()
        self.finished: list[tuple[Config | None, Turn]] = []
        self.events: list[wire.Event] = []
        self.sessions = Sessions(
            load(None, {"language": "en"}),
            engines=engines,
            phrases=Phrases(engines),
            voice=Loud,
            end_of_turn=None,
            finished=lambda own, turn: self.finished.append((own, turn)),
            publish=self.events.append,
        )

    def begin(self, config: Config | None = None) -> Session:
        return self.sessions.begin(
            microphone=WavMicrophone(None, clock=now_ns),
            speaker=WavSpeaker(clock=now_ns),
            full_duplex=lambda: True,
            config=config,
        )


@virtual_time
async def test_each_has_a_name_of_its_own_also_in_another_run() -> None:
    here, there = Hall(), Hall()
    names = [one.name for one in (here.begin(), here.begin(), there.begin())]
    assert len(set(names)) == 3
    assert [name.rpartition("-")[2] for name in names] == ["1", "2", "1"]


@virtual_time
async def test_a_turn_is_told_with_the_configuration_that_its_conversation_has_for_itself() -> None:
    hall = Hall()
    own = load(None, {"language": "en", "llm": {"max_tokens": 9}})
    ours, theirs = hall.begin(), hall.begin(own)
    for session in (ours, theirs):
        await session.ask("What time is it?", aloud=False)
    assert [config for config, _ in hall.finished] == [None, own]
    told = [event["session"] for event in hall.events if event["type"] == "turn"]
    assert told == [ours.name, theirs.name]


@virtual_time
async def test_only_those_that_go_on_hear_of_other_engines() -> None:
    hall = Hall()
    with pytest.MonkeyPatch.context() as monkeypatch:
        heard: list[Session] = []
        monkeypatch.setattr(Session, "engines_switched", lambda session: heard.append(session))  # noqa: PLW0108
        over, on = hall.begin(), hall.begin()
        await hall.sessions.end(over)
        hall.sessions.engines_switched()
    assert heard == [on]
