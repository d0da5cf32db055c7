"""When has the user finished? Pure: times come as arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ondam.dialog.events import Pause


class Endpointing(Protocol):
    """Decides at every frame of silence after a voice. A semantic policy takes the same place."""

    def finished(self, pause: Pause) -> bool:
        """True when the pause means that the user has finished."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Finished after a fixed time without voice."""

    window_ms: float

    def finished(self, pause: Pause) -> bool:
        """True once the window has passed."""
        return pause.silence_ms >= self.window_ms
