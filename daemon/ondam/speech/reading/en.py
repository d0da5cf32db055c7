"""What an English voice is given: digits, signs and abbreviations as they are said.

Same order as in Korean: forms of several numbers first, numbers with a unit next, bare ones last.
voxnorm reads the addresses of mail; its years, fractions, versions and ranges are ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ondam.speech.reading.en_numerals import amount, cardinal, decade, digits, ordinal, plural, year
from ondam.speech.reading.en_units import MONEY, MONTHS, PER, POWERS, SIGNS, UNITS, WORDS_IN_CAPITALS
from ondam.speech.reading.latin import known_words
from ondam.speech.reading.phone import with_phones_read

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]

_NUM = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_START = r"(?<![\d.,/:])"
_NO_PART = r"(?<![A-Za-z])(?<![A-Z]-)"
_TO = r" ?[~–—-] ?"


def _words(*words: str) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_UNIT = rf"(?P<unit>{_words(*UNITS)})(?![A-Za-z²³])(?:\.(?= [a-z]))?"
_MONTH = (
    r"(?P<month>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
)
_MONTH += r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
_HALF_DAY = r"[AaPp]\.?[Mm](?:\.|(?![A-Za-z]))"
_HALF = rf"(?P<half>{_HALF_DAY})"
_TIME = rf"(?<![\d:.,])\d{{1,2}}(?::[0-5]\d(?!\d)(?: ?{_HALF_DAY})?| ?{_HALF_DAY})"
_DAY = r"(?P<day>3[01]|[12]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:1[1-9]|20)\d\d)"


def read_english(text: str) -> str:
    """``text``, already in NFC and half-width, as a voice is to say it."""
    text = _PATH.sub(lambda path: path[0].replace("/", " slash "), _MAIL.sub(_mail, text))
    if _HAS_DIGIT.search(text):
        text = with_phones_read(text, "en", _groups)
        for pattern, read in _NUMBER_RULES:
            text = pattern.sub(read, text)
    text = _SAINT.sub("Saint ", known_words(text, "en"))
    text = _STREET.sub(lambda street: "Street" if text[street.end() :].strip() else "Street.", text)
    for pattern, read in _SIGN_RULES:
        text = pattern.sub(read, text)
    text = _SIGN.sub(lambda sign: SIGNS[sign[0]], text)
    text = _DOTTED.sub(lambda found: " ".join(re.findall(r"[A-Z]", found[0])) + _stop_of(found), text)
    text = _ROMAN.sub(lambda found: cardinal(_ROMANS.index(found[0]) + 2), text)
    return _CAPITALS.sub(_spell, text)


_PATH = re.compile(r"(?<!\S)(?:~|\.{0,2}/[\w.\-]+)(?:/[\w.\-]+)+/?")
_HAS_DIGIT = re.compile(r"\d")
_MAIL = re.compile(r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+")
_SAINT = re.compile(r"\bSt\. (?=[A-Z])")
_STREET = re.compile(r"(?<=[a-z] )St\.(?![A-Za-z])")
_SIGN = re.compile(_words(*SIGNS))
_DOTTED = re.compile(r"(?<![A-Za-z.])(?:[A-Z]\.){2,}")
_NUMBERED = (
    *("Part", "Type", "Phase", "Stage", "Class", "Grade", "Level", "Volume", "Chapter", "Article", "Title"),
    *("Section", "Book", "Act", "Henry", "George", "Edward", "Charles", "Louis", "William"),
)
"""``IV`` and ``V`` are as often a drip, a valve or volts: they are numbers after these words alone."""
_ROMAN = re.compile(
    r"(?<=[a-z] )(?:III?|VI{1,3})(?![A-Za-z'])"
    rf"|(?:{'|'.join(f'(?<={word} )' for word in _NUMBERED)})I?V(?![A-Za-z'])"
)
_CAPITALS = re.compile(r"(?<![A-Za-z'])([A-Z]{2,5})(s?)(?![A-Za-z])")
_ROMANS = ("II", "III", "IV", "V", "VI", "VII", "VIII")
_VOWELS = re.compile(r"[AEIOUY]")


def _mail(found: re.Match[str]) -> str:
    from voxnorm import normalize

    return str(normalize(found[0], "en"))


def _stop_of(found: re.Match[str]) -> str:
    """The last point of ``U.S.`` ends the sentence too when nothing follows."""
    return "" if found.string[found.end() :].strip() else "."


def _spell(found: re.Match[str]) -> str:
    word, more = found[1], "'s" if found[2] else ""
    if word in WORDS_IN_CAPITALS or (len(word) > 3 and _VOWELS.search(word)):
        return found[0]
    return " ".join(word) + more


def _groups(written: str) -> str:
    spoken = ", ".join(digits(group) for group in re.findall(r"\d+", written))
    return f"plus {spoken}" if written.startswith("+") else spoken


def _clock(found: re.Match[str]) -> str:
    hour, minute = int(found["hour"]), int(found["minute"])
    half = f" {found['half'][0].upper()} M" if found["half"] else ""
    if minute:
        spoken = f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"
    else:
        spoken = (
            cardinal(hour)
            if half
            else (f"{cardinal(hour)} o'clock" if 0 < hour <= 12 else f"{cardinal(hour)} hundred")
        )
    return spoken + half + _end_after(found)


def _half_day(found: re.Match[str]) -> str:
    return f"{cardinal(int(found['hour']))} {found['half'][0].upper()} M" + _end_after(found)


def _end_after(found: re.Match[str]) -> str:
    """``at 9 a.m.`` at the end keeps the point that ends the sentence."""
    half = found["half"] or ""
    return "." if half.endswith(".") and not found.string[found.end() :].strip() else ""


def _number_date(found: re.Match[str]) -> str:
    return _day_of(int(found["month"]), int(found["day"]), int(found["year"]))


def _slash_date(found: re.Match[str]) -> str:
    """``11/30/2026`` and ``11/30/26``; where the first can be no month, it is the day."""
    first, second, last = map(int, found[0].split("/"))
    month, day = (second, first) if first > 12 else (first, second)
    if not (0 < month < 13 and 0 < day < 32):
        return found[0]
    return _day_of(month, day, last if last > 99 else last + (2000 if last < 70 else 1900))


def _month_day(found: re.Match[str]) -> str:
    """``11/30`` and ``12/05`` are days, ``3/4`` and ``5/16`` parts."""
    month, day = int(found[1]), int(found[2])
    is_day = found[1][0] == "0" or found[2][0] == "0" or (month > 1 and day > 12 and day != 16)
    return f"{MONTHS[month - 1]} {ordinal(day)}" if is_day else found[0]


def _day_of(month: int, day: int, of_year: int) -> str:
    return f"{MONTHS[month - 1]} {ordinal(day)}, {year(of_year)}"


def _named_date(found: re.Match[str]) -> str:
    name = next(month for month in MONTHS if month.startswith(found["month"][:3]))
    day = ordinal(int(found["day"]))
    spoken = f"{day} of {name}" if found.groupdict().get("of") else f"{name} {day}"
    return f"{spoken}, {year(int(found['year']))}" if found["year"] else spoken


def _named_days(found: re.Match[str]) -> str:
    name = next(month for month in MONTHS if month.startswith(found["month"][:3]))
    spoken = f"{name} {ordinal(int(found['day']))} to {ordinal(int(found['last']))}"
    return f"{spoken}, {year(int(found['year']))}" if found["year"] else spoken


def _money(found: re.Match[str]) -> str:
    one, many, part, parts = MONEY[found["money"]]
    written = found["num"].replace(",", "")
    whole, _, cents = written.partition(".")
    minus = "minus " if found["minus"] else ""
    if power := found["power"] or POWERS.get(found["letter"] or ""):
        return f"{minus}{amount(found['num'])} {power.strip()} {many}"
    if part and len(cents) == 2:
        pieces = [f"{amount(whole)} {plural(whole, one, many)}"] if int(whole) else []
        if int(cents):
            pieces.append(f"{cardinal(int(cents))} {plural(cents.lstrip('0'), part, parts)}")
        return minus + (" and ".join(pieces) or f"zero {many}")
    return f"{minus}{amount(written)} {plural(written, one, many)}"


def _money_range(found: re.Match[str]) -> str:
    """``$5-$10``: the money is said once, after the last."""
    if found["num"][-3:-2] == ".":
        return f"{found['money']}{found['num']}{found['letter'] or ''} to {found['money']}"
    power = POWERS.get(found["letter"] or "")
    return f"{amount(found['num'])}{' ' + power if power else ''} to {found['money']}"


def _per(found: re.Match[str]) -> str:
    known = (found["left"].lstrip("0123456789 ") + found["per"]) in UNITS
    pers = [PER[per] for per in found["per"].split("/")[1:]]
    return found[0] if known else " per ".join([found["left"], *pers])


def _time_range(found: re.Match[str]) -> str:
    return f"{found[1] or found[2] or found[3]} to "


def _unit(found: re.Match[str]) -> str:
    minus = "minus " if found["minus"] else ""
    return f"{minus}{amount(found['num'])} {plural(found['num'], *UNITS[found['unit']])}"


def _unit_range(found: re.Match[str]) -> str:
    minus = "minus " if found["minus"] else ""
    return f"{minus}{amount(found['first'])} to {amount(found['num'])} {UNITS[found['unit']][1]}"


def _fraction(found: re.Match[str]) -> str:
    above, below = int(found["above"]), int(found["below"])
    if not found["whole"] and (above == below > 9 or 1000 > above > below > 19):
        # A blood pressure, or shares: nobody says "one hundred twenty eightieths".
        return f"{amount(found['above'])}{' ' if above == below else ' over '}{amount(found['below'])}"
    name = {2: "half", 4: "quarter"}.get(below, ordinal(below))
    names = {"half": "halves"}.get(name, f"{name}s")
    part = f"{cardinal(above)} {name if above == 1 else names}"
    if found["whole"]:
        return f"{amount(found['whole'])} and {'a ' + name if above == 1 else part}"
    return part


def _version(found: re.Match[str]) -> str:
    dotted = " point ".join(
        cardinal(int(part)) if len(part) < 5 else digits(part) for part in found["dotted"].split(".")
    )
    return f"version {dotted}" if found["v"] else dotted


def _bare(found: re.Match[str]) -> str:
    written = found[0]
    if len(written) == 4 and written.isdigit() and 1100 <= int(written) < 2100:
        return year(int(written))
    return digits(written) if written.isdigit() and len(written) >= 10 else amount(written)


def _range(found: re.Match[str]) -> str:
    return f"{_YEAR_ALONE.sub(_bare, found[1])} to {_YEAR_ALONE.sub(_bare, found[2])}"


_YEAR_ALONE = re.compile(r"^.*$")
"""Each end of a range is read as if it stood alone: ``1990-2000`` are years, ``1-2`` are not."""


def _identifier(found: re.Match[str]) -> str:
    """``900101-1234567``: a number of somebody or something, unless it can be a range (``10000-20000``)."""
    first, last = found[0].split("-")
    if len(first) == len(last) and first < last:
        return found[0]
    return _groups(found[0])


def _operation(found: re.Match[str]) -> str:
    names = {
        "+": "plus",
        "-": "minus",
        "−": "minus",
        "*": "times",
        "×": "times",
        "x": "times",
        "÷": "divided by",
    }
    return f" {names.get(found['sign'], 'divided by')} "


_MONEY = f"(?:{_words(*MONEY)})"
_MINUS = r"(?P<minus>(?<![\w.)])[-−])?"
_NUMBER_RULES: list[Rule] = [
    (re.compile(r"(?<=\d)T(?=\d\d:)"), lambda _: " "),
    (re.compile(r"(?<![\w)])\+(?=\d)"), lambda _: "plus "),
    (re.compile(r"≥ ?(?=\d)"), lambda _: " at least "),
    (re.compile(r"≤ ?(?=\d)"), lambda _: " at most "),
    (re.compile(r"(?<![\w=-])(?:>|(?<!\w )> )(?=\d)"), lambda _: " more than "),
    (re.compile(r"(?<![\w=-])(?:<|(?<!\w )< )(?=\d)"), lambda _: " less than "),
    (re.compile(r"(?<=[\w)])\^\{?(-?\d+)\}?"), lambda found: f" to the power of {found[1]}"),
    (re.compile(r"(?<![\w.,])(\d{1,2}) ?h ?(\d{1,2}) ?m(?:in)?(?!\w)"), lambda f: f"{f[1]} hr {f[2]} min"),
    (re.compile(rf"(?<!\w)({_words(*MONEY)}) ?[-−](?=\d)"), lambda found: f"-{found[1]}"),
    (
        re.compile(
            rf"{_START}((?:{_NUM}{_TO})?{_NUM}(?:[kKM]|bn)?)"
            rf"(?: (?=[A-Z]{{3}}|{_MONEY}(?! ?\d)))?({_MONEY})(?!\w)"
        ),
        lambda found: f"{found[2]}{found[1]}",
    ),
    (re.compile(rf"(?P<left>\d ?(?:[A-Za-z²³]{{1,9}})?)(?P<per>(?:/(?:{_words(*PER)})(?![A-Za-z]))+)"), _per),
    (
        re.compile(
            rf"(?P<money>{_words(*MONEY)}) ?(?P<num>{_NUM})(?P<letter>{_words(*POWERS)})?{_TO}"
            rf"(?:(?P=money) ?)?(?=\d)"
        ),
        _money_range,
    ),
    (
        re.compile(
            rf"({_TIME}){_TO}(?={_TIME})"
            rf"|({_TIME})[~–—-](?=\d{{1,2}}(?![\d:/.,]))"
            rf"|(?<![\w.,:/])(\d{{1,2}}){_TO}(?=\d{{1,2}} ?{_HALF_DAY})"
        ),
        _time_range,
    ),
    (re.compile(r"(?<!\d)(\d)'(\d{1,2})\"?(?!\d)"), lambda f: f"{amount(f[1])} foot {amount(f[2])}"),
    (re.compile(rf"{_START}({_NUM})x(?![A-Za-z0-9])"), lambda found: f"{amount(found[1])} times"),
    (re.compile(r"(?<!\d)24/7(?![\d/])"), lambda _: "twenty-four seven"),
    (
        re.compile(r"(?<!\d)(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)"),
        lambda f: " dot ".join(map(digits, f[0].split("."))),
    ),
    (
        re.compile(
            rf"{_START}{_YEAR}(?P<sep>[-/.])(?P<month>0?[1-9]|1[0-2])(?P=sep)(?P<day>[12]\d|3[01]|0?[1-9])(?!\d)"
        ),
        _number_date,
    ),
    (re.compile(rf"{_START}\d{{1,2}}/\d{{1,2}}/(?:(?:1[1-9]|20)\d\d|\d\d)(?![\d/])"), _slash_date),
    (
        re.compile(
            r"(?<![\d/+=×÷$.,])(?<![+=×÷] )(0?[1-9]|1[0-2])/(3[01]|[12]\d|0?[1-9])"
            r"(?![\d/\"]|[.,]\d| ?(?:in\b|inch|cup|of |[+=×÷*]))"
        ),
        _month_day,
    ),
    (re.compile(rf"(?<=\d/\d){_TO}(?=\d)"), lambda _: " to "),
    (re.compile(rf"(?<=\d){_TO}(?={_MONTH} \d)"), lambda _: " to "),
    (
        re.compile(
            rf"(?<![A-Za-z]){_MONTH} {_DAY}{_TO}(?P<last>3[01]|[12]?\d)(?![\d/:])(?:,? {_YEAR}(?![\d-]))?"
        ),
        _named_days,
    ),
    (re.compile(rf"(?<![A-Za-z]){_MONTH} {_DAY}(?!\d)(?:,? {_YEAR}(?![\d-]))?"), _named_date),
    (re.compile(rf"(?<!\d){_DAY} (?P<of>of )?{_MONTH}(?:,? {_YEAR}(?!\d))?(?![A-Za-z])"), _named_date),
    (re.compile(r"(?P<v>(?<![A-Za-z])[vV](?:er)?\.? ?)?(?<![\d.])(?P<dotted>\d+(?:\.\d+){2,})"), _version),
    (re.compile(r"(?<![A-Za-z])(?P<v>(?:[vV]er\.? ?|v|V(?=\d+\.)))(?P<dotted>\d+(?:\.\d+)*)"), _version),
    (re.compile(r"(?<![\d\-])\d+(?:-\d+){2,}(?![\d\-])"), lambda found: _groups(found[0])),
    (re.compile(r"(?<!\d)911(?![\d,.]*\d)"), lambda _: "nine one one"),
    (
        re.compile(
            rf"(?<![\d:.,])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?![\d:])(?: ?{_HALF})?"
        ),
        _clock,
    ),
    (re.compile(rf"(?<![\d:.,])(?P<hour>1[0-2]|0?[1-9]) ?{_HALF}"), _half_day),
    (
        re.compile(r"(?<![\d:.])(\d+(?:\.\d+)?) ?: ?(\d+(?:\.\d+)?)(?![\d:])"),
        lambda found: f"{amount(found[1])} to {amount(found[2])}",
    ),
    (re.compile(r"(?<![\w,.])(\d{1,6})(?:st|nd|rd|th)(?![A-Za-z])"), lambda found: ordinal(int(found[1]))),
    (
        re.compile(r"(?<![\w,.])['’]?((?:1[1-9]|20)?[1-9]0|2000|1[1-9]00)s(?![A-Za-z])"),
        lambda f: decade(int(f[1])),
    ),
    (
        re.compile(
            rf"{_START}(?:(?P<whole>\d+) )?(?<![\d/])"
            r"(?P<above>\d{1,4})/(?P<below>[2-9]|[1-9]\d{1,3})(?![\d/])"
        ),
        _fraction,
    ),
    (re.compile(r"(\d+) ?½"), lambda found: f"{amount(found[1])} and a half"),
    (
        re.compile(
            rf"(?P<minus>(?<!\w)[-−])?(?P<money>{_words(*MONEY)}) ?(?P<num>{_NUM})"
            rf"(?:(?P<letter>{_words(*POWERS)})(?![A-Za-z])"
            r"|(?P<power> (?:hundred|thousand|million|billion|trillion))(?![a-z]))?"
        ),
        _money,
    ),
    (re.compile(rf"{_MINUS}{_START}(?P<first>{_NUM})%?{_TO}(?P<num>{_NUM}) ?{_UNIT}"), _unit_range),
    (re.compile(rf"{_MINUS}{_START}{_NO_PART}(?P<num>{_NUM})[ -]?{_UNIT}"), _unit),
    (re.compile(r"(?<=\d) ?(?P<sign>[+*×÷x−]|(?<= )[-/](?= )) ?(?=[-−]?\d)"), _operation),
    (re.compile(r"(?<=\d) ?= ?"), lambda _: " equals "),
    (re.compile(r"(?<![\d.,-])(?:\d{5,}-\d+|\d+-\d{5,})(?![\d.,-]*\d)"), _identifier),
    (re.compile(rf"{_START}(?<!-)({_NUM}){_TO}({_NUM})(?![\d-])"), _range),
    (re.compile(r"(?<![A-Za-z])(?:No\. ?|#)(?=\d)"), lambda _: "number "),
    (re.compile(r"~ ?(?=\d)"), lambda _: "about "),
    (re.compile(rf"(?<![\w.)])[-−](?P<num>{_NUM})"), lambda found: f"minus {amount(found['num'])}"),
    (re.compile(r"(?<=[A-Za-z])-(?=\d)|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])"), lambda _: " "),
    (re.compile(rf"{_START}{_NUM}"), _bare),
    (re.compile(r"\d+"), lambda found: amount(found[0])),
]
_SIGN_RULES: list[Rule] = [
    (re.compile(r"(?<=\w) ?= ?(?=\w)"), lambda _: " equals "),
    (re.compile(r"(?<=\w) < (?=\w)"), lambda _: " is less than "),
    (re.compile(r"(?<=\w) > (?=\w)"), lambda _: " is greater than "),
    (re.compile(r"(?<=\w) ?\+ ?(?=\w)"), lambda _: " plus "),
    (re.compile(r"(?<=\w)\+"), lambda _: " plus"),
    (re.compile(r"\band/or\b"), lambda _: "and or"),
    (re.compile(r"(?<=[A-Za-z])/(?=[A-Za-z])"), lambda _: " or "),
]
