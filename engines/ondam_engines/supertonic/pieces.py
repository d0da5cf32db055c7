"""Cuts a text into parts that the networks compute at once. Nothing is lost: joined, they are the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from ondam_engines.supertonic.alphabet import measure

LONGEST = 300
"""Units of the alphabet in one part. The package cuts at 300 characters, Korean at 120, which are about as
many units; and only between sentences, so that a longer sentence is given to the network whole."""

PAUSES = (
    re.compile(r"[.!?…][\"')\]]*\s+"),
    re.compile(r"[,;:]\s+"),
    re.compile(r"\s+"),
)
"""Where a text may be cut (behind the match), best first."""

SENTENCE = re.compile(r"[.!?…][\"')\]]*\s*$")


def pieces(text: str, longest: int = LONGEST) -> Iterator[str]:
    """``text`` in parts of at most ``longest`` units, cut at the last good pause, in a word where there is
    none."""
    while text:
        fits = _fitting(text, longest)
        if fits == len(text):
            yield text
            return
        cut = _cut(text, fits)
        yield text[:cut]
        text = text[cut:]


def halves(text: str) -> tuple[str, str]:
    """``text`` in two, cut near the middle. The second is empty where it is one character."""
    half = max(1, measure(text) // 2)
    cut = _cut(text, _fitting(text, half)) if len(text) > 1 else len(text)
    return text[:cut], text[cut:]


def ends_sentence(piece: str) -> bool:
    """Whether a pause belongs behind ``piece``."""
    return SENTENCE.search(piece) is not None


def _fitting(text: str, longest: int) -> int:
    """How many characters of ``text`` fit; at least one."""
    fits = 0
    for total in accumulate(map(measure, text)):
        if total > longest:
            break
        fits += 1
    return max(1, fits)


def _cut(text: str, fits: int) -> int:
    for pause in PAUSES:
        ends = [match.end() for match in pause.finditer(text, 0, fits + 1) if match.end() <= fits]
        # A pause in the first half would make a part too short to sound well.
        if ends and ends[-1] > fits // 2:
            return ends[-1]
    return fits
