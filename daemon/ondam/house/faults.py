"""What is wrong now: told when it begins, kept for whoever asks, told when it is over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from ondam.control import wire
from ondam.control.shapes import fault_shape
from ondam.quiet import in_words
from ondam.supervisor.status import Change, Fault
from ondam.types import Language

log = logging.getLogger(__name__)


class Faults:
    """The board that they stand on, one to a key.

    A key is where the fault comes from: ``microphone``, ``engine:NAME``. What follows it after another colon
    belongs to it, and is over when it is.
    """

    def __init__(self, language: Language, publish: Callable[[wire.Event], None]) -> None:
        self.language: Language = language
        """Of the log and of the events; who asks has one of their own."""
        self._publish = publish
        self._now: dict[str, tuple[Fault, str]] = {}
        """With the time since when, ISO 8601."""

    def __contains__(self, key: str) -> bool:
        return key in self._now

    def shapes(self, language: Language) -> list[wire.Fault]:
        """All of them, as the status shows them; the oldest first."""
        return [fault_shape(fault, language, since) for fault, since in self._now.values()]

    def begin(self, key: str, fault: Fault) -> None:
        """It begins, or is another one now."""
        since = datetime.now(UTC).isoformat(timespec="seconds")
        self._now[key] = (fault, since)
        told = fault_shape(fault, self.language, since)
        log.warning("%s", in_words(fault.code, fault.facts, self.language))
        self._publish({"type": "fault", "fault": told})

    def begin_once(self, key: str, fault: Fault) -> None:
        """It begins, unless it is there already: then it stays as it was told."""
        if key not in self._now:
            self.begin(key, fault)

    def clear(self, key: str) -> None:
        """It is over, if it was there at all; and what belongs to it."""
        for known in [k for k in self._now if k == key or k.startswith(f"{key}:")]:
            fault, _ = self._now.pop(known)
            self._publish({"type": "fault_cleared", "code": fault.code})

    def engine_changed(self, change: Change, conversation: str) -> None:
        """What an engine's new state means for the board. ``conversation``: who is told that it is back."""
        engine = change.status
        key = f"engine:{engine.name}"
        if engine.state == "ready":
            self.clear(key)
            for fault in engine.faults:
                self.begin(f"{key}:{fault.code}", fault)
            if change.fault is not None and change.fault not in engine.faults:
                self._notice(change.fault, conversation)  # it is back
        elif change.fault is not None:
            self.begin(key, change.fault)
            for fault in engine.faults:
                if engine.fit == "refused" and fault.code.endswith(("_refused", "_refused_by_plan")):
                    # Beside "I cannot hear": why, and what to do.
                    self.begin(f"{key}:{fault.code}", fault)

    def only_engines(self, serving: Collection[str]) -> None:
        """Those of all other engines are over: they serve no more."""
        names = [f"engine:{name}" for name in serving]
        for key in [key for key in self._now if key.startswith("engine:")]:
            if not any(key == name or key.startswith(f"{name}:") for name in names):
                self.clear(key)

    def _notice(self, told: Fault, conversation: str) -> None:
        log.info("%s", in_words(told.code, told.facts, self.language))
        self._publish({"type": "notice", "session": conversation, "code": told.code})
