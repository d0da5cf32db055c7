"""Text as a voice is to say it. Written text keeps its digits; only the voice is given the reading."""

from __future__ import annotations

import html
import re
import unicodedata

from ondam.speech.markup import LINK
from ondam.speech.reading.en import read_english
from ondam.speech.reading.forms import plain_forms
from ondam.speech.reading.ko import read_korean
from ondam.types import Language

_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ",
    0xA0: " ",
    0x202F: " ",
    0xB5: "μ",
}
_SQUARED = re.compile("[㎀-㏟]")
_ENCLOSED = re.compile("[Ⅰ-ⅻ①-⑳❶-❿]")
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "«": '"', "»": '"', "「": '"', "」": '"'})
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\u20e3]")
_ADDRESS = re.compile(
    r"(?<![\w@.\-])(?:[a-z][a-z+]{1,9}://|mailto:"
    r"|(?:[a-z0-9\-]{1,63}\.){1,4}(?:com|net|org|edu|gov|info|io|dev|app|ai|co|kr|jp|uk|us|de|me)/(?=[\w~?]))"
    r"[!-~]*[\w/=]",
    re.ASCII | re.IGNORECASE,
)
"""Addresses that do not begin as those that are left out of the stream (``naver.com/map?x=1``)."""
_OTHER_DIGITS = re.compile(r"[^\D0-9]")
_ENTITY = re.compile(r"&#?\w{1,20};")
_NAKED_POINT = re.compile(r"(?<![\w.,)\]])\.(?=\d)")
"""``.5 mg`` is half of one, and must never be heard as five."""

_LAUGHS = (
    (re.compile("ㅋ+"), "크크"),
    (re.compile("ㅎ+"), "흐흐"),
    (re.compile("[ㄱ-ㆎ]+"), ""),
)
_OPENS, _CLOSES = re.compile(r"\s*[(\[{《〈『【]\s*"), re.compile(r"\s*[)\]}》〉』】]")
_UNSAYABLE = re.compile(r"[^\w\s.,!?…:;'\-]|_")
_FOREIGN = re.compile(r"[^\x00-\x7f가-힣\s…]")
_GAPS = re.compile(r"\s+")
_BEFORE_STOP = re.compile(r"\s+(?=[.,!?…:;])|(?<=[,:;])[,:;\s]*(?=[.,!?…])")
_STOPS_FIRST = re.compile(r"^[\s.,!?…:;'\-]+(?=\w)")
_LOOSE_DASH = re.compile(r"(?<!\w)-+|-+(?!\w)|\s?[—―–]\s?")


def reading(text: str, language: Language) -> str:
    """``text`` with numbers, signs and abbreviations spelled out, and nothing a voice cannot say.

    One line, spaces single, sentence marks kept. A character without a reading is left out; it never
    costs the sentence. Empty when nothing can be said.
    """
    text = unicodedata.normalize("NFC", text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    text = _OTHER_DIGITS.sub(lambda sign: str(unicodedata.decimal(sign[0])), text)
    text = _INVISIBLE.sub("", text.translate(_HALF_WIDTH).translate(_QUOTES))
    text = _SQUARED.sub(_unit_of, text)
    text = _ADDRESS.sub(LINK[language], text)
    text = text.replace(">=", "≥").replace("<=", "≤").replace("+/-", "±")
    text = plain_forms(_NAKED_POINT.sub("0.", text), language)
    text = _ENCLOSED.sub(_number_of, text.replace("。", ". ").replace("、", ", ").replace('"', ""))
    text = read_korean(text) if language == "ko" else read_english(text)
    return _sayable(text, language)


def _sayable(text: str, language: Language) -> str:
    for pattern, laugh in _LAUGHS:
        text = pattern.sub(laugh, text)
    text = _CLOSES.sub(_after_bracket, _OPENS.sub(", ", text))
    text = _LOOSE_DASH.sub(", " if language == "en" else " ", text)
    text = _UNSAYABLE.sub(" ", text)
    text = _FOREIGN.sub(_plain_letter, text)
    text = _STOPS_FIRST.sub("", _BEFORE_STOP.sub("", _GAPS.sub(" ", text))).strip()
    return text if any(sign.isalnum() for sign in text) else ""


def _unit_of(found: re.Match[str]) -> str:
    """``㎕`` is ``μl`` in one character, ``㎡`` ``m²``."""
    plain = unicodedata.normalize("NFKC", found[0])
    return plain.replace("2", "²").replace("3", "³")


def _number_of(found: re.Match[str]) -> str:
    """``①`` and ``Ⅲ`` are numbers in one character."""
    if found[0] >= "❶":
        return str(ord(found[0]) - 0x2775)
    plain = unicodedata.normalize("NFKC", found[0]).upper()
    return str(_ROMAN.index(plain) + 1) if plain in _ROMAN else plain


def _after_bracket(found: re.Match[str]) -> str:
    after = found.string[found.end() : found.end() + 1]
    return "" if not after or after in ".,!?…:;" or "가" <= after <= "힣" else ", "


def _plain_letter(found: re.Match[str]) -> str:
    """``é`` is said as ``e``; a letter of another script has no reading."""
    plain = unicodedata.normalize("NFKD", found[0])
    return "".join(sign for sign in plain if sign.isascii() and sign.isalpha())
