"""Keeps the user's voice: a short memory of what came before, and the utterance that is open."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from ondam.types import HEARING_RATE_HZ, Audio, Block, Nanoseconds, Samples

REOPENS_WITHIN = 10 * HEARING_RATE_HZ
"""Samples after an utterance's end during which it can be reopened; longer than any take-back window."""

CUT_BETWEEN_S = (5.0, 1.0)
"""Before the end of what has come: a piece is cut off there where it is quietest, between two words. What is
left holds the last voice."""

QUIET_S = 0.1
"""So long a stretch is compared: the gap between words is longer than that inside them."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What the user said, with the times of its samples. Blocks follow one another without gap or overlap."""

    blocks: tuple[Block, ...]

    @property
    def samples(self) -> Samples:
        """All samples, mono int16 at 16 kHz."""
        if not self.blocks:
            return np.zeros(0, np.int16)
        return np.concatenate([block.samples for block in self.blocks])

    def ending_in(self, silence_ms: float, so_far_ms: float) -> Samples:
        """The samples, with zeros after them where of ``silence_ms`` only ``so_far_ms`` have passed."""
        lacking = round(max(0.0, silence_ms - so_far_ms) * HEARING_RATE_HZ / 1000)
        return np.concatenate([self.samples, np.zeros(lacking, np.int16)])

    @property
    def audio(self) -> Audio:
        """The same as sound."""
        return Audio(self.samples, HEARING_RATE_HZ)

    def at_ns(self, index: int) -> Nanoseconds | None:
        """When the sample ``index`` (counted from the utterance's first) passed the converter."""
        for block in self.blocks:
            if index <= len(block.samples):
                return block.at_ns + index * 1_000_000_000 // HEARING_RATE_HZ
            index -= len(block.samples)
        return None


class Capture:
    """A ring of recent blocks, and the blocks of the open utterance.

    Every sample belongs to at most one utterance: what one took is not given to the next as pre-roll.
    """

    def __init__(self, pre_roll_ms: int, max_utterance_s: int) -> None:
        self._pre_roll = pre_roll_ms * HEARING_RATE_HZ // 1000
        self._longest = max_utterance_s * HEARING_RATE_HZ
        self._recent: deque[Block] = deque()
        self._recent_samples = 0
        self._open: list[Block] | None = None
        self._open_samples = 0
        self._closed: list[Block] = []
        """The last utterance and what came after it, for as long as it may be taken back."""
        self._closed_room = 0
        """Samples that may still be added to it."""
        self._ended_at = 0
        """How many of its blocks had come when it ended."""
        self._resumed_at = 0
        """How many blocks of the open utterance came before it was reopened."""

    def add(self, block: Block) -> None:
        """Remember a block, in the open utterance or in the ring."""
        if self._open is not None:
            self._open.append(block)
            self._open_samples += len(block.samples)
            return
        if self._closed_room > 0:
            self._closed.append(block)
            self._closed_room -= len(block.samples)
        elif self._closed:
            self._closed = []
        self._recent.append(block)
        self._recent_samples += len(block.samples)
        while self._recent_samples - len(self._recent[0].samples) >= self._pre_roll:
            self._recent_samples -= len(self._recent.popleft().samples)

    @property
    def full(self) -> bool:
        """The open utterance has reached its longest length."""
        return self._open_samples >= self._longest

    def open(self) -> None:
        """Begin an utterance with what is in the ring."""
        self._closed, self._closed_room, self._ended_at = [], 0, 0
        self._resumed_at = 0
        self._open = list(self._recent)
        self._open_samples = self._recent_samples
        self._recent.clear()
        self._recent_samples = 0

    def hand_on(self) -> Utterance:
        """Take all but the end off the open utterance; that goes on with the rest. Every sample is in one."""
        blocks = self._open or []
        cut = _between_words(blocks)
        piece, self._open = blocks[:cut], blocks[cut:]
        self._open_samples = sum(len(block.samples) for block in self._open)
        self._resumed_at = max(0, self._resumed_at - cut)
        return Utterance(tuple(piece))

    def close(self) -> Utterance:
        """End the open utterance and hand it over. It can be reopened for a while."""
        blocks, self._open, self._open_samples = self._open or [], None, 0
        self._closed, self._closed_room, self._ended_at = list(blocks), REOPENS_WITHIN, len(blocks)
        return Utterance(tuple(blocks))

    def reopen(self) -> None:
        """Go on with the utterance that was closed last, with everything that was heard since."""
        self._resumed_at = self._ended_at if self._closed else 0
        self._open = self._closed or list(self._recent)
        self._open_samples = sum(len(block.samples) for block in self._open)
        self._closed, self._closed_room = [], 0
        self._recent.clear()
        self._recent_samples = 0

    def so_far(self) -> Utterance:
        """The open utterance as it is now; it stays open."""
        return Utterance(tuple(self._open or ()))

    def added(self) -> Utterance:
        """Of the open utterance what came after the end that was taken back."""
        return Utterance(tuple((self._open or ())[self._resumed_at :]))

    def forget(self) -> None:
        """Drop what is remembered: it holds the assistant's own voice."""
        self._closed, self._closed_room = [], 0
        self._recent.clear()
        self._recent_samples = 0


def _between_words(blocks: list[Block]) -> int:
    """The number of blocks before the quietest place near the end of ``blocks``, the last of equals."""
    if len(blocks) < 2:
        return len(blocks)
    in_a_second = HEARING_RATE_HZ / (sum(len(block.samples) for block in blocks) / len(blocks))
    around = max(1, round(QUIET_S * in_a_second))
    first = max(len(blocks) // 2, len(blocks) - round(CUT_BETWEEN_S[0] * in_a_second))
    last = max(first + 1, len(blocks) - round(CUT_BETWEEN_S[1] * in_a_second))
    power = [float(np.mean(np.square(block.samples, dtype=np.float32))) for block in blocks[first:last]]
    heard = np.convolve(power, np.ones(around), "same") if len(power) >= around else np.array(power)
    # Its edges lack neighbours, and would seem quiet.
    heard[: around // 2], heard[len(heard) - around // 2 :] = np.inf, np.inf
    quietest = len(heard) - 1 - int(np.argmin(heard[::-1]))
    return first + quietest
