"""Notices that a voice falls away some 50 ms before a voice detector is sure of it."""

from __future__ import annotations

import math
from enum import Enum, auto

import numpy as np

from ondam.types import Samples

BELOW_DB = 25.0
"""Under the loudest 10 ms of the utterance. Between words a voice falls by 10 to 20 dB; the rooms that people
were recorded in lie 22 to 37 dB below them."""

BLOCKS = 3
"""So many blocks of 10 ms in a row: 30 ms."""

UNSURE = 0.95
"""While the voice detector is surer than this of a voice it is one: the silence inside a "t" or "k"."""

RISEN = 2
"""Loud blocks in a row after which the voice goes on."""


class Change(Enum):
    """What a block changed."""

    FELL = auto()
    ROSE = auto()


class Fall:
    """Follows the loudness of one utterance. script/measure_trigger.py says how early and how often wrong."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new utterance."""
        self._loudest_db = -math.inf
        self.go_on()

    def go_on(self) -> None:
        """The voice goes on, whatever it seemed."""
        self._quiet = 0
        self._loud = 0
        self._fallen = False

    def hear(self, samples: Samples, probability: float) -> Change | None:
        """``samples``: 10 ms of the utterance; ``probability``: of voice, in the latest frame judged."""
        power = float(np.square(samples.astype(np.float32)).mean()) if len(samples) else 0.0
        level_db = 10 * math.log10(power) if power else -math.inf
        self._loudest_db = max(self._loudest_db, level_db)
        quiet = level_db < self._loudest_db - BELOW_DB
        self._quiet = self._quiet + 1 if quiet else 0
        self._loud = 0 if quiet else self._loud + 1
        if not self._fallen and self._quiet >= BLOCKS and probability < UNSURE:
            self._fallen = True
            return Change.FELL
        if self._fallen and self._loud >= RISEN:
            self._fallen = False
            return Change.ROSE
        return None
