"""Forms that say by themselves what they are, written as the rules of a language know them.

Only where no other reading is possible: ``5/5`` alone may be a day or a part, ``rated 5/5`` is no such thing.
"""

from __future__ import annotations

import re

from ondam.speech.reading.latin import spelled
from ondam.speech.reading.numerals import digits
from ondam.types import Language

_PAIR = "[0-9A-Fa-f]{2}"
_NO_MORE = r"(?![0-9A-Za-z]|[:\-][0-9A-Za-z])"
_HARDWARE = re.compile(
    rf"(?<![0-9A-Za-z:.\-])(?:{_PAIR}(?::{_PAIR}){{5}}|(?=[0-9-]*[A-Fa-f]){_PAIR}(?:-{_PAIR}){{5}}){_NO_MORE}"
)
"""A MAC address. With dashes and without a letter it may be any number of something."""

_CONTINENTAL = re.compile(
    r"(?<![\d.,])(?P<whole>[1-9]\d{0,2}(?:\.\d{3})+),(?P<part>\d{1,2})(?![\d]|[.,]\d)"
    r"|(?<=€)(?P<gap> ?)(?P<euros>\d{1,3}(?:\.\d{3})+|\d+),(?P<cents>\d\d)(?![\d]|[.,]\d)"
    r"|(?<![\d.,])(?P<before>\d+),(?P<hundredths>\d\d)(?= ?(?:€|EUR\b|유로))"
)
"""``1.234,56``, and ``19,99`` beside euros."""

_SCREENS = (
    *("monitor", "monitors", "TV", "TVs", "screen", "screens", "display", "displays", "laptop", "laptops"),
    *("tablet", "tablets", "television", "wheel", "wheels", "pipe", "pipes", "pizza", "iMac", "MacBook"),
    *("모니터", "티브이", "텔레비전", "화면", "디스플레이", "노트북", "태블릿", "파이프", "피자", "타이어"),
)
_INCHES = re.compile(rf"(?<![\w.,/'′°])(?P<num>\d{{1,3}}(?:\.\d+)?)(?:\"(?=[ -](?:{'|'.join(_SCREENS)}))|″)")
"""Two primes, or a quotation mark before what is sold by the inch: else it may end a quotation."""

_OPENED = re.compile(r'(?:^|[^\w"])"(?=\w)[^"]*$')
"""A quotation that has begun and not ended: ``the "iPhone 15" display``."""

_NO_DAY = r"(?! ?(?:까지|부터|오전|오후|\([월화수목금토일]))"
_PARTICLE = "(?P<after>예요|로|를|는|가)?"
_AFTER_POINT = {"예요": "이에요", "로": "으로", "를": "을", "는": "은", "가": "이"}
"""Particles after a vowel, and what they are after ``점``."""

_KO_SCORE = re.compile(
    r"(?P<of>(?:평점|별점|점수|평가(?!\S{0,2} ?\d+/\d+에))[은는이가]?:? ?)"
    rf"(?P<got>\d+(?:\.\d+)?)/(?P<most>5|10|100)(?![\d/.]){_NO_DAY}점?{_PARTICLE}"
)
"""``평가는 5/10에 합니다`` and ``점수는 5/10까지 제출`` are days."""

_KO_OUT_OF = re.compile(r"(?P<most>5|10|100)점 만점에 (?P<got>\d+(?:\.\d+)?)/(?P=most)(?![\d/.])점?")
_EN_SCORE = re.compile(
    r"(?P<of>\b(?:rated(?: it)?|scor(?:e|es|ed)(?: of)?|rating(?: of| is)?):? )"
    r"(?P<got>\d+(?:\.\d+)?)/(?P<most>5|10|100)(?![\d/]|\.\d)",
    re.IGNORECASE,
)
_EN_STARS = re.compile(r"(?<![\d/.,])(?P<got>\d+(?:\.\d+)?)/(?P<most>5|10)(?=[ -]stars?\b)", re.IGNORECASE)

_UNIT = r"(?:[mkcµ]?[glmVAW]|m[lL]|dB|[kMG]?Hz|mmHg|IU|[KMG]?B|%|℃)"
_DECIMAL_SCORE = re.compile(
    r"(?<![\d/.,])(?P<got>\d{1,2}\.\d)/(?P<most>5|10|100)(?![\d/A-Za-z]|\.\d)"
    rf"(?! ?{_UNIT}(?![A-Za-z]))점?(?:(?![가-힣])|(?=입니다|이에요|예요|이다|으로|로|에|[을를은는이가의]))"
    rf"{_PARTICLE}"
)
"""Nobody has parts of a part."""

_RAISED = re.compile("(?<=[\\w)])(?:⁻[⁰¹²³⁴-⁹]+|[⁰¹⁴-⁹][⁰¹²³⁴-⁹]*|[²³][⁰¹²³⁴-⁹]+)")
_RAISED_SIGNS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

_BUDGET = re.compile(r"[△▽▼] ?(?=\d[\d,.]*\s?(?:%|퍼센트|p\b|포인트|[조억만천백]|원|달러))")
"""Public accounts and markets write a decrease so; ``▲`` is an increase to some and a loss to others."""


def plain_forms(text: str, language: Language) -> str:
    """``text`` with those forms written as any rule knows them."""
    if "△" in text or "▽" in text or "▼" in text:
        text = _BUDGET.sub("마이너스 " if language == "ko" else "minus ", text)
    text = _RAISED.sub(lambda found: "^" + found[0].translate(_RAISED_SIGNS), text)
    if not any(sign in text for sign in ':-,"″/'):
        return text
    text = _HARDWARE.sub(lambda found: _hardware(found, language), text)
    text = _CONTINENTAL.sub(_continental, text)
    text = _INCHES.sub(lambda found: _inches(found, language), text)
    if language == "ko":
        text = _KO_OUT_OF.sub(r"\g<most>점 만점에 \g<got>점", text)
        return _DECIMAL_SCORE.sub(_points, _KO_SCORE.sub(_points, text))
    text = _DECIMAL_SCORE.sub(r"\g<got> out of \g<most>", text)
    text = _EN_SCORE.sub(r"\g<of>\g<got> out of \g<most>", text)
    return _EN_STARS.sub(r"\g<got> out of \g<most>", text)


def _points(found: re.Match[str]) -> str:
    of = found.groupdict().get("of") or ""
    return f"{of}{found['most']}점 만점에 {found['got']}점{_AFTER_POINT.get(found['after'], '')}"


def _hardware(found: re.Match[str], language: Language) -> str:
    pairs = re.split("[:-]", found[0].upper())
    if language == "ko":
        return " ".join(
            "".join(digits(sign) if sign.isdigit() else spelled(sign) for sign in pair) for pair in pairs
        )
    return ", ".join(" ".join(pair) for pair in pairs)


def _continental(found: re.Match[str]) -> str:
    if found["whole"] is not None:
        return f"{found['whole'].replace('.', '')}.{found['part']}"
    if found["euros"] is not None:
        return f"{found['gap']}{found['euros'].replace('.', '')}.{found['cents']}"
    return f"{found['before']}.{found['hundredths']}"


def _inches(found: re.Match[str], language: Language) -> str:
    before = found.string[: found.start()]
    if found[0].endswith('"') and _OPENED.search(before):
        return found[0]
    if language == "ko":
        return f"{found['num']}인치"
    after = found.string[found.end() : found.end() + 2]
    attribute = after[:1] == "-" or (after[:1] == " " and after[1:].isalpha())
    return f"{found['num']} inch" if attribute or found["num"] == "1" else f"{found['num']} inches"
