"""Korean numerals: Sino-Korean (num2words) and native, written numbers of every shape."""

from __future__ import annotations

from functools import lru_cache

_ONES = ("", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉")
_TENS = ("", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")
_DIGITS = "공일이삼사오육칠팔구"
_MOST_DIGITS = 16
"""Longer runs of digits are names of things, not amounts; num2words ends at 10^72 anyway."""

ADJACENT_NATIVE = {
    (1, 2): "한두",
    (2, 3): "두세",
    (3, 4): "서너",
    (4, 5): "네다섯",
    (5, 6): "대여섯",
    (6, 7): "예닐곱",
    (7, 8): "일고여덟",
    (8, 9): "여덟아홉",
}
"""What ``1~2`` and its like are called before a native counter."""


def digits(written: str) -> str:
    """One digit after another, 0 as 공, as in phone numbers: ``010`` is 공일공."""
    return "".join(_DIGITS[int(sign)] for sign in written if sign.isdigit())


@lru_cache(maxsize=4096)
def sino(number: int) -> str:
    """``1250`` is 천이백오십."""
    from num2words import num2words

    return str(num2words(number, lang="ko"))


def native(number: int) -> str:
    """As before a native counter: ``3`` is 세, ``20`` 스무, ``21`` 스물한.

    From a hundred on people count in Sino-Korean, but for a last part below twenty (백한 마리).
    """
    if number <= 0:
        return sino(number)
    if number == 20:
        return "스무"
    if number < 100:
        return _TENS[number // 10] + _ONES[number % 10]
    rest = number % 100
    return sino(number - rest) + native(rest) if 0 < rest < 20 else sino(number)


def amount(written: str) -> str:
    """A written number as a quantity: ``1,250``, ``3.14`` (삼점일사), ``007`` digit by digit."""
    whole, _, fraction = written.replace(",", "").partition(".")
    spoken = digits(whole) if _is_name(whole) else sino(int(whole))
    return f"{spoken}점{digits(fraction).replace('공', '영')}" if fraction else spoken


def counted(written: str) -> str:
    """A written number before a native counter; a fraction or a huge one stays Sino-Korean."""
    plain = written.replace(",", "")
    return native(int(plain)) if plain.isdigit() and not _is_name(plain) else amount(written)


def _is_name(whole: str) -> bool:
    return len(whole) > _MOST_DIGITS or (len(whole) > 1 and whole.startswith("0"))
