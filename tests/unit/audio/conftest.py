from __future__ import annotations

from tests.unit.audio.fake_card import card

__all__ = ["card"]
