"""What is fleeting, for those who look on: how loud it is, and how far the running turn has come.

Ten times a second, and only while somebody wants it: where nobody looks on, nothing is computed. It looks at
what is there anyway; the turn is not asked to tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from ondam.control.wire import Event, LevelsEvent
from ondam.session import Progress

EVERY_S = 0.1


class Conversation(Protocol):
    """What is asked of a ``Session``."""

    def follow(self, wanted: bool) -> None:
        """Begin, or end, to measure how loud it is."""

    def levels(self) -> tuple[float | None, float | None]:
        """Of the microphone and of the speaker since the last time, in dBFS; None: nothing comes."""

    def progress(self) -> Progress | None:
        """The turn that is under way."""


class Following:
    """Looks at one conversation, and publishes what is new."""

    def __init__(self, conversation: Conversation, publish: Callable[[Event], None]) -> None:
        self._conversation = conversation
        self._publish = publish
        self._looking: asyncio.Task[None] | None = None
        self._levels: LevelsEvent | None = None
        self._before: Progress | None = None

    def want(self, anybody: bool) -> None:
        """Whether anybody looks on."""
        self._conversation.follow(anybody)
        if anybody and self._looking is None:
            self._levels = self._before = None
            self._looking = asyncio.create_task(self._look_on(), name="levels")
        elif not anybody and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def newcomer(self) -> None:
        """Somebody else looks on: they are to be told all of the running turn."""
        self._levels = self._before = None

    async def close(self) -> None:
        """Look no more."""
        if (looking := self._looking) is not None:
            self.want(False)
            await asyncio.gather(looking, return_exceptions=True)

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            for event in self.news():
                self._publish(event)

    def news(self) -> Iterator[Event]:
        """What has become of it since the last look. What stays the same is told once."""
        microphone, speaker = self._conversation.levels()
        levels: LevelsEvent = {
            "type": "levels",
            "microphone_db": None if microphone is None else round(microphone, 1),
            "speaker_db": None if speaker is None else round(speaker, 1),
        }
        if levels != self._levels:
            self._levels = levels
            yield levels
        before, now = self._before, self._conversation.progress()
        self._before = now
        if now is None:
            return
        if before is None or before.turn != now.turn:
            before = Progress(now.turn, {}, "")
        if before.draft != now.draft:  # what the one before had come to does not count
            before = Progress(now.turn, {}, before.reply)
        for name, at_ms in now.marks_ms.items():
            if name not in before.marks_ms or before.marks_ms[name] != at_ms:
                rounded = None if at_ms is None else round(at_ms, 2)
                draft = None if now.draft is None else int(now.draft)
                yield {
                    "type": "mark",
                    "turn": int(now.turn),
                    "draft": draft,
                    "name": name,
                    "at_ms": rounded,
                }
        if now.reply != before.reply:
            yield {"type": "partial", "turn": int(now.turn), "reply": now.reply}
