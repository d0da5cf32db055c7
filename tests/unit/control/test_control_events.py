from __future__ import annotations

import pytest

from ondam.control.events import Broadcast
from ondam.control.wire import Event, NoticeEvent
from ondam.errors import ControlError

FIRST: Event = {"type": "state", "session": "s", "state": "starting"}


def notice(text: str) -> NoticeEvent:
    return {"type": "notice", "session": "s", "code": text}


async def test_a_subscriber_gets_the_snapshot_of_its_moment_and_everything_after() -> None:
    broadcast = Broadcast()
    broadcast.publish(notice("before"))
    async with broadcast.subscribe(lambda: FIRST) as events:
        broadcast.publish(notice("after"))
        broadcast.close()
        assert [event async for event in events] == [FIRST, notice("after")]


async def test_a_subscriber_that_is_too_slow_is_let_go_and_the_others_stay() -> None:
    broadcast = Broadcast(capacity=2)
    async with broadcast.subscribe(lambda: FIRST) as slow, broadcast.subscribe(lambda: FIRST) as quick:
        assert await anext(quick) == FIRST
        broadcast.publish(notice("1"))  # slow now holds two: its bound
        assert await anext(quick) == notice("1")
        broadcast.publish(notice("2"))
        assert broadcast.subscribers == 1
        assert await anext(quick) == notice("2")
        with pytest.raises(ControlError) as caught:
            await anext(slow)
    assert caught.value.code == "control_reader_too_slow"
    assert broadcast.subscribers == 0


LEVELS: Event = {"type": "levels", "microphone_db": -40.0, "speaker_db": None}
MARK: Event = {"type": "mark", "turn": 1, "draft": None, "name": "endpoint", "at_ms": 200.0}


async def test_what_is_fleeting_goes_to_those_alone_who_asked() -> None:
    wanted: list[bool] = []
    broadcast = Broadcast(followed=wanted.append)
    async with broadcast.subscribe(lambda: FIRST) as plain:
        assert wanted == []
        async with broadcast.subscribe(lambda: FIRST, fleeting=True) as following:
            assert (wanted, broadcast.followers) == ([True], 1)
            broadcast.publish(LEVELS)
            broadcast.publish(MARK)
            broadcast.publish(notice("after"))
            broadcast.close()
            assert [event async for event in following] == [FIRST, LEVELS, MARK, notice("after")]
        assert [event async for event in plain] == [FIRST, notice("after")]
    assert wanted == [True, False]


async def test_a_slow_reader_loses_levels_first_then_marks_and_is_let_go_only_for_what_lasts() -> None:
    broadcast = Broadcast(capacity=8)
    async with broadcast.subscribe(lambda: FIRST, fleeting=True) as events:
        for _ in range(50):
            broadcast.publish(LEVELS)
            broadcast.publish(MARK)
        assert broadcast.subscribers == 1
        waiting = broadcast._subscribers.copy().pop().waiting
        assert [event["type"] for event in waiting] == ["state", "levels", "mark", "levels"]
        for number in range(7):
            broadcast.publish(notice(str(number)))
        assert [event["type"] for event in waiting] == ["state"] + ["levels", "mark", "levels"] + [
            "notice"
        ] * 4
        broadcast.close()
        told = [event async for event in events]
    assert told == [FIRST, *(notice(str(number)) for number in range(7))]


async def test_who_reads_nothing_is_let_go_however_fleeting_it_is_what_they_asked_for() -> None:
    broadcast = Broadcast(capacity=2)
    async with broadcast.subscribe(lambda: FIRST, fleeting=True) as slow:
        for number in range(3):
            broadcast.publish(LEVELS)
            broadcast.publish(notice(str(number)))
        assert (broadcast.subscribers, broadcast.followers) == (0, 0)
        with pytest.raises(ControlError) as caught:
            await anext(slow)
    assert caught.value.code == "control_reader_too_slow"
