"""Answers of the user's own: what was said is looked up before a language model is asked. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ondam.types import Language

LONGEST = 200
"""Characters of a question that is compared with patterns: 40 s of speech are no greeting."""

PATTERN_TIMEOUT_S = 0.02
"""For one comparison, which takes microseconds. A pattern like ``(a|aa)+[bc]`` can run away for hours."""

_LEFT_OUT = re.compile(r"['’ʼ`]")
_GAPS = re.compile(r"\s+")


class Entry(Protocol):
    """What the configuration says of one answer."""

    @property
    def match(self) -> Sequence[str]:
        """Questions, word by word."""

    @property
    def pattern(self) -> str | None:
        """A regular expression for the whole question."""

    @property
    def say(self) -> Sequence[str]:
        """Answers, taken in turns; at least one."""

    @property
    def language(self) -> Language | None:
        """None: both."""


@dataclass(frozen=True, slots=True)
class CannedAnswer:
    """One answer that was found; ``entry`` is its place in the configuration."""

    entry: int
    say: str


class CannedAnswers:
    """The configured answers of one conversation, and whose turn it is where there are several."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = tuple(entries)
        self._exact = [frozenset(map(_tight, entry.match)) for entry in self._entries]
        self._patterns = [compiled(entry.pattern) if entry.pattern else None for entry in self._entries]
        self._said = [0] * len(self._entries)
        self.run_away: list[str] = []
        """Patterns that took too long once; they are not tried again."""

    def find(self, question: str, language: Language) -> CannedAnswer | None:
        """The first entry that fits, with its next answer. The same until ``spoken`` is called."""
        if not self._entries:
            return None
        plain = normalised(question)
        tight = plain.replace(" ", "")
        if not tight:
            return None
        for number, entry in enumerate(self._entries):
            if entry.language not in {None, language}:
                continue
            if tight in self._exact[number] or self._fits(number, plain):
                return CannedAnswer(number, entry.say[self._said[number] % len(entry.say)])
        return None

    def spoken(self, answer: CannedAnswer) -> None:
        """``answer`` became a turn's answer: the next one is another."""
        self._said[answer.entry] += 1

    def _fits(self, number: int, plain: str) -> bool:
        pattern = self._patterns[number]
        if pattern is None or len(plain) > LONGEST:
            return False
        try:
            return pattern.fullmatch(plain, timeout=PATTERN_TIMEOUT_S) is not None
        except TimeoutError:
            self._patterns[number] = None
            self.run_away.append(pattern.pattern)
            return False


def normalised(text: str) -> str:
    """``text`` as patterns see it: NFC, lower case, letters and digits alone, single spaces between."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    text = _LEFT_OUT.sub("", text)
    return _GAPS.sub(" ", "".join(sign if _kept(sign) else " " for sign in text)).strip()


def _tight(text: str) -> str:
    """Without spaces: a recognizer writes 몇 시야 and 몇시야 alike."""
    return normalised(text).replace(" ", "")


def _kept(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "LMN"


def compiled(pattern: str) -> Any:
    """For ``fullmatch`` with a timeout, which ``re`` does not have. Raises ValueError, with the reason."""
    import regex  # 11 MiB, for those who have patterns

    try:
        return regex.compile(pattern, regex.IGNORECASE | regex.VERSION0)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from error
