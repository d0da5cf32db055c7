"""When has the user finished? Pure: times come as arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ondam.dialog.events import Pause


class Endpointing(Protocol):
    """Decides at every frame of silence. A semantic policy (smart-turn) takes the same place."""

    def finished(self, pause: Pause) -> bool:
        """True when the pause means that the user has finished."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Finished after a fixed time without voice."""

    window_ms: float
    patience_ms: float = 8_000.0
    """How long an utterance that was opened by hand waits for its first voice."""

    def finished(self, pause: Pause) -> bool:
        """True once the window, or the patience before the first voice, has passed."""
        return pause.silence_ms >= (self.window_ms if pause.voiced else self.patience_ms)
