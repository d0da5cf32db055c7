"""What is fleeting: told to who asks, and only what is new."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tests.fakes.virtual_time import virtual_time

from ondam.control.events import Broadcast
from ondam.control.wire import Event
from ondam.house.following import Following
from ondam.session import Progress
from ondam.types import DraftId, TurnId


@dataclass
class Conversation:
    microphone: float | None = None
    speaker: float | None = -100.0
    turn: Progress | None = None
    followed: list[bool] = field(default_factory=list)
    asked: int = 0

    def follow(self, wanted: bool) -> None:
        self.followed.append(wanted)

    def levels(self) -> tuple[float | None, float | None]:
        self.asked += 1
        return self.microphone, self.speaker

    def progress(self) -> Progress | None:
        return self.turn


def levels(microphone: float | None, speaker: float | None) -> Event:
    return {"type": "levels", "microphone_db": microphone, "speaker_db": speaker}


def mark(name: str, at_ms: float | None, turn: int = 1, draft: int | None = None) -> Event:
    return {"type": "mark", "turn": turn, "draft": draft, "name": name, "at_ms": at_ms}


@virtual_time
async def test_where_nobody_looks_on_nothing_is_computed() -> None:
    conversation = Conversation()
    broadcast = Broadcast(followed=lambda anybody: following.want(anybody))  # noqa: PLW0108 - made below
    following = Following(conversation, broadcast.publish)
    async with broadcast.subscribe(lambda: levels(None, None)):
        await asyncio.sleep(10)
        assert (conversation.asked, conversation.followed) == (0, [])
        async with broadcast.subscribe(lambda: levels(None, None), fleeting=True):
            await asyncio.sleep(10.05)
            assert conversation.asked == 100  # ten a second
        await asyncio.sleep(10)
    assert conversation.asked == 100
    assert conversation.followed == [True, False]
    await following.close()


def test_a_level_that_stays_is_told_once_and_rounded_to_a_tenth() -> None:
    conversation = Conversation(microphone=-40.04)
    following = Following(conversation, lambda event: None)
    assert list(following.news()) == [levels(-40.0, -100.0)]
    assert list(following.news()) == []
    conversation.microphone = None  # muted
    assert list(following.news()) == [levels(None, -100.0)]


def test_marks_are_told_as_they_come_and_once_more_when_the_last_voice_is_known() -> None:
    conversation = Conversation()
    following = Following(conversation, lambda event: None)
    list(following.news())
    conversation.turn = Progress(TurnId(1), {"pause_seen": None}, "")
    assert list(following.news()) == [mark("pause_seen", None)]
    assert list(following.news()) == []
    conversation.turn = Progress(TurnId(1), {"last_voiced": 0.0, "pause_seen": 80.456, "endpoint": 200.0}, "")
    told = [mark("last_voiced", 0.0), mark("pause_seen", 80.46), mark("endpoint", 200.0)]
    assert list(following.news()) == told


def test_another_draft_is_told_from_its_beginning_also_where_no_time_is_known_yet() -> None:
    conversation = Conversation(
        turn=Progress(TurnId(1), {"stt_sent": None, "llm_sent": None}, "", DraftId(1))
    )
    following = Following(conversation, lambda event: None)
    list(following.news())
    conversation.turn = Progress(TurnId(1), {"stt_sent": None}, "", DraftId(2))
    assert list(following.news()) == [mark("stt_sent", None, draft=2)]


def test_the_answer_is_told_as_far_as_it_was_heard() -> None:
    conversation = Conversation(turn=Progress(TurnId(1), {}, ""))
    following = Following(conversation, lambda event: None)
    list(following.news())
    conversation.turn = Progress(TurnId(1), {}, "It is")
    assert list(following.news()) == [{"type": "partial", "turn": 1, "reply": "It is"}]
    conversation.turn = Progress(TurnId(1), {}, "It is three.")
    assert list(following.news()) == [{"type": "partial", "turn": 1, "reply": "It is three."}]


def test_the_next_turn_is_told_from_its_beginning_also_when_it_follows_at_once() -> None:
    conversation = Conversation(turn=Progress(TurnId(1), {"endpoint": 200.0}, "It is"))
    following = Following(conversation, lambda event: None)
    list(following.news())
    conversation.turn = Progress(TurnId(2), {"endpoint": 200.0}, "It is")
    assert list(following.news()) == [
        mark("endpoint", 200.0, 2),
        {"type": "partial", "turn": 2, "reply": "It is"},
    ]


def test_whoever_comes_in_the_middle_of_a_turn_is_told_all_of_it() -> None:
    conversation = Conversation(turn=Progress(TurnId(1), {"endpoint": 200.0}, "It is"))
    following = Following(conversation, lambda event: None)
    first = list(following.news())
    assert list(following.news()) == []
    following.newcomer()
    assert list(following.news()) == first
