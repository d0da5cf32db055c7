"""The last turns in a few figures, for the status: from memory, never from the journal's file."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from ondam.journal.figures import figures
from ondam.journal.report import ORDER, populations
from ondam.journal.steady import Steadiness
from ondam.measure.distribution import distribution

LAST = 200
"""Turns: enough for a p95, and quick to count."""


class Summary:
    """Of one daemon's last turns. ``add`` may be called from several threads, others than ``as_json``'s."""

    def __init__(self, steadiness: Steadiness) -> None:
        self._steadiness = steadiness
        self._turns = deque[Any](maxlen=LAST)
        self._adding = threading.Lock()
        self._made: Mapping[str, Any] = self._count()

    def add(self, row: Mapping[str, Any]) -> None:
        """A turn that ended, as ``Turn.as_json`` gives it."""
        with self._adding:  # two conversations may end a turn at once; the later count is to stand
            self._turns.append(figures(dict(row)))
            self._made = self._count()

    def as_json(self) -> Mapping[str, Any]:
        """As it stands in the status; made when the last turn ended."""
        return self._made

    def _count(self) -> Mapping[str, Any]:
        kinds, drifting = populations(list(self._turns), self._steadiness)
        made = {}
        for name in ORDER:
            answered = [turn for turn in kinds[name] if turn.answered and not turn.typed]
            made[name] = {
                "turns": len(kinds[name]),
                "first_audio_ms": {
                    **distribution(turn.first_audio_ms for turn in answered),
                    "over_budget": sum(1 for turn in answered if turn.over_budget),
                },
                "answer_ms": distribution(turn.answer_ms for turn in answered),
            }
        return {"turns": len(self._turns), "drifting": drifting, "populations": made}
