"""How far what was heard is from what was said: word and character errors. Pure.

What counts as the same is decided here, and docs/bench-modes.md says it: case, punctuation and the way a
number is written are no errors. English by jiwer, Korean by kocer (docs/decisions/word-errors.md).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import jiwer
import kocer

from ondam.speech import reading
from ondam.types import Language

APOSTROPHES = str.maketrans("", "", "'’")
"""Dropped, not made a space: "it's" is one word."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Words or characters that were put in the place of others, left out or added; ``of`` what was said."""

    wrong: int
    of: int

    @property
    def rate(self) -> float | None:
        """More than 1 where more was added than was said. None of nothing."""
        return round(self.wrong / self.of, 4) if self.of else None

    def __add__(self, other: Errors) -> Errors:
        return Errors(self.wrong + other.wrong, self.of + other.of)


@dataclass(frozen=True, slots=True)
class Score:
    """One utterance, or the sum of many: a long one counts for more than a short one."""

    words: Errors | None
    """None in Korean, where spaces are a matter of taste."""
    characters: Errors
    """Spaces do not count in Korean."""
    as_written: Errors
    """Characters with case, punctuation, spaces and digits as they stand: what the normalising hides."""

    def as_json(self) -> dict[str, float | int | None]:
        """Rates as parts of 1, and how much was said."""
        return {
            "wer": self.words.rate if self.words else None,
            "cer": self.characters.rate,
            "cer_as_written": self.as_written.rate,
            "words": self.words.of if self.words else None,
            "characters": self.characters.of,
        }


def plain(text: str, language: Language) -> str:
    """English: small letters, words with one space between, numbers spelled out as a voice is given them.

    Korean: as it stands; kocer tries the ways in which it may be written. Empty where nothing is said.
    """
    text = unicodedata.normalize("NFC", text)
    if language == "ko":
        return text.strip() if any(sign.isalnum() for sign in text) else ""
    read = reading(text, language).casefold().translate(APOSTROPHES)
    return " ".join("".join(sign if sign.isalnum() else " " for sign in read).split())


def score(said: str, heard: str, language: Language) -> Score:
    """``said`` must have words in it: ValueError."""
    reference, hypothesis = plain(said, language), plain(heard, language)
    if not reference:
        raise ValueError("nothing is said")
    written = _jiwer(
        jiwer.process_characters(
            unicodedata.normalize("NFC", said).strip(), unicodedata.normalize("NFC", heard).strip()
        )
    )
    if language == "ko":
        counted = kocer.measure(reference, hypothesis)
        return Score(None, Errors(sum(counted.ops.values()), counted.ref_len), written)
    return Score(
        _jiwer(jiwer.process_words(reference, hypothesis)),
        _jiwer(jiwer.process_characters(reference, hypothesis)),
        written,
    )


def total(scores: Iterable[Score]) -> Score | None:
    """Of all utterances together; None of none."""
    known = list(scores)
    if not known:
        return None
    words = [one.words for one in known if one.words is not None]
    return Score(
        sum(words, Errors(0, 0)) if words else None,
        sum((one.characters for one in known), Errors(0, 0)),
        sum((one.as_written for one in known), Errors(0, 0)),
    )


def _jiwer(counted: jiwer.WordOutput | jiwer.CharacterOutput) -> Errors:
    wrong = counted.substitutions + counted.deletions
    return Errors(wrong + counted.insertions, counted.hits + wrong)
