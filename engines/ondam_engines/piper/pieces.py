"""Cuts a text that is too long to be synthesised at once."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST_PIECE = 200
"""Characters synthesised at once. The network's memory, and the time until it can stop, grow with them: a
sentence of 1,200 took 280 MiB and stopped after 300 ms."""

PAUSES = (". ", "! ", "? ", "; ", ": ", ", ", " ")
"""Where a longer text may be cut, best first."""


def pieces(text: str) -> Iterator[str]:
    """``text`` in parts of at most ``LONGEST_PIECE`` characters, cut at the last good pause."""
    while len(text) > LONGEST_PIECE:
        ends = [text.rfind(pause, 0, LONGEST_PIECE) + len(pause) - 1 for pause in PAUSES]
        # A pause in the first half would make a piece too short to sound well.
        cut = next((end for end in ends if end > LONGEST_PIECE // 2), LONGEST_PIECE)
        yield text[:cut]
        text = text[cut:]
    yield text
