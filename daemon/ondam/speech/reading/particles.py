"""Korean particles that agree with the sound before them.

A particle written after a digit, sign or Latin letter (``50%을``) was chosen for the eye, if at all. It is
marked before the reading, and made to agree with what the reading ended in.
"""

from __future__ import annotations

import re

MARK = "\ue000"
"""Stands between a written form and its particle while the reading is made (private use area)."""

_PAIRS = (
    ("이에요", "예요"),
    ("이라고", "라고"),
    ("이라는", "라는"),
    ("이라면", "라면"),
    ("으로", "로"),
    ("이란", "란"),
    ("이랑", "랑"),
    ("이나", "나"),
    ("은", "는"),
    ("이", "가"),
    ("을", "를"),
    ("과", "와"),
)
_AFTER_FINAL = {form: pair for pair in _PAIRS for form in pair}
_FORMS = "|".join(sorted(_AFTER_FINAL, key=len, reverse=True))
_WRITTEN = re.compile(
    rf"(?:(?<=[0-9A-Za-z%‰℃℉°㎎-㎥ℓ㏄⅐-⅞¼-¾²³€£¥₩￦$¢])(?<!제\d)|(?<=링크|코드))(?=(?:{_FORMS})(?:는|도|만|부터|써|서)?(?![가-힣\d]))"
)
_MARKED = re.compile(rf"(?P<last>\S?){MARK}(?P<form>{_FORMS})")
_FINAL_L = 8


def marked(text: str) -> str:
    """``text`` with ``MARK`` before every particle that follows a digit, a sign or a Latin letter."""
    return _WRITTEN.sub(MARK, text)


def agreed(text: str) -> str:
    """``text`` without marks, each marked particle in the form that the syllable before it asks for."""
    return _MARKED.sub(_agree, text).replace(MARK, "")


def particle(after: str, form: str) -> str:
    """``form`` (은, 를, …) as it is said after the word ``after``."""
    pair = _AFTER_FINAL[form]
    if not after or not "가" <= after[-1] <= "힣":
        return form
    final = (ord(after[-1]) - ord("가")) % 28
    if pair[0] == "으로" and final == _FINAL_L:
        return pair[1]
    return pair[0] if final else pair[1]


def _agree(found: re.Match[str]) -> str:
    return found["last"] + particle(found["last"], found["form"])
