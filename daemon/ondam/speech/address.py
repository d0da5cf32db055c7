"""Whether an utterance is addressed to us by name, and what is left of it without the name.

Recognisers misspell names. In Hangul a misspelt name sounds like it: every letter belongs to the same group
of sounds (all nasals at the end of a syllable are one), and one letter differs. That lets 옹담, 온단 and
언담 be 온담 while 온도, 온돌 and 온다 are not. Latin letters say too little of the sound for that: there one
letter may differ, two in long names. The name counts at the beginning, after words in ``address.toml``, and
at the very end.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from rapidfuzz.distance import Levenshtein

from ondam.types import Language

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_BETWEEN = " \t\n,、，;:·~-–—\"'“”‘’.!。！…"
_ASKED = "?？"
_AFTER_THE_NAME = re.compile(r"(?:[\s,、，;:·~.!?。！？…\"'“”‘’)\]]|[-–—](?!\d))+")

_MOST_OPENERS = 3
_MOST_PIECES = 3
"""Words that a recogniser makes of a name that is one word."""

_GROUPS = (
    # Initial consonants: plain, tense, aspirated.
    *("ㄱㄲㅋ", "ㄷㄸㅌ", "ㅂㅃㅍ", "ㅅㅆ", "ㅈㅉㅊ"),
    # Vowels that are taken for one another in quick speech.
    *("ㅓㅗㅜㅡ", "ㅐㅔㅒㅖ", "ㅛㅕㅠ", "ㅚㅙㅞ", "ㅣㅢ"),
)
_FINAL_GROUPS = ("ㄴㄵㄶㅁㄻㅇ", "ㄱㄲㅋㄳㄺ", "ㄷㅅㅆㅈㅊㅌㅎ", "ㅂㅍㅄㄿ", "ㄹㄼㄽㄾㅀ")
"""Finals: what is left of them where no vowel follows; nasals are one (Standard Pronunciation, chapter 4)."""

_SYLLABLES = range(0xAC00, 0xD7A4)
_INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_MEDIALS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINALS = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
"""The order that composes a syllable (Unicode 3.12): 0xAC00 + (initial * 21 + medial) * 28 + final."""


def addressed(words: str, names: Sequence[str], language: Language) -> str | None:
    """What is left of the utterance ``words`` when it is addressed to one of ``names``; None when it is not.

    ``""``: the name alone was said. Any of the names may be in Hangul or in Latin letters, whatever the
    ``language`` of the utterance, which only says what may stand before the name.
    """
    text = unicodedata.normalize("NFC", words)
    said = list(_words(text))
    called = [name for written in names if (name := _name(written)) is not None]
    if not said or not called:
        return None
    around = _around(language)
    rest = _at_the_beginning(text, said, called, around)
    return rest if rest is not None else _at_the_end(text, said, called, around)


@dataclass(frozen=True, slots=True)
class _Word:
    letters: str
    start: int
    end: int
    joined: bool
    """Nothing but space stands before it."""


def _words(text: str) -> Iterator[_Word]:
    before = 0
    for found in _WORD.finditer(text):
        yield _Word(_letters(found[0]), found.start(), found.end(), text[before : found.start()].isspace())
        before = found.end()


@dataclass(frozen=True, slots=True)
class _Name:
    letters: str
    pieces: int
    """Words it is written in."""
    hangul: bool


@dataclass(frozen=True, slots=True)
class _Around:
    openers: frozenset[str]
    greetings: frozenset[str]
    calls: frozenset[str]
    vocatives: frozenset[str]
    titles: frozenset[str]


def _at_the_beginning(
    text: str, said: Sequence[_Word], names: Sequence[_Name], around: _Around
) -> str | None:
    for at, greeted, called in _beginnings(said, around):
        end = _name_from(said, at, names, around, loosely=called)
        if end is None:
            continue
        while end < len(said) and (again := _name_from(said, end, names, around)) is not None:
            end = again
        if end < len(said):
            after = text[said[end - 1].end :]
            return after[found.end() if (found := _AFTER_THE_NAME.match(after)) else 0 :].strip()
        return text[said[0].start : said[at - 1].end] if greeted else ""
    return None


def _beginnings(said: Sequence[_Word], around: _Around) -> Iterator[tuple[int, bool, bool]]:
    """Where a name may begin: the word, whether a greeting came before it, whether a call did."""
    at, greeted = 0, False
    yield 0, False, False
    for _ in range(_MOST_OPENERS):
        for many in (2, 1):
            opener = " ".join(word.letters for word in said[at : at + many])
            if at + many <= len(said) and opener in around.openers | around.greetings | around.calls:
                at += many
                greeted = greeted or opener in around.greetings
                yield at, greeted, opener in around.calls
                break
        else:
            return


def _at_the_end(text: str, said: Sequence[_Word], names: Sequence[_Name], around: _Around) -> str | None:
    longest = max(name.pieces for name in names) + _MOST_PIECES
    for at in range(max(1, len(said) - longest), len(said)):
        before = text[: said[at].start].rstrip()
        # Without a comma or an ending that calls, only the very name is a name: "such a random".
        apart = before[-1:] in _BETWEEN + _ASKED
        if _name_from(said, at, names, around, strictly=not apart) != len(said):
            continue
        if not apart and not _calls(said[at:], names, around):
            return text.strip()  # "Who made Ondam?" is no question without its last word.
        before = before.rstrip(_BETWEEN)
        asked = any(mark in text[said[-1].end :] for mark in _ASKED) and before[-1:] not in _ASKED
        return before + "?" if asked else before
    return None


def _calls(tail: Sequence[_Word], names: Sequence[_Name], around: _Around) -> bool:
    """Whether the name that ``tail`` is has an ending that calls somebody."""
    whole = "".join(word.letters for word in tail)
    return not any(whole == name.letters for name in names)


def _name_from(
    said: Sequence[_Word],
    at: int,
    names: Sequence[_Name],
    around: _Around,
    *,
    loosely: bool = False,
    strictly: bool = False,
) -> int | None:
    """The word after the name that begins at the word ``at``; None where none does.

    A name in more pieces than it is written in must be spelt right, unless ``loosely``: then it need only
    sound right. ``strictly``: a name without an ending that calls must be spelt right, too.
    """
    for name in names:
        for pieces in range(1, name.pieces + _MOST_PIECES):
            if at + pieces > len(said):
                break
            whole = "".join(word.letters for word in said[at : at + pieces])
            exactly = pieces > name.pieces and not loosely
            after = at + pieces
            titled = after < len(said) and said[after].letters in around.titles and said[after].joined
            sounds_so = loosely and not name.hangul and _heard(whole) == _heard(name.letters)
            if sounds_so or _is_called(
                whole, name, around, exactly=exactly, strictly=strictly and not titled
            ):
                return after + titled
    return None


def _is_called(whole: str, name: _Name, around: _Around, *, exactly: bool, strictly: bool) -> bool:
    if whole == name.letters or (not exactly and not strictly and _alike(whole, name)):
        return True
    for stem in _stems(whole, around):
        if stem == name.letters or (not exactly and _alike(stem, name)):
            return True
    # A vowel takes the last consonant over: 온담아 is written as it is said, 온다마.
    return name.hangul and any(stem == name.letters for stem in _stems(_with_own_final(whole), around))


def _stems(whole: str, around: _Around) -> Iterator[str]:
    """``whole`` without each ending that calls."""
    for ending in around.vocatives:
        if len(whole) > len(ending) and whole.endswith(ending):
            yield whole.removesuffix(ending)


def _alike(whole: str, name: _Name) -> bool:
    if not name.hangul:
        allowed = 0 if len(name.letters) < 4 else 1 if len(name.letters) < 8 else 2
        return Levenshtein.distance(whole, name.letters, score_cutoff=allowed) <= allowed
    if len(name.letters) < 2:
        return False
    # One letter of the same sound in a name of two syllables; one of any sound beside it in a longer one.
    other = 0 if len(name.letters) < 3 else 1
    return (
        Levenshtein.distance(_sounds(whole), _sounds(name.letters), score_cutoff=other) <= other
        and Levenshtein.distance(_jamo(whole), _jamo(name.letters), score_cutoff=1 + other) <= 1 + other
    )


def _heard(word: str) -> str:
    """Latin letters as roughly what an English speaker hears: *on them* is *ondam*. Only for after a call."""
    for written, sound in (("th", "d"), ("ph", "f"), ("ck", "k"), ("c", "k"), ("q", "k"), ("z", "s")):
        word = word.replace(written, sound)
    return re.sub(r"(.)\1+", r"\1", re.sub(r"[aeiouy]+", "a", word))


def _name(written: str) -> _Name | None:
    pieces = [_letters(word) for word in _WORD.findall(unicodedata.normalize("NFC", written))]
    letters = "".join(pieces)
    return _Name(letters, len(pieces), any(ord(c) in _SYLLABLES for c in letters)) if letters else None


def _letters(word: str) -> str:
    return word.casefold().replace("’", "'")


def _jamo(word: str) -> str:
    """Hangul as letters; a final is marked, so that it is never taken for an initial."""
    return "".join("".join(_parts(c)) for c in word)


def _parts(c: str) -> tuple[str, ...]:
    if ord(c) not in _SYLLABLES:
        return (c,)
    number, final = divmod(ord(c) - 0xAC00, 28)
    initial, medial = divmod(number, 21)
    return _INITIALS[initial], _MEDIALS[medial], *([chr(0x11A7 + final)] if final else ())


@lru_cache(maxsize=1)
def _groups() -> dict[int, str]:
    table = {ord(letter): group[0] for group in _GROUPS for letter in group}
    finals = {ord(chr(0x11A7 + _FINALS.index(c))): "+" + group[0] for group in _FINAL_GROUPS for c in group}
    return table | finals


def _sounds(word: str) -> str:
    """Hangul as groups of sounds."""
    return _jamo(word).translate(_groups())


def _with_own_final(word: str) -> str:
    """온다마 as 온담아; as it is where there is nothing to give back."""
    if len(word) < 2 or not all(ord(c) in _SYLLABLES for c in word[-2:]):
        return word
    before, (initial, medial, *final) = word[-2], _parts(word[-1])
    if final or medial not in "ㅏㅣ" or (ord(before) - 0xAC00) % 28 or initial not in _FINALS:
        return word
    given_back = chr(ord(before) + _FINALS.index(initial))
    return word[:-2] + given_back + chr(0xAC00 + (_INITIALS.index("ㅇ") * 21 + _MEDIALS.index(medial)) * 28)


@lru_cache(maxsize=2)
def _around(language: Language) -> _Around:
    """Words of the language; English ones in Korean, too (오케이 is written ``okay`` as well)."""
    table = tomllib.loads(resources.files(__package__).joinpath("address.toml").read_text("utf-8"))
    spoken = [table[one] for one in dict.fromkeys((language, "en"))]

    def every(key: str) -> frozenset[str]:
        return frozenset(word for entries in spoken for word in entries[key])

    # A Korean name keeps its endings in a transcript that is taken for English.
    endings = (frozenset(table["ko"][key]) for key in ("vocatives", "titles"))
    return _Around(every("openers"), every("greetings"), every("calls"), *endings)
