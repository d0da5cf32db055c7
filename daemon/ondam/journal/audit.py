"""A line per turn for auditors: when, how, how long, by which engines; never a word of it.

JSON lines, each on the disk (fsync) before the next turn's; rotated, and bounded.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from ondam.journal.texts import private_file
from ondam.journal.turn import Turn

FILE = "audit.jsonl"


class AuditLog:
    """The file of lines. Every line opens it anew, so that whoever takes it away is noticed."""

    def __init__(self, path: Path, *, most_bytes: int, files: int) -> None:
        """``files``: how many older ones of ``most_bytes`` are kept beside the one that is written."""
        self.path = path
        self._most_bytes = most_bytes
        self._files = files

    def add(self, turn: Turn) -> None:
        """Write the line of ``turn``. Raises OSError: the line is not there then."""
        line = json.dumps(line_of(turn), ensure_ascii=True).encode() + b"\n"
        private_file(self.path)
        if self.path.stat().st_size + len(line) > self._most_bytes:
            self._rotate()
            private_file(self.path)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            before = os.fstat(descriptor).st_size
            if os.write(descriptor, line) != len(line):
                # Half a line is no line, and would spoil the next one.
                os.ftruncate(descriptor, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _rotate(self) -> None:
        for number in range(self._files, 0, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        if not self._files:
            self.path.unlink(missing_ok=True)

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path


def line_of(turn: Turn) -> dict[str, Any]:
    """What an auditor is told of a turn."""
    return {
        "time": turn.started_at.isoformat(timespec="milliseconds"),
        "session": turn.session,
        "turn": int(turn.id),
        "mode": turn.mode,
        "outcome": turn.outcome,
        "fault": turn.fault,
        "cause": turn.cause,
        "aloud": turn.aloud,
        "canned": turn.canned,
        "utterance_s": round(turn.utterance_s, 3),
        "answer_s": round(turn.answer_s, 3),
        "asked_characters": len(turn.transcript or ""),
        "answered_characters": len(turn.heard),
        "llm_calls": turn.llm_calls,
        "voice": turn.voice,
        "engines": {name: told.get("pid") for name, told in turn.engines.items()},
        "conditions": turn.conditions.name if turn.conditions else None,
    }
