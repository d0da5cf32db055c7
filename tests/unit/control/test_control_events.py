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
