"""What is known of a daemon that is being watched: the status, kept up to date by its events. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from ondam.control import wire

TURNS = 32
"""That are remembered: more than fit on any screen."""

OF_A_CONVERSATION = frozenset({"state", "transcript", "notice"})
"""What somebody is told by one that goes on: of the others a screen says nothing."""


def elsewhere(event: wire.Event, session: str) -> bool:
    """Whether another conversation than ``session`` tells it: a turn from a WAV is no voice in the room."""
    return event.get("session", session) != session


@dataclass
class Watched:
    """``status`` is None before the first snapshot; ``here`` is false while the daemon is away."""

    status: wire.Status | None = None
    here: bool = False
    microphone_db: float | None = None
    speaker_db: float | None = None
    transcript: str | None = None
    """Of the running turn, and of the answer to it as far as it was heard."""
    reply: str = ""
    turn: int | None = None
    """The running one."""
    draft: int | None = None
    """The answer that the marks are of."""
    marks_ms: dict[str, float | None] = field(default_factory=dict)
    turns: deque[wire.Turn] = field(default_factory=lambda: deque(maxlen=TURNS))
    """The newest first."""

    def begin(self, status: wire.Status, turns: Iterable[wire.Turn]) -> None:
        """A snapshot, and the turns before it."""
        self.here = True
        self.refresh(status)
        self.turns.clear()
        self.turns.extend(turns)
        self._over()

    def refresh(self, status: wire.Status) -> None:
        """What no event tells, as memory, or not in the reader's language, as faults."""
        self.status = status

    def gone(self) -> None:
        """The daemon does not answer any more. What was known of it stays to be read."""
        self.here = False
        self.microphone_db = self.speaker_db = None
        self._over()

    def take(self, event: wire.Event) -> None:
        """One event after the snapshot."""
        status = self.status
        if status is None:
            return
        other = elsewhere(event, status["session"])
        if other and event["type"] in OF_A_CONVERSATION:
            return
        match event["type"]:
            case "state":
                status["state"] = event["state"]
                if event["state"] == "hearing":
                    self._over()
            case "mode":
                status["mode"] = event["mode"]
            case "levels":
                self.microphone_db, self.speaker_db = event["microphone_db"], event["speaker_db"]
            case "mark":
                if (event["turn"], event["draft"]) != (self.turn, self.draft):
                    self.turn, self.draft, self.marks_ms = event["turn"], event["draft"], {}
                self.marks_ms[event["name"]] = event["at_ms"]
            case "partial":
                self.reply = event["reply"]
            case "transcript":
                self.transcript = event["text"]
            case "turn":
                self.turns.appendleft(event["turn"])
                status["turns"] += 1
                if not other:
                    self._over()

    def _over(self) -> None:
        self.transcript, self.reply, self.turn, self.draft, self.marks_ms = None, "", None, None, {}
