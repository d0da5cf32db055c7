"""English numerals through num2words, without the commas and the British *and*."""

from __future__ import annotations

from functools import lru_cache

_MOST_DIGITS = 15
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@lru_cache(maxsize=4096)
def cardinal(number: int) -> str:
    """``1250`` is one thousand two hundred fifty."""
    from num2words import num2words

    return str(num2words(number, lang="en")).replace(",", "").replace(" and ", " ")


@lru_cache(maxsize=1024)
def ordinal(number: int) -> str:
    """``22`` is twenty-second."""
    from num2words import num2words

    return str(num2words(number, lang="en", to="ordinal")).replace(",", "").replace(" and ", " ")


def digits(written: str) -> str:
    """One digit after another: ``010`` is zero one zero."""
    return " ".join(_DIGITS[int(sign)] for sign in written if sign.isdigit())


def year(number: int) -> str:
    """As a year, and as people say four digits: nineteen eighty-six, two thousand five, twenty twenty-six."""
    century, rest = divmod(number, 100)
    if not 1100 <= number < 2100 or 2000 <= number < 2010:
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def amount(written: str) -> str:
    """A written number as a quantity: ``1,250``, ``3.14``, ``007`` digit by digit."""
    whole, _, fraction = written.replace(",", "").partition(".")
    is_name = len(whole) > _MOST_DIGITS or (len(whole) > 1 and whole.startswith("0"))
    spoken = digits(whole) if is_name else cardinal(int(whole))
    return f"{spoken} point {digits(fraction)}" if fraction else spoken


def plural(written: str, one: str, many: str) -> str:
    """``one`` after exactly 1, else ``many``."""
    return one if written == "1" else many


def decade(number: int) -> str:
    """``1990`` is nineteen nineties, ``90`` nineties."""
    tens = {20: "twenties", 30: "thirties", 40: "forties", 50: "fifties", 60: "sixties", 70: "seventies"}
    tens |= {80: "eighties", 90: "nineties", 10: "tens", 0: "hundreds"}
    if number < 100:
        return tens[number]
    if number == 2000:
        return "two thousands"
    return f"{cardinal(number // 100)} {tens[number % 100]}"
