"""What a Korean voice is given: digits, signs and Latin letters as a Korean would say them.

Rules in the order in which they must see the text: forms of several numbers (phones, dates, times, ranges)
before single ones, numbers with a counter or a unit before bare ones. voxnorm comes last, for what is left
(addresses of mail); it reads native counters, fractions, versions and ranges wrong, so it cannot be first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from ondam.speech.reading import ko_counters as counters
from ondam.speech.reading.hanja import without_hanja
from ondam.speech.reading.ko_units import BELOW_ZERO, MONEY, PER, POWERS, SIGNS, UNITS
from ondam.speech.reading.latin import known_words, latin_in_korean, spelled
from ondam.speech.reading.numerals import ADJACENT_NATIVE, amount, counted, digits, sino
from ondam.speech.reading.particles import MARK, agreed, marked, particle
from ondam.speech.reading.phone import with_phones_read

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]

_NUM = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_START = r"(?<![\d.,/:])"
_NO_PART = r"(?<![A-Za-z])(?<![A-Z]-)"
"""``P-203A`` is a part, and no current."""
_TO = r"\s?[~～∼〜–]\s?"


def _words(*words: str) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_COUNTERS = _words(*counters.NATIVE, *counters.SINO)
_TAIL = rf"(?=$|[^가-힣]|(?:{_words(*counters.TAILS)})(?:$|[^가-힣]|[가-힣]))"
_UNITS = rf"(?:{_words(*UNITS)})(?![A-Za-z²³])"
_MONTHS = ("일월", "이월", "삼월", "사월", "오월", "유월", "칠월", "팔월", "구월", "시월", "십일월", "십이월")
_HOURS = ("영", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열", "열한", "열두")


def read_korean(text: str) -> str:
    """``text``, already in NFC and half-width, as a voice is to say it."""
    text = without_hanja(text)
    text = marked(_STREET.sub(lambda street: f"{street[1]}{sino(int(street[2]))}가", text))
    if not _HAS_FORMS.search(text):
        return text
    text = known_words(_MAIL.sub(_mail, text), "ko")
    if _HAS_DIGIT.search(text):
        text = with_phones_read(text, "ko", _groups)
        for pattern, read in _NUMBER_RULES:
            text = pattern.sub(read, text)
    for pattern, read in _SIGN_RULES:
        text = pattern.sub(read, text)
    text = _SIGN.sub(lambda sign: SIGNS[sign[0]], text)
    return agreed(latin_in_korean(text))


_HAS_FORMS = re.compile(r"[^가-힣\s.,!?…~'\"]|[~]")
_HAS_DIGIT = re.compile(r"\d")
_STREET = re.compile(r"(로\s?|종로)([1-7])가(?![가-힣])")
_MAIL = re.compile(r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+")
_SIGN = re.compile(_words(*SIGNS))


def _mail(found: re.Match[str]) -> str:
    from voxnorm import normalize

    return str(normalize(found[0], "ko"))


def _groups(written: str) -> str:
    """Digits one by one, a space where groups part: phone numbers, accounts, serial numbers."""
    spoken = " ".join(digits(group) for group in re.findall(r"\d+", written))
    return f"플러스 {spoken}" if written.startswith("+") else spoken


def _hour(written: str) -> str:
    hour = int(written)
    return _HOURS[hour] if hour <= 12 else sino(hour)


def _clock(found: re.Match[str]) -> str:
    half = (found["half"] or found["before"] or "").replace(".", "").strip().upper()
    spoken = {"AM": "오전 ", "PM": "오후 "}.get(half, "") + f"{_hour(found['hour'])} 시"
    if int(found["minute"]):
        spoken += f" {sino(int(found['minute']))} 분"
    if found["second"] and int(found["second"]):
        spoken += f" {sino(int(found['second']))} 초"
    return spoken


def _half_day(found: re.Match[str]) -> str:
    name = {"A": "오전", "P": "오후"}[found["half"][0].upper()]
    return f"{name} {_hour(found['hour'])} 시"


def _date(found: re.Match[str]) -> str:
    month, day = int(found["month"]), int(found["day"])
    return f"{sino(int(found['year']))}년 {_MONTHS[month - 1]} {sino(day)}일"


def _month_day(found: re.Match[str]) -> str:
    return f"{_MONTHS[int(found[1]) - 1]} {sino(int(found[2]))}일"


def _days_or_parts(found: re.Match[str]) -> str:
    """``11/30`` is a day: nobody counts thirtieths. ``3/4`` and ``1/20`` are parts."""
    first, last = found.group(1, 2), found.group(3, 4)
    days = [first, last] if last[0] else [first]
    if found["time"] is None and not any(_is_day(int(month), int(day)) for month, day in days):
        return found[0]
    return "에서 ".join(f"{_MONTHS[int(month) - 1]} {sino(int(day))}일" for month, day in days)


def _is_day(month: int, day: int) -> bool:
    return month > 1 and day > 12


def _month(found: re.Match[str]) -> str:
    return f"{_MONTHS[int(found[1]) - 1]}"


def _money(found: re.Match[str]) -> str:
    unit, part = MONEY[found["money"]]
    whole, _, cents = found["num"].replace(",", "").partition(".")
    minus = "마이너스 " if found["minus"] else ""
    if found["letter"]:
        value = Decimal(found["num"].replace(",", "")) * POWERS[found["letter"]]
        return f"{minus}{amount(f'{value.normalize():f}')} {unit}"
    if found["big"]:
        return f"{minus}{amount(found['num'])}{found['big']} {unit}"
    if part and len(cents) == 2:
        spoken = f"{amount(whole)} {unit}" if int(whole) else ""
        return minus + " ".join(filter(None, (spoken, f"{sino(int(cents))} {part}" if int(cents) else "")))
    return f"{minus}{amount(found['num'])} {unit}"


def _big(found: re.Match[str]) -> str:
    """Numbers with 만 and 억 written out: ``3만 5천``, ``1억 2,000만``, ``5천만``."""
    spoken = ""
    for number, power in re.findall(rf"({_NUM})?\s?(조|억|만|천|백|십)?", found["big"]):
        if number and spoken:
            spoken += " "
        one_is_unsaid = power in ("천", "백", "십") or (power == "만" and not spoken)
        if number and not (number == "1" and one_is_unsaid):
            spoken += amount(number)
        spoken += power
    return spoken + (found["more"] or "") + ("" if found["unit"] is None else " ")


def _per(found: re.Match[str]) -> str:
    """``0.5mg/kg/일`` is 하루 킬로그램당 영점오 밀리그램."""
    pers = [PER[per] for per in reversed(found["per"].split("/")[1:])]
    return " ".join([*pers, found["left"]])


def _bound(found: re.Match[str]) -> str:
    """``≥140`` is said after the number: 백사십 이상."""
    name = {"≥": "이상", "≤": "이하", ">": "초과", "<": "미만"}[found["sign"]]
    return f"{found['left']} {name}"


def _temperatures(found: re.Match[str]) -> str:
    if not found["minus"] and not found["below"]:
        return found[0]
    first, last = ("영하 " * bool(found[sign]) for sign in ("minus", "below"))
    return f"{first}{amount(found['first'])}에서 {last}{amount(found['num'])} 도"


def _unit(found: re.Match[str]) -> str:
    unit = UNITS[found["unit"]]
    spoken = unit.format(amount(found["num"]))
    if found["minus"]:
        spoken = f"영하 {spoken}" if found["unit"] in BELOW_ZERO else f"마이너스 {spoken}"
    return spoken


def _unit_range(found: re.Match[str]) -> str:
    first = amount(found["first"])
    sign = found["minus"] and ("영하 " if found["unit"] in BELOW_ZERO else "마이너스 ")
    return f"{sign or ''}{first}에서 {UNITS[found['unit']].format(amount(found['num']))}"


def _count_range(found: re.Match[str]) -> str:
    first, last, counter = found["first"], found["num"], found["counter"]
    more = "여" if found["more"] else ""
    pair = (_small(first), _small(last))
    if found["to"] == "-" and (counter in ("번지", "호", "동", "번길") or _value(first) >= _value(last)):
        return f"{amount(first)} 다시 {amount(last)} {counter}"
    if counter == "대" and pair[0] % 10 == pair[1] % 10 == 0 and 0 < pair[0] < pair[1] < 100:
        return f"{sino(pair[0])[:-1]}{sino(pair[1])} 대"
    if counter == "시":
        return f"{_hour(first)} 시에서 {_hour(last)} 시"
    if counter == "월":
        return (
            f"{_MONTHS[pair[0] - 1]}에서 {_MONTHS[pair[1] - 1]}"
            if all(0 < m < 13 for m in pair)
            else found[0]
        )
    if counter in counters.NATIVE:
        spoken = ADJACENT_NATIVE.get(pair)
        return (
            f"{spoken} {counter}"
            if spoken
            else f"{counted(first)} {counter}에서 {counted(last)}{more} {counter}"
        )
    if counter in counters.IDIOMATIC_RANGE and pair[1] - pair[0] == 1 and 1 < pair[0] < 9:
        return f"{sino(pair[0])}{sino(pair[1])} {counter}"
    return f"{amount(first)}에서 {amount(last)}{more} {counter}"


def _value(written: str) -> float:
    return float(written.replace(",", ""))


def _small(written: str) -> int:
    return int(written) if written.isdigit() and len(written) < 4 else -1


def _count(found: re.Match[str]) -> str:
    number, counter = found["num"], found["counter"]
    minus = found["minus"] and ("영하 " if counter == "도" else "마이너스 ")
    spoken = minus or ""
    if counter == "년" and len(number) == 4 and number.isdigit():
        return f"{spoken}{sino(int(number))}년"
    if counter in ("년대", "년생"):
        return f"{sino(int(number))}{counter}" if number.isdigit() else found[0]
    if found["nth"]:
        return f"제{amount(number)} {counter}"
    if counter == "번째":
        return f"{'첫' if number == '1' else counted(number)} 번째"
    native = counter in counters.NATIVE and not found["more"]
    if counter == "번" and (_value(number) >= 100 or _is_a_number_on_something(found)):
        native = False
    if counter == "시간" and _small(number) >= 24:
        native = False
    if counter == "대" and number in ("10", "20", "30", "40", "50", "60", "70", "80", "90"):
        native = False  # 20대: in one's twenties
    return f"{spoken}{counted(number) if native else amount(number)}{found['more'] or ''} {counter}"


def _is_a_number_on_something(found: re.Match[str]) -> bool:
    after = found.string[found.end() : found.end() + 8].lstrip(f"{MARK}")
    return after.startswith(("을", "은", "으로", "이 ", "과")) or after.lstrip().startswith(counters.NUMBERED)


def _memorial(found: re.Match[str]) -> str:
    """Days known by their date: ``3·1`` 삼일, ``5·18`` 오일팔, ``12·12`` 십이십이."""
    month, day = found[1], found[2] or found[3]
    return sino(int(month)) + (sino(int(day)) if day == month else digits(day))


def _version(found: re.Match[str]) -> str:
    dotted = " 점 ".join(
        sino(int(part)) if len(part) < 5 else digits(part) for part in found["dotted"].split(".")
    )
    return f"{'버전 ' if found['v'] else ''}{dotted}"


def _address(found: re.Match[str]) -> str:
    return " 점 ".join(map(digits, found[0].split(".")))


def _identifier(found: re.Match[str]) -> str:
    """``900101-1234567``: a number of somebody or something, said digit by digit."""
    return " 다시 ".join(map(digits, found[0].split("-")))


def _fraction(found: re.Match[str]) -> str:
    above, below = int(found["above"]), int(found["below"])
    if not found["whole"] and (above == below > 9 or 1000 > above > below > 19):
        # Shares (오십 대 오십), or a blood pressure (백이십에 팔십).
        to = " 대 " if above == below else "에 "
        return f"{amount(found['above'])}{to}{amount(found['below'])}"
    whole = found["whole"] or ""
    whole = whole and amount(found["whole"]) + particle(amount(found["whole"]), "과") + " "
    return f"{whole}{sino(int(found['below']))}분의 {sino(int(found['above']))}"


def _sum(found: re.Match[str]) -> str:
    name = {
        "+": "더하기",
        "-": "빼기",
        "−": "빼기",
        "*": "곱하기",
        "×": "곱하기",
        "x": "곱하기",
        "÷": "나누기",
        "/": "나누기",
    }
    return f" {name[found['sign']]} "


def _equals(found: re.Match[str]) -> str:
    return f"{found[1]}{MARK}은 "


_MONTH_DAY = r"(0?[1-9]|1[0-2])/(3[01]|[12]\d|0?[1-9])"
_MONEY = f"(?:{_words(*MONEY)})"
_MINUS = r"(?P<minus>(?<![\w.)])[-−])?"
_NUMBER_RULES: list[Rule] = [
    (re.compile(r"(?<=\d)T(?=\d\d:)"), lambda _: " "),
    (re.compile(r"(?<![\w.,])(\d+)(?:st|nd|rd|th)(?![A-Za-z])"), lambda found: f"{found[1]}번째"),
    (re.compile(r"'(?=\d\d\. ?\d{1,2}\. ?\d)"), lambda _: "20"),
    (
        re.compile(rf"{_START}((?:19|20)\d\d)\. ?(0?[1-9]|1[0-2])\.?(?=까지|부터)"),
        lambda found: f"{sino(int(found[1]))}년 {_MONTHS[int(found[2]) - 1]}",
    ),
    (
        re.compile(r"(?<![A-Za-z])([AP])\.?M\.? ?(?=\d{1,2}시)", re.IGNORECASE),
        lambda found: {"A": "오전 ", "P": "오후 "}[found[1].upper()],
    ),
    (re.compile(r"(?<![\w)])\+(?=\d)"), lambda _: "플러스 "),
    (
        re.compile(
            r"(?P<sign>(?<![\w=-])[<>](?=\d)|(?<![\w=-])(?<!\w )[<>]|[≥≤]) ?"
            rf"(?P<left>{_NUM}(?: ?{_UNITS}|(?:{_COUNTERS}){_TAIL})?)"
        ),
        _bound,
    ),
    (re.compile(r"(?<=[\w)])\^\{?(-?\d+)\}?"), lambda found: f"의 {found[1]} 제곱"),
    (
        re.compile(
            rf"(?P<left>{_START}(?:{_NUM}{_TO})?{_NUM}(?!\s?(?:km/h|m/s))"
            rf" ?(?:{_UNITS}|{_COUNTERS}|원|달러))"
            rf"(?P<per>(?:/(?:{_words(*PER)})(?![A-Za-z²³])(?:(?<![가-힣])|(?![가-힣])|(?=입니다|이에요|예요|이고|이며|정도)))+)"
        ),
        _per,
    ),
    (re.compile(rf"(?<!\w)({_words(*MONEY)}) ?[-−](?=\d)"), lambda found: f"-{found[1]}"),
    (
        re.compile(
            rf"{_START}((?:{_NUM}(?:{_TO}|-))?{_NUM}(?:[kKM]|bn)?)"
            rf"(?: (?=[A-Z]{{3}}|{_MONEY}(?! ?\d)))?({_MONEY})(?![0-9A-Za-z])"
        ),
        lambda found: f"{found[2]}{found[1]}",
    ),
    (
        re.compile(
            rf"{_MINUS}{_START}(?P<first>{_NUM}) ?(?:도|℃|° ?C)?{_TO}"
            rf"(?P<below>[-−])?(?P<num>{_NUM}) ?(?:도|℃|° ?C)"
        ),
        _temperatures,
    ),
    (re.compile(r"(?<=[가-힣])/(?=\d)"), lambda _: ", "),
    (re.compile(r"(?<=:\d\d) ?[-–] ?(?=\d{1,2}:\d\d)|(?<=[\d시분]) ?[-–] ?(?=오[전후] ?\d)"), lambda _: "~"),
    (
        re.compile(rf"(?P<money>{_words(*MONEY)}) ?(?P<num>{_NUM})(?:{_TO}|-)(?:(?P=money) ?)?(?=\d)"),
        lambda found: (
            f"{found['money']}{found['num']}에서 {found['money']}"
            if found["num"][-3:-2] == "."
            else f"{amount(found['num'])}에서 {found['money']}"
        ),
    ),
    (re.compile(r"(?<!\d)24/7(?![\d/])"), lambda _: "이십사 시간 칠 일"),
    (re.compile(r"(?<!\d)(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)(?=:?)"), _address),
    (
        re.compile(
            rf"{_START}(?P<year>(?:19|20)\d\d)(?P<sep>[-/.]) ?(?P<month>0?[1-9]|1[0-2])(?P=sep) ?"
            r"(?P<day>[12]\d|3[01]|0?[1-9])(?!\d)(?:\.(?=\s?[^\s\d]))?일?"
        ),
        _date,
    ),
    (
        re.compile(rf"{_START}(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])(?![\d-])"),
        lambda found: f"{sino(int(found['year']))}년 {_MONTHS[int(found['month']) - 1]}",
    ),
    (re.compile(r"(?P<v>(?<![A-Za-z])[vV](?:er)?\.? ?)?(?<![\d.])(?P<dotted>\d+(?:\.\d+){2,})"), _version),
    (re.compile(r"(?<![A-Za-z])(?P<v>(?:[vV]er\.? ?|v\.?|V(?=\d+\.)))(?P<dotted>\d+(?:\.\d+)*)"), _version),
    (re.compile(r"(?<![\d\-])\d+(?:-\d+){2,}(?![\d\-])"), lambda found: _groups(found[0])),
    (
        re.compile(r"(?<!\d)(11[0-9]|1339|911)(?=\s?(?:번|에|로)?\s?(?:신고|전화|구급|연락|구조))"),
        lambda f: digits(f[1]),
    ),
    (
        re.compile(
            rf"(?<![\d/+=×÷.,])(?<![+=×÷의] ){_MONTH_DAY}(?:(?:{_TO}|-){_MONTH_DAY})?"
            r"(?![\d/]| ?(?:인치|컵|inch|[+=×÷*])|[개명점건대권장병](?![가-힣]))"
            r"(?P<time>(?= ?(?:오전|오후|아침|저녁|\d{1,2}시|\d{1,2}:\d\d)))?"
        ),
        _days_or_parts,
    ),
    (
        re.compile(
            r"(?P<before>[AaPp]\.?[Mm]\.? ?)?(?<![\d:.,])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)"
            r"(?::(?P<second>[0-5]\d))?(?![\d:])(?: ?(?P<half>[AaPp]\.?[Mm]\.?)(?![A-Za-z]))?"
        ),
        _clock,
    ),
    (re.compile(r"(?<![\d:.,])(?P<hour>1[0-2]|0?[1-9]) ?(?P<half>[AaPp]\.?[Mm]\.?)(?![A-Za-z])"), _half_day),
    (
        re.compile(r"(?<![\d:.])(\d+(?:\.\d+)?) ?: ?(\d+(?:\.\d+)?)(?![\d:])"),
        lambda found: f"{amount(found[1])} 대 {amount(found[2])}",
    ),
    (
        re.compile(r"(?<!\d)(\d{1,2})대(?= (?:요소|원칙|강국|과제|명절|도시|영양소|뉴스|기업|의무|지침))"),
        lambda found: f"{sino(int(found[1]))}대",
    ),
    (
        re.compile(r"(?<!\d)(\d+) ?대 ?(\d+)(?![\d가-힣])"),
        lambda found: f"{amount(found[1])} 대 {amount(found[2])}",
    ),
    (re.compile(r"(?<!\d)(0?[1-9]|1[0-2])월 ?(\d{1,2})일"), _month_day),
    (re.compile(r"(?<![\d/])(0?[1-9]|1[0-2])/(\d{1,2})(?= ?\([월화수목금토일]\))"), _month_day),
    (
        re.compile(
            r"(?<![\d·.])(1[0-2]|[1-9])(?:[·ㆍ](\d{1,2})(?![\d·ㆍ])"
            r"|\.(\d{1,2})(?=절| ?(?:혁명|전쟁|운동|민주|광복|항쟁|사태)))"
        ),
        _memorial,
    ),
    (re.compile(r"(?<![A-Za-z0-9])B(\d{1,2}) ?층"), lambda found: f"지하 {sino(int(found[1]))} 층"),
    (re.compile(r"(?<![A-Za-z])No\.? ?(?=\d)"), lambda _: "넘버 "),
    (
        re.compile(r"(?<!\d)(\d+)분의 ?(\d+)(?!\d)"),
        lambda found: f"{sino(int(found[1]))}분의 {sino(int(found[2]))}",
    ),
    (
        re.compile(
            rf"{_START}(?:(?P<whole>\d+) )?(?<![\d/])(?P<above>\d{{1,4}})/(?P<below>[1-9]\d{{0,3}})(?![\d/])"
        ),
        _fraction,
    ),
    (
        re.compile(
            rf"(?P<minus>(?<!\w)[-−])?(?P<money>{_words(*MONEY)}) ?(?P<num>{_NUM})"
            rf"(?:(?P<letter>{_words(*POWERS)})(?![A-Za-z])|(?P<big>[만천억조]))?"
        ),
        _money,
    ),
    (
        re.compile(rf"{_MINUS}{_START}(?P<first>{_NUM})%?(?:{_TO}|-)(?P<num>{_NUM}) ?(?P<unit>{_UNITS})"),
        _unit_range,
    ),
    (
        re.compile(
            rf"{_START}(?P<first>{_NUM})(?:[시개명월일년살세원도분층호회주번])?"
            rf"(?P<to>{_TO}|-)(?P<num>{_NUM})(?P<more>여)? ?"
            rf"(?P<counter>(?:{_COUNTERS}|시)){_TAIL}"
        ),
        _count_range,
    ),
    (
        re.compile(
            rf"{_START}(?P<big>{_NUM} ?(?:조|억|만|천|백)(?!큼|[가-힣]*번지)"
            rf"(?: ?(?:{_NUM} ?)?(?:억|만|천|백|십)(?![가-힣]?월)| ?\d{{1,4}}(?=\s?[원명개]))*)"
            rf"(?P<more>여)?(?P<unit> ?(?=(?:{_COUNTERS}){_TAIL}))?"
        ),
        _big,
    ),
    (re.compile(rf"{_MINUS}{_START}{_NO_PART}(?P<num>{_NUM}) ?(?P<unit>{_UNITS})"), _unit),
    (re.compile(rf"{_START}(?P<hour>[01]?\d|2[0-4])시(?!간|리)"), lambda found: f"{_hour(found['hour'])} 시"),
    (re.compile(r"(?<!\d)(0?[1-9]|1[0-2])월"), _month),
    (
        re.compile(
            rf"(?P<nth>제 ?)?{_MINUS}{_START}(?P<num>{_NUM})(?P<more>여)? ?(?P<counter>{_COUNTERS}){_TAIL}"
        ),
        _count,
    ),
    (re.compile(r"(?<=\d) ?(?P<sign>[+*×÷x−]|(?<= )[-/](?= )) ?(?=[-−]?\d)"), _sum),
    (re.compile(rf"({_NUM}) ?= ?"), _equals),
    (re.compile(r"(?<![\d.,-])(?:\d{5,}-\d+|\d+-\d{5,})(?![\d.,-]*\d)"), _identifier),
    (re.compile(r"(?<=\d) ?- ?(?=\d)"), lambda _: " 다시 "),
    (re.compile(rf"(?<=\d){_TO}(?=\d)"), lambda _: "에서 "),
    (
        re.compile(rf"(?P<minus>(?<![\w.)\ue000])[-−])(?P<num>{_NUM})"),
        lambda f: f"마이너스 {amount(f['num'])}",
    ),
    (re.compile(r"(?<=\d)(?:에서 |)\+(?!\d)"), lambda _: " 플러스"),
]
_SIGN_RULES: list[Rule] = [
    (
        re.compile(r"(?<=[가-힣0-9])(?: [~～∼〜–] |(?<![요다네까죠야아어오지])[~～∼〜–])(?=[가-힣0-9-])"),
        lambda _: "에서 ",
    ),
    (re.compile(r"[~～∼〜]+"), lambda _: ""),
    (re.compile(r"(?<=\w) < (?=\w)"), lambda _: " 작다 "),
    (re.compile(r"(?<=\w) > (?=\w)"), lambda _: " 크다 "),
    (re.compile(r"(?<=\w) ?= ?(?=\w)"), lambda _: f"{MARK}은 "),
    (re.compile(r"(?<=[A-Za-z가-힣²³]) \+ (?=\w)|(?<=[A-Za-z가-힣²³])\+(?=\w)"), lambda _: " 더하기 "),
    (re.compile(r"(?<=[A-Za-z])\+"), lambda _: " 플러스"),
    (re.compile(r"(?<=[가-힣])/(?=[가-힣])"), lambda _: ", "),
    (re.compile(r"(?<![A-Za-z])([A-Z]{2,6})-(?=\d)"), lambda found: spelled(found[1]) + " "),
    (re.compile(r"(?<![A-Za-z])([A-Z]{1,6}) ?(?=\d)"), lambda found: spelled(found[1]) + " "),
    (re.compile(rf"{_START}(?:{_NUM}|\d+)"), lambda found: _bare(found[0])),
    (re.compile(r"\d+"), lambda found: _bare(found[0])),
]


def _bare(written: str) -> str:
    return digits(written) if written.isdigit() and len(written) >= 9 else amount(written)
