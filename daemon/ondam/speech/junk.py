"""Transcripts of nothing: sign-offs, credits and loops that a recogniser writes for silence and noise.

Whisper was trained on subtitles, and hears in silence what subtitles say there. Patterns are data, in
``junk.toml``; whether there was any speech energy is for the caller to weigh against ``SUSPECT``.
"""

from __future__ import annotations

import enum
import re
import tomllib
from functools import lru_cache
from importlib import resources

from ondam.types import Language


class Verdict(enum.Enum):
    """What a transcript is worth."""

    FINE = "fine"
    SUSPECT = "suspect"
    """People say it and silence makes it (``감사합니다``): a turn only when the sound was speech."""
    JUNK = "junk"
    """No turn, whatever the sound was."""


_ASIDE = re.compile(r"[(\[（【♪♫].{0,200}?[)\]）】♪♫]|\*[^\W\d].{0,200}?\*|[♪♫]+", re.DOTALL)
"""A sound described, not said: ``(keyboard clicking)``, ``[Music]``, ``*applause*``; not ``3 * 4 * 5``."""

_UNSAID = re.compile(r"[^\w○〇]|_")
_LOOP = re.compile(r"(?P<phrase>.{2,60}?)(?P=phrase){5,}|(?P<sound>.)(?P=sound){9,}", re.DOTALL)
"""The same phrase six times and more, or a syllable ten times: the decoder ran in a circle."""

_SENTENCE = re.compile(r"(?<=[.!?。！？…\n])\s*")
_LONG = 10
"""Letters of a sentence that nobody means twice."""

_MOST_CHARS = 4000
"""Longer transcripts are not searched for loops beyond here: the search is quadratic at worst."""


def verdict(text: str, language: Language) -> Verdict:
    """Whether the whole utterance ``text`` is something a person said to us."""
    said = _said(text)
    if not said:
        return Verdict.JUNK
    loop = _LOOP.match(said[:_MOST_CHARS])
    if loop and (loop["phrase"] or loop["sound"] or "").startswith(said[loop.end() :][:60]):
        return Verdict.JUNK
    junk, suspect = _patterns(language)
    if junk.fullmatch(said):
        return Verdict.JUNK
    parts = [part for part in map(_said, _SENTENCE.split(text)) if part]
    if len(parts) > 1 and all(junk.fullmatch(part) for part in parts):
        return Verdict.JUNK
    if all(suspect.fullmatch(part) or junk.fullmatch(part) for part in parts):
        return Verdict.SUSPECT
    return Verdict.FINE


def hallucinated(text: str, language: Language) -> bool:
    """Whether ``text`` is junk without a doubt; see ``verdict``."""
    return verdict(text, language) is Verdict.JUNK


def without_junk_tail(text: str, language: Language) -> str:
    """``text`` without sign-offs, described sounds and repeats at its end; empty when that was all."""
    kept = _ASIDE.sub(" ", text).strip()
    junk, _ = _patterns(language)
    sentences = [part for part in _SENTENCE.split(kept) if part.strip()]
    while sentences and (not _said(sentences[-1]) or junk.fullmatch(_said(sentences[-1]))):
        sentences.pop()
    while len(sentences) > 1 and _said_again(*sentences[-2:]):
        sentences.pop()
    kept = kept[: _end_of(kept, sentences)].strip()
    return "" if verdict(kept, language) is Verdict.JUNK else _without_loop(kept)


def _said_again(sentence: str, after: str) -> bool:
    """A recogniser that is given a sentence without the silence after it may write it twice.

    Short ones stay: people do say "no, no" and "really? Really?". Who says a long one twice means it once.
    """
    said = _said(sentence)
    return len(said) >= _LONG and said == _said(after)


def _end_of(text: str, sentences: list[str]) -> int:
    end = 0
    for sentence in sentences:
        end = text.index(sentence, end) + len(sentence)
    return end


def _without_loop(text: str) -> str:
    """A phrase said over and over at the end is kept once."""
    loop = re.search(
        r"(?P<phrase>\S.{1,60}?)(?P<gap>[\s,.]*)(?:(?P=phrase)(?P=gap)){5,}[\s,.]*$", text[:_MOST_CHARS]
    )
    return text if loop is None else text[: loop.start()] + loop["phrase"].strip()


def _said(text: str) -> str:
    return _UNSAID.sub("", _ASIDE.sub("", text)).casefold()


@lru_cache(maxsize=4)
def _patterns(language: Language) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Junk in any language (recognisers mix them up), suspects of the language that is spoken."""
    table = tomllib.loads(resources.files(__package__).joinpath("junk.toml").read_text("utf-8"))
    junk = [pattern for entries in table.values() for pattern in entries["junk"]]
    return re.compile("|".join(f"(?:{one})" for one in junk)), re.compile(
        "|".join(table[language]["suspect"])
    )
