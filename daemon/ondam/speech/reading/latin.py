"""Latin letters in Korean text: known words, spelled capitals, letters before numbers (A4, H200)."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import resources

from ondam.types import Language

_NAMES = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            *("에이", "비", "씨", "디", "이", "에프", "지", "에이치", "아이", "제이", "케이", "엘", "엠"),
            *("엔", "오", "피", "큐", "알", "에스", "티", "유", "브이", "더블유", "엑스", "와이", "제트"),
        ),
        strict=True,
    )
)
_PLURAL_ACRONYM = re.compile(r"(?<![A-Za-z])([A-Z]{2,6})s(?![A-Za-z])")
_DOTTED = re.compile(r"(?<![A-Za-z.])(?:[A-Z]\.){2,}(?![A-Za-z])")
_ACRONYM = re.compile(r"(?<![A-Za-z])[A-Z]{2,6}(?![A-Za-z])")
_LONE = re.compile(r"(?<![A-Za-z'’])(?<![A-Za-z]{2} )[A-Za-z](?![A-Za-z'’])(?! [A-Za-z]{2})")
_MIXED = re.compile(r"(?<![A-Za-z])[A-Z]{1,6}-?(?=\d)|(?<=\d)-?[A-Z]{1,4}(?![A-Za-z])")


@lru_cache(maxsize=2)
def lexicon(language: Language) -> tuple[re.Pattern[str], dict[str, str]]:
    """The words of ``lexicon.toml``: what finds them, and what is said, by their folded form."""
    table = tomllib.loads(resources.files(__package__).joinpath("lexicon.toml").read_text("utf-8"))[language]
    said = {word.casefold(): spoken for word, spoken in table.items()}
    words = "|".join(re.escape(word) for word in sorted(said, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9.])(?:{words})(?![A-Za-z0-9])", re.IGNORECASE), said


def known_words(text: str, language: Language) -> str:
    """``text`` with the words of the lexicon as they are said."""
    pattern, said = lexicon(language)
    return pattern.sub(lambda word: said[word[0].casefold()], text)


def spelled(letters: str) -> str:
    """The Korean names of letters: ``GPU`` is 지피유."""
    return "".join(_NAMES.get(letter, "") for letter in letters.upper())


def latin_in_korean(text: str) -> str:
    """Capitals spelled, in words of their own and beside numbers; other words are left to the voice."""
    text = _PLURAL_ACRONYM.sub(r"\1", text)
    for pattern in (_DOTTED, _MIXED, _ACRONYM, _LONE):
        text = pattern.sub(_spell, text)
    return text


def _spell(found: re.Match[str]) -> str:
    before = found.string[found.start() - 1 : found.start()]
    after = found.string[found.end() : found.end() + 1]
    names = spelled(found[0])
    return f"{' ' if before.isdigit() else ''}{names}{' ' if after.isdigit() else ''}"
