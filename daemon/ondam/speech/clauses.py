"""A stream of text cut into clauses for a voice: the first as early as is safe, later ones longer.

Whether a stop ends a sentence is asked of stream2sentence's boundary detector (abbreviations, initials,
versions, URLs); Korean, numbers, lists and lengths are decided here. docs/decisions/clauses.md says why
its generator is not used. Characters are looked at one by one, and a decision depends only on what came
before it and the look-ahead it asked for: the clauses are the same for every chunking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Literal, Protocol

from ondam.speech.filters import speakable

Verdict = Literal["cut", "wait", "no"]

_MOST_CHARS = 1000
"""Characters kept at once, whatever they weigh: a stream of nothing but stops is no reason to grow."""

_VERDICTS: dict[str, Verdict] = {"split": "cut", "hold": "wait", "reject": "no"}

_STOPS = ".!?。！？…．｡"
_COMMAS = ",，、;；:："
_CLOSERS = "\"')]}”’»›」』）】〕》〉"
_GOES_ON = tuple("-–—~/")
_FULL_WIDTH_STOPS = "。！？｡"

_ENDS_SENTENCE = "다요까죠네지오음함임됨봄자라군야해어아"
"""Last syllables of a Korean sentence: a stop after them ends it even before a digit or a Latin letter."""

_CONNECTIVE = re.compile(
    r"[가-힣](?:지만|는데|은데|인데|니까|면서|으며|거나|도록|어서|아서|해서|려고|다가|더니|자마자|므로|다면|으면|하면"
    r"|하고|이고|되고|있고|없고|았고|었고|였고|했고|됐고|겠고)$"
)
"""Connective endings after which Korean breathes. Endings that are as often something else (-고 in 최고,
-면 in 라면, -서 in 에서) count only with the syllables before them that make them endings."""

_CONJUNCTION = re.compile(
    r"\s(?=(?:but|because|which|while|although|though|so that|unless|whereas)\s$)", re.IGNORECASE
)
"""English words before which a long clause may be cut."""

_PHRASE = re.compile(
    r"(?<=[A-Za-z])\s(?=(?:and|or|that|who|where|when|if|with|without|in|at|on|for|from|by|through|during|between|because"
    r"|but|which|while)\s$)",
    re.IGNORECASE,
)
"""English words before which a speaker who thinks takes breath; not after a number or an abbreviation."""

_MARKER = re.compile(r"(?:^|(?<=[\s(\[]))(?P<number>\d{1,2})$")
_ONLY_MARKER = re.compile(r"\s*(?:\d{1,3}|[A-Za-z가나다라마바사차카타파])[.)]\s*$")
_DATE = re.compile(r"\d{2,4}[.\-/] ?\d{1,2}[.\-/] ?\d{1,2}$")
_YEAR_OR_MONTH = re.compile(r"(?:^|(?<=\D))(?:\d{4}|\d{4}\. ?\d{1,2})$")
_OF_A_RANGE = re.compile(r"[\s~～∼〜]")
_EN_DATE = re.compile(r"[A-Za-z]{3,9}\.? \d{1,2}(?:st|nd|rd|th)?$")


class _Detector(Protocol):
    def classify(self, buffer: str, delimiter_index: int, next_char: str | None = None) -> str:
        """``split``, ``hold`` or ``reject``."""


@lru_cache(maxsize=1)
def _detector() -> _Detector:
    from stream2sentence.quick_yield_boundary import get_boundary_detector

    detector: _Detector = get_boundary_detector("en", True)
    return detector


@dataclass(frozen=True, slots=True)
class ClauseLengths:
    """How long a clause must be before it may end at less than a sentence end, in syllables.

    One entry for the first clause, the second, and all later ones. ``comma``: ``네,`` may be the first
    clause, and a gap after it sounds like breathing. ``ending``: at a connective ending or conjunction.
    ``phrase``: before a phrase of an English sentence that goes on, where the user still waits for the first
    sound: a voice needs half the time for half a sentence.
    ``cap``: where a text without any boundary is cut at a space (a voice needs about 6 syllables a second,
    so 95 are 16 s, and some voices read at most 300 characters at once).
    """

    comma: tuple[float, float, float] = (1, 6, 14)
    ending: tuple[float, float, float] = (7, 14, 22)
    phrase: tuple[float, float, float] = (10, inf, inf)
    cap: tuple[float, float, float] = (45, 70, 95)


class ClauseCutter:
    """Feed text as it arrives, get clauses as soon as they are whole. One per answer."""

    def __init__(self, lengths: ClauseLengths = ClauseLengths()) -> None:
        self._lengths = lengths
        self.clear()

    def clear(self) -> None:
        """Forget everything: the next text is a new answer."""
        self._text = ""
        self._syllables = 0.0
        self._ends: list[int] = []
        self._cut = 0
        self._last_marker = 0

    def feed(self, chunk: str) -> list[str]:
        """The clauses that ``chunk`` completes, in order; joined they are the input but for white space."""
        clauses: list[str] = []
        for char in chunk:
            self._add(char, clauses)
        return clauses

    def flush(self) -> list[str]:
        """What can be spoken now, when the stream has been silent for a while.

        Releases a text whose stop looks final (``값은 3.14.``) without the character that would prove it;
        ``Dr.``, ``1.`` and half sentences stay.
        """
        text = self._text.rstrip()
        if not self._ends or not speakable(text):
            return []
        end = self._ends[-1]
        if _past_stop(text, end) < len(text) or text[end] not in _STOPS:
            return []
        if self._sentence(text + "\n", end) != "cut":
            return []
        clauses: list[str] = []
        self._cut_at(len(self._text), clauses)
        return clauses

    def finish(self) -> list[str]:
        """The rest, perhaps nothing that can be spoken (``...``): ask ``speakable``. As new afterwards."""
        clauses: list[str] = []
        self._add("\n", clauses)
        if rest := self._text.strip():
            clauses.append(rest)
        self.clear()
        return clauses

    def _add(self, char: str, clauses: list[str]) -> None:
        if not self._text and char.isspace():
            return
        self._text += char
        self._syllables += _weight(char)
        if char in _STOPS or char in _COMMAS or char == "\n":
            self._ends.append(len(self._text) - 1)
        while self._ends:
            verdict = self._judge(self._ends[0])
            if verdict == "wait":
                break
            end = self._ends.pop(0)
            if verdict == "cut":
                self._cut_at(_past_stop(self._text, end), clauses)
        if char.isspace() and not self._ends:
            self._at_space(clauses)
        if self._syllables > self._of(self._lengths.cap):
            self._at_cap(clauses)
        elif len(self._text) > _MOST_CHARS:
            self._cut_at(len(self._text), clauses)

    def _of(self, lengths: tuple[float, float, float]) -> float:
        return lengths[min(self._cut, 2)]

    def _cut_at(self, end: int, clauses: list[str]) -> None:
        head, rest = self._text[:end].strip(), self._text[end:]
        clauses.append(head)
        self._cut += 1
        kept = rest.lstrip()
        shift = len(self._text) - len(kept)
        self._ends = [at - shift for at in self._ends if at >= shift]
        self._text = kept
        self._syllables = sum(map(_weight, kept))

    def _judge(self, end: int) -> Verdict:
        text = self._text
        if text[end] == "\n":
            before = text[:end]
            return "cut" if speakable(before) and not _ONLY_MARKER.match(before) else "no"
        if text[end] in _COMMAS:
            return self._comma(text, end)
        if not speakable(text[:end]):
            return "no"
        past = _past_stop(text, end)
        if past == len(text):
            return "wait"
        return self._sentence(text, end)

    def _comma(self, text: str, end: int) -> Verdict:
        if end + 1 == len(text):
            return "wait"
        after, before = text[end + 1], text[end - 1 : end]
        if not speakable(text[:end]) or _syllables_of(text[:end]) < self._of(self._lengths.comma):
            return "no"
        if text[end] in "，、；：":
            return "no" if before.isdigit() and after.isdigit() else "cut"
        if text[end] == ":" and not after.isspace():
            return "no"
        if not after.isspace():
            return "cut" if _is_hangul(after) and not before.isdigit() else "no"
        if before.isdigit() or (before.isalpha() and before.isascii()):
            following = text[end + 1 :].lstrip(" ")
            if not following:
                return "wait"
            # "1, 2, 3" and "November 29, 2026" are one thing each.
            if following[0].isdigit() and (before.isdigit() or _EN_DATE.search(text[:end])):
                return "no"
        return "cut"

    def _sentence(self, text: str, end: int) -> Verdict:
        """Whether the stop at ``end`` ends a sentence; the stops and closing marks after it are known."""
        past = _past_stop(text, end)
        before, stop, after = text[end - 1 : end], text[end], text[past : past + 1]
        closed = text[past - 1] in _CLOSERS
        if closed and _is_hangul(after):
            return "no"  # "안녕하세요."라고
        if past - end > 1 and not closed and after.isascii() and after.isspace():
            return self._after_ellipsis(text, past)
        if stop in _FULL_WIDTH_STOPS:
            return "no" if before.isdigit() and after.isdigit() else "cut"
        if stop in "!?…":
            return self._exclaimed(text, end, past)
        if before.isdigit():
            return self._numbered(text, end, past)
        if _is_hangul(before):
            return self._hangul(text, end, after, before)
        if stop == "．":
            return "no" if after.isascii() and after.isalnum() else "cut"
        return self._detected(text, end, past)

    def _after_ellipsis(self, text: str, past: int) -> Verdict:
        """``well... maybe`` goes on; ``음... 그건`` and ``Wait... What?`` break."""
        following = text[past:].lstrip(" ")
        if not following:
            return "wait"
        return "no" if following[0].islower() else "cut"

    def _exclaimed(self, text: str, end: int, past: int) -> Verdict:
        before, after = text[end - 1 : end], text[past]
        in_token = before.isascii() and not before.isspace() and after.isascii() and not after.isspace()
        if in_token:
            return "no"
        if _is_hangul(before) or not before.isascii() or text[end] == "…":
            return "cut"
        return self._detected(text, end, past)

    def _numbered(self, text: str, end: int, past: int) -> Verdict:
        after = text[past]
        if after.isdigit():
            return "no"
        left = text[:end]
        token = _OF_A_RANGE.split(left)[-1]
        if _DATE.search(left):
            return "cut" if after == "\n" else "no"
        decimal = "." in token or "．" in token or "," in token
        if not after.isspace():
            return "cut" if _is_hangul(after) and decimal else "no"
        if decimal:
            return "cut"
        if after == "\n":
            return "no" if _ONLY_MARKER.match(text[: end + 1]) else "cut"
        following = text[past:].lstrip(" ")
        if not following:
            return "wait"
        if following[0] == "\n":
            return "cut"
        if following[0].isdigit() and _YEAR_OR_MONTH.search(left):
            return "no"
        if (marker := _MARKER.search(left)) and self._is_list_marker(left, marker):
            return "no"
        return "cut"

    def _is_list_marker(self, left: str, marker: re.Match[str]) -> bool:
        number = int(marker["number"])
        head = left[: marker.start()].rstrip()
        listed = not head or head[-1] in ".!?…:;,。)" or number in (1, self._last_marker + 1)
        if listed:
            self._last_marker = number
        return listed

    def _hangul(self, text: str, end: int, after: str, before: str) -> Verdict:
        if _ONLY_MARKER.fullmatch(text[: end + 1]):
            return "no"  # 가. 나. 다.
        if after.isspace() or _is_hangul(after) or not after.isascii():
            return "cut"
        return "cut" if before in _ENDS_SENTENCE else "no"

    def _detected(self, text: str, end: int, past: int) -> Verdict:
        if _ONLY_MARKER.fullmatch(text[: end + 1]):
            return "no"
        action = _detector().classify(text, end, text[past])
        if action == "hold" and text[past:].strip(" ")[:1] == "\n":
            return "cut"
        if action == "hold" and not text[past].isspace() and not text[past].isascii():
            return "cut"
        if text[past:].lstrip(" ")[:1] in _GOES_ON:
            return "no"  # "9 a.m. - 5 p.m."
        return _VERDICTS[action]

    def _at_space(self, clauses: list[str]) -> None:
        if self._syllables < self._of(self._lengths.ending):
            return
        if found := _CONJUNCTION.search(self._text):
            if _syllables_of(self._text[: found.start()]) >= self._of(self._lengths.ending):
                self._cut_at(found.start(), clauses)
        elif _CONNECTIVE.search(self._text[-6:-1]):
            self._cut_at(len(self._text), clauses)
        elif (found := _PHRASE.search(self._text)) and (
            _syllables_of(self._text[: found.start()]) >= self._of(self._lengths.phrase)
        ):
            self._cut_at(found.start(), clauses)

    def _at_cap(self, clauses: list[str]) -> None:
        """No boundary came: cut at the last space that parts nothing, else between two syllables."""
        text = self._text
        spaces = [at for at in range(len(text) - 1, len(text) // 4, -1) if text[at].isspace()]
        for at in spaces:
            left, right = text[:at].rstrip()[-1:], text[at:].lstrip()[:1]
            if right and not (left.isdigit() or right.isdigit() or left in ".," or left in _CLOSERS):
                self._cut_at(at, clauses)
                return
        if self._syllables < 1.5 * self._of(self._lengths.cap):
            return
        for at in (*spaces, len(text) - 1):
            parts_word = (
                text[at - 1].isascii()
                and text[at].isascii()
                and text[at - 1].isalnum()
                and text[at].isalnum()
            )
            if not parts_word or self._syllables > 2 * self._of(self._lengths.cap):
                self._cut_at(at, clauses)
                return


def _past_stop(text: str, end: int) -> int:
    """The index after the stop at ``end``, the stops that repeat it, and the marks that close around it."""
    past = end + 1
    if text[end] in _STOPS:
        while past < len(text) and text[past] in _STOPS:
            past += 1
        while past < len(text) and text[past] in _CLOSERS:
            past += 1
    return past


def _weight(char: str) -> float:
    """About how many syllables a character takes to say."""
    if char.isdigit():
        return 1.5
    if char.isalpha():
        return 0.4 if char.isascii() else 1.0
    return 0.0


def _syllables_of(text: str) -> float:
    return sum(map(_weight, text))


def _is_hangul(char: str) -> bool:
    return "가" <= char <= "힣"
