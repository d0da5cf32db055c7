"""What is said over an answer and is no question: signs of listening, and the wish for silence."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import resources
from typing import Literal

MOST = 3
"""So many signs in a row are still nothing else ("응, 응, 그래")."""

_LONGEST = 4
"""Words of the longest entry."""

_WORDS = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


@lru_cache(maxsize=3)
def _known(kind: Literal["signs", "stops", "wishes"]) -> frozenset[str]:
    words = tomllib.loads((resources.files(__package__) / "acknowledgement.toml").read_text("utf-8"))
    return frozenset(words[kind].split())


def _said(words: str) -> list[str]:
    return _WORDS.findall(words.lower().replace("’", "'"))


def acknowledges(words: str) -> bool:
    """Whether ``words`` are nothing but signs of listening."""
    said, signs = _said(words), _known("signs")
    return 0 < len(said) <= MOST and (all(word in signs for word in said) or "-".join(said) in signs)


def dismisses(words: str) -> bool:
    """Whether ``words`` want silence and nothing else."""
    return "-".join(_said(words)) in _known("wishes") or stops(words)


def stops(words: str) -> bool:
    """Whether ``words`` want silence and nothing else, and cannot be the end of a question that broke off."""
    return "-".join(_said(words)) in _known("stops")


def may_end_in_one(words: str) -> bool:
    """Whether the last of ``words`` may be a wish for silence or a sign of listening, said for itself."""
    said = _said(words)
    ends = ["-".join(said[-count:]) for count in range(1, min(len(said), _LONGEST) + 1)]
    return any(end in _known("stops") or end in _known("signs") for end in ends)
