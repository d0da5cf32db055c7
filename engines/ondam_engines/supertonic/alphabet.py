"""What a voice can be given: text in which every character is in its alphabet, and nothing is lost that is
said."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

SAID = {"@": " at ", "e.g.,": "for example, ", "i.e.,": "that is, "}
"""What supertonic's own preparation would lengthen, lengthened before anything is measured and cut."""

INSTEAD = {
    "。": ".",
    "、": ",",
    "·": ",",
    "・": ",",
    "「": '"',
    "」": '"',
    "『": '"',
    "』": '"',
    "《": '"',
    "》": '"',
    "〈": '"',
    "〉": '"',
    "«": '"',
    "»": '"',
    "‐": "-",
    "−": "-",
    "〜": "~",
    "×": " x ",
    "÷": "/",
    "′": "'",
    "″": '"',
    "ß": "ss",
    "Æ": "AE",
    "æ": "ae",
    "Ø": "O",
    "ø": "o",
    "Đ": "D",
    "đ": "d",
    "Ł": "L",
    "ł": "l",
    "ı": "i",
}
"""What is written otherwise where the alphabet lacks it."""

TAG = re.compile("[<>]")
"""The model is told its language in tags; what a person writes must not look like one."""

JOINED = ("Mn", "Me", "Cf", "Cc", "Cs", "Co", "Cn")
"""Accents, joiners, variation selectors and what is nothing: dropped without a gap. Everything else that is
unknown leaves a space, so that the words beside it do not run together."""

SPACES = re.compile(r"\s+")


class Alphabet:
    """The characters that a model knows.

    ``knows`` is asked once for each character in its decomposed form (NFKD), as the model is given it.
    """

    def __init__(self, knows: Callable[[str], bool]) -> None:
        self._kept = cache(lambda sign: self._decide(sign, knows))

    def fit(self, text: str) -> str:
        """``text`` (in NFC, so that a syllable is one character) without what is not in the alphabet.

        Never raises; empty where nothing is left that could be said.
        """
        for short, long in SAID.items():
            text = text.replace(short, long)
        # Only unpaired surrogates can make normalising fail later, and they are nothing.
        composed = unicodedata.normalize("NFC", TAG.sub(" ", text))
        fitted = SPACES.sub(" ", "".join(map(self._kept, composed))).strip()
        return fitted if any(sign.isalnum() for sign in fitted) else ""

    def _decide(self, sign: str, knows: Callable[[str], bool]) -> str:
        parts = unicodedata.normalize("NFKD", sign)
        if sign.isspace() or all(map(knows, parts)):
            return sign
        if sign in INSTEAD:
            return "".join(part if part == " " or knows(part) else " " for part in INSTEAD[sign])
        # The letter without the accent that is unknown.
        known = "".join(part for part in parts if knows(part))
        if known and any(part.isalnum() for part in known):
            return unicodedata.normalize("NFC", known)
        return "" if unicodedata.category(sign) in JOINED else " "


def measure(text: str) -> int:
    """How many units of the alphabet ``text`` is: a Hangul syllable is two or three, a Latin letter one."""
    return len(unicodedata.normalize("NFKD", text))
