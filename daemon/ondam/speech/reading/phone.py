"""Phone numbers in a text, in the forms that people write them."""

from __future__ import annotations

import re
from collections.abc import Callable

from ondam.types import Language

_MAYBE = re.compile(r"(?<![\d.,])(?:\+?\d|\(0\d)[\d\-() ]{6,18}\d(?!\d)")
"""The library looks at a text only when it holds something like this: it takes a millisecond."""

_PLAIN = re.compile(
    r"(?<![\d\-.,])(?:"
    r"\+\d{1,3}[- ]\d{1,4}[- ]\d{3,4}[- ]\d{4}"
    r"|\(0\d{1,2}\) ?\d{3,4}[- ]\d{4}"
    r"|0\d{1,2}-\d{3,4}-\d{4}"
    r"|01\d \d{3,4} \d{4}"
    r"|01\d{8,9}"
    r"|1[568]\d\d-\d{4}"
    r"|\(?[2-9]\d\d\)?[- ]\d{3}-\d{4}"
    r"|[2-9]\d\d-\d{4}"
    r")(?![\d\-])"
)
_BEFORE_EXTENSION = re.compile(r"\d(?=\D+\d+$)")
_DATE = re.compile(r"(?:19|20)\d\d[-. ]\d{1,2}[-. ]\d{1,2}")
_REGION: dict[Language, str] = {"ko": "KR", "en": "US"}


def with_phones_read(text: str, language: Language, read: Callable[[str], str]) -> str:
    """``text`` with every phone number replaced by what ``read`` makes of it as written."""
    if not _MAYBE.search(text):
        return text
    text = _PLAIN.sub(lambda found: read(found[0]), text)
    if not (maybe := _MAYBE.search(text)) or _DATE.match(maybe[0]):
        return text
    import phonenumbers

    out, at = [], 0
    for found in phonenumbers.PhoneNumberMatcher(text, _REGION[language]):
        end = found.end
        if found.number.extension and (label := _BEFORE_EXTENSION.search(found.raw_string)):
            # The library reads "ext. 12" as part of the number; people say the word.
            end = found.start + label.end()
        out += [text[at : found.start], read(text[found.start : end])]
        at = end
    return "".join(out) + text[at:]
