"""Cuts a text that is too long to be synthesised at once, and knows how long a piece can last at most."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_PIECE = 150
"""Characters synthesised at once: nothing is heard before a piece is whole."""

PAUSES = (". ", "! ", "? ", "; ", ": ", ", ", " ")
"""Where a longer text may be cut, best first."""

SPARE_S = 1.5
"""For breath before and after."""

SYLLABLE_S = 0.3
"""Of a sign that is a syllable. Slow Korean has 0.25 s; people who talk have 0.15 s."""

DIGIT_S = 0.6
"""Read out, a digit is up to two syllables and a place: 오천."""

LETTER_S = 0.12
"""Of anything else. Slow English has 12 characters a second."""

_SYLLABLES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_DIGITS = re.compile(r"\d")


def pieces(text: str) -> Iterator[str]:
    """``text`` in parts of at most ``LONGEST_PIECE`` characters, cut at the last good pause."""
    rest = text.strip()
    while len(rest) > LONGEST_PIECE:
        ends = [rest.rfind(pause, 0, LONGEST_PIECE) + len(pause) for pause in PAUSES if pause in rest]
        # A pause in the first half would make a piece too short to sound well.
        cut = next((end for end in ends if end > LONGEST_PIECE // 2), LONGEST_PIECE)
        yield rest[:cut].strip()
        rest = rest[cut:].strip()
    if rest:
        yield rest


def longest_s(text: str) -> float:
    """Seconds that nobody needs to say ``text``: about twice the usual.

    Of a thousand requests three never reach their stop token and go on as noise until they are cut.
    """
    syllables, digits = len(_SYLLABLES.findall(text)), len(_DIGITS.findall(text))
    others = len(text) - syllables - digits
    return SPARE_S + syllables * SYLLABLE_S + digits * DIGIT_S + others * LETTER_S
