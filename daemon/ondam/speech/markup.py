"""Markup out of a stream of text: what is written for the eye, turned into what can be said.

A scanner over the unread text, not a Markdown parser: a parser wants the whole document, and the first
clause has to leave while the second is still being generated (docs/decisions/clauses.md). Every step
either knows what stands before it, or waits for more; so the output is the same for every chunking.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache

from ondam.speech.formula import plain_formula
from ondam.types import Language

LINK: dict[Language, str] = {"ko": "링크", "en": "link"}
_CODE: dict[Language, str] = {"ko": "코드", "en": "code"}

_PLAIN = re.compile(r"[^\n`*_~\[\]!<\\|&hHwW$]+")
_RULE_CHARS = re.compile(r"[ \t|:\-=*_]*")
_BULLETS = "-*+•◦‣▪–·"
_URL_STARTS = ("http://", "https://", "www.")
_PARTICLES = "에서|에게|에|으로|로|을|를|은|는|이나|이|가|와|과|의|도|만|까지|부터"
_URL = re.compile(
    r"(?:[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]"
    rf"|(?<=[/=_%\-가-힣])(?!(?<=[/=])(?:{_PARTICLES})(?![가-힣]))[가-힣])*"
)
_URL_TAIL = re.compile(r"[.,;:!?'\"*_~\]]+$")
_HTML_NAMES = (
    *(
        "a",
        "b",
        "i",
        "u",
        "s",
        "q",
        "em",
        "strong",
        "br",
        "hr",
        "p",
        "div",
        "span",
        "code",
        "pre",
        "kbd",
        "del",
    ),
    *(
        "ul",
        "ol",
        "li",
        "sub",
        "sup",
        "table",
        "thead",
        "tbody",
        "tr",
        "td",
        "th",
        "img",
        "small",
        "mark",
        "ins",
    ),
    *("details", "summary", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "center", "font"),
)
_HTML = re.compile(
    rf"</?(?:{'|'.join(_HTML_NAMES)})(?:\s[^<>\n가-힣]{{0,300}})?/?>|<!--.{{0,300}}?-->", re.IGNORECASE
)
_HTML_OPEN = re.compile(
    r"</?(?P<name>[a-z0-9]*)(?P<rest>(?:\s[^<>\n가-힣]{0,300})?/?)|<!(?:-.{0,300})?", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:#[0-9]{1,6}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,24});", re.IGNORECASE)
_ENTITY_OPEN = re.compile(r"&#?[a-z0-9]{0,24}", re.IGNORECASE)
_FOOTNOTE = re.compile(r"\^.{1,20}|\d{1,3}")
_CITATION = re.compile(r"\[?(?:\^.{1,20}|\d{1,3})\]?")
_WORD = re.compile(r"[0-9A-Za-z가-힣]+|[가-힣 0-9]+")
_CHECKBOX = re.compile(r"\[[ xX]\] ")
_SIGNS = re.compile(r"[^\x00-\u1fff\u3000-\u31ff\u3400-\u4dbf\u4e00-\u9fff가-힣]")

_MONEY = re.compile(r"\$[^\S\n]?\d[\d.,]*[^\S\n]?")
_LONGEST_FORMULA = 200
_LONGEST_LINK_TEXT = 300
_LONGEST_URL = 4096
_LONGEST_LINE = 4000
"""Characters that may be held back while waiting for a closing mark; past them it is text."""

Step = tuple[int, str]
"""How far the scanner has read, and what is spoken for it."""


class MarkupFilter:
    """Plain text out of Markdown and HTML. One per answer, or ``finish`` between answers."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._reset()

    def _reset(self) -> None:
        self._unread = ""
        self._line_start = True
        self._bulleted = False
        self._before = "\n"
        self._fence: str | None = None
        self._emphasised = False
        self._in_long_url = False

    def feed(self, chunk: str) -> str:
        """The speakable text that ``chunk`` completes."""
        self._unread += chunk
        return self._scan(final=False)

    def finish(self) -> str:
        """The rest; a fence or a link left open ends here. Ready for the next answer afterwards."""
        out = self._scan(final=True)
        self._reset()
        return out

    def retract(self) -> None:
        """Forget what was read so far: it was no part of the answer."""
        self._reset()

    def _scan(self, *, final: bool) -> str:
        text = self._unread
        out: list[str] = []
        at = 0
        while at < len(text):
            step = self._step(text, at, final)
            if step is None:
                break
            end, spoken = step
            if end > at:
                self._before = text[end - 1]
            at = end
            out.append(spoken)
        self._unread = text[at:]
        return "".join(out)

    def _step(self, text: str, at: int, final: bool) -> Step | None:
        if self._fence is not None:
            return self._inside_fence(text, at, final)
        if self._in_long_url:
            end = _span(_URL, text, at)
            self._in_long_url = end == len(text)
            return end, ""
        if self._line_start:
            return self._block(text, at, final)
        return self._inline(text, at, final)

    def _inside_fence(self, text: str, at: int, final: bool) -> Step | None:
        end = text.find("\n", at)
        line = text[at:] if end < 0 else text[at:end]
        if self._line_start:
            stripped = line.strip()
            closing = stripped[:1] * len(stripped) == stripped and stripped.startswith(str(self._fence))
            if end < 0 and not final and (closing or str(self._fence).startswith(stripped)):
                return None
            if closing:
                self._fence = None
        self._line_start = end >= 0
        return (len(text), "") if end < 0 else (end + 1, "")

    def _block(self, text: str, at: int, final: bool) -> Step | None:
        begin = at + len(text[at:]) - len(text[at:].lstrip(" \t"))
        if begin == len(text):
            return (begin, "") if final else None
        first = text[begin]
        if first in "`~":
            return self._opening_fence(text, begin, final)
        if first == "|":
            return self._table_row(text, begin, final)
        if first in "-:=*_":
            end = _span(_RULE_CHARS, text, begin)
            if end == len(text) and not final and end - begin < _LONGEST_LINE:
                return None
            marks = text[begin:end].replace(" ", "").replace("\t", "")
            if (end == len(text) or text[end] == "\n") and len(marks) >= 2:
                return end, ""
        if first == "#":
            end = begin + _run(text, begin)
            if end == len(text) and not final:
                return None
            if end - begin <= 6 and text[end : end + 1].isspace():
                self._line_start = False
                return end, ""
        if first == ">":
            if begin + 1 == len(text) and not final:
                return None
            if not (text[begin + 1 : begin + 2] == "=" or text[begin + 1 : begin + 2].isdigit()):
                return begin + 1, ""  # a quotation; ">140" is more than
        if first in _BULLETS:
            if begin + 1 == len(text):
                return (begin + 1, "") if final else None
            if text[begin + 1] in " \t" or first in "•◦‣▪":
                self._bulleted = True
                return begin + 1, ""
        if self._bulleted and first == "[":
            if _CHECKBOX.match(text, begin):
                self._bulleted = False
                return begin + 4, ""
            if len(text) - begin < 4 and not final:
                return None
        self._line_start = False
        self._bulleted = False
        return begin, ""

    def _opening_fence(self, text: str, begin: int, final: bool) -> Step | None:
        end = begin + _run(text, begin)
        if end == len(text) and not final:
            return None
        if end - begin >= 3:
            newline = text.find("\n", end)
            line_end = len(text) if newline < 0 else newline
            if text[begin] not in text[end:line_end]:
                if newline < 0 and not final and line_end - end < _LONGEST_LINK_TEXT:
                    return None
                self._fence = text[begin:end]
                return (line_end, "\n") if newline < 0 else (newline + 1, "\n")
        self._line_start = False
        return begin, ""

    def _table_row(self, text: str, begin: int, final: bool) -> Step | None:
        end = text.find("\n", begin)
        if end < 0:
            if not final and len(text) - begin < _LONGEST_LINE:
                return None
            end = len(text)
        row = text[begin:end].strip().strip("|")
        self._line_start = False
        if not row.strip(" \t|:-"):
            return end, ""
        cells = (self._once(cell.strip()) for cell in row.split("|"))
        return end, ", ".join(cell for cell in cells if cell.strip())

    def _inline(self, text: str, at: int, final: bool) -> Step | None:
        if plain := _PLAIN.match(text, at):
            return plain.end(), without_pictures(plain[0])
        match text[at]:
            case "\n":
                self._line_start, self._emphasised = True, False
                return at + 1, "\n"
            case "h" | "H" | "w" | "W":
                return self._url(text, at, final)
            case "`":
                return self._code(text, at, final)
            case "*" | "_" | "~":
                return self._emphasis(text, at, final)
            case "[":
                return self._link(text, at, final)
            case "]":
                return at + 1, ""
            case "!":
                if self._before.isspace() and at + 1 == len(text) and not final:
                    return None
                return at + 1, "" if text[at + 1 : at + 2] == "[" and self._before.isspace() else "!"
            case "$":
                return self._formula(text, at, final)
            case "<":
                return self._tag(text, at, final)
            case "&":
                if entity := _ENTITY.match(text, at):
                    return entity.end(), without_pictures(html.unescape(entity[0]).replace("<", " < "))
                return None if not final and _reaches_end(_ENTITY_OPEN, text, at) else (at + 1, "&")
            case "|":
                return at + 1, ","
            case "\\":
                if at + 1 == len(text):
                    return (at + 1, "") if final else None
                escaped = text[at + 1]
                if escaped in "([":
                    step = self._between(text, at, 2, "\\)" if escaped == "(" else "\\]", final)
                    if step is None or step[0] > at + 2:
                        return step
                if escaped == "n" and at + 2 == len(text) and not final:
                    return None
                if escaped == "n" and not (
                    text[at + 2 : at + 3].isascii() and text[at + 2 : at + 3].isalpha()
                ):
                    self._line_start = True
                    return at + 2, "\n"  # a line break escaped twice
                if _is_mark(escaped):
                    return at + 2, "" if escaped in "()[]" else escaped
                return at + 1, " " if self._before.isalnum() else ""
            case other:
                return at + 1, other

    def _url(self, text: str, at: int, final: bool) -> Step | None:
        if self._before.isascii() and self._before.isalnum():
            return at + 1, text[at]
        head = text[at : at + 8].lower()
        if not head.startswith(_URL_STARTS):
            waits = not final and any(start.startswith(head) for start in _URL_STARTS)
            return None if waits else (at + 1, text[at])
        end = _span(_URL, text, at)
        if end == len(text) and not final:
            if end - at < _LONGEST_URL:
                return None
            self._in_long_url = True
            return end, LINK[self._language]
        whole = at + len(_whole_url(text[at:end]))
        if self._before == "<" and text[whole : whole + 1] == ">":
            whole += 1
        return whole, LINK[self._language]

    def _code(self, text: str, at: int, final: bool) -> Step | None:
        ticks = _run(text, at)
        begin = at + ticks
        if begin == len(text) and not final:
            return None
        newline = text.find("\n", begin)
        close = text.find("`" * ticks, begin, len(text) if newline < 0 else newline)
        if close < 0:
            waits = newline < 0 and not final and len(text) - begin < _LONGEST_LINK_TEXT
            return None if waits else (begin, "")
        content = text[begin:close].strip()
        return close + ticks, content if _WORD.fullmatch(content) else _CODE[self._language]

    def _formula(self, text: str, at: int, final: bool) -> Step | None:
        """Between dollars, which far more often are money: what is none cannot wait for a closing one."""
        if text.startswith("$$", at):
            return self._between(text, at, 2, "$$", final)
        after = text[at + 1 : at + 2]
        if money := _MONEY.match(text, at):
            after = text[money.end() : money.end() + 1]
            if not after and not final:
                return None
            if after not in ("\\", "^", "=", "+"):
                return money.end(), money[0]
        elif not after and not final:
            return None
        elif not (after == "\\" or (after.isascii() and after.isalpha())):
            return at + 1, "$"
        return self._between(text, at, 1, "$", final)

    def _between(self, text: str, at: int, mark: int, closing: str, final: bool) -> Step | None:
        """The formula from ``at`` to ``closing``, as it can be said; else its first mark alone."""
        begin = at + mark
        close = text.find(closing, begin, begin + _LONGEST_FORMULA)
        newline = text.find("\n", begin, begin + _LONGEST_FORMULA) if mark == 1 else -1
        if close < 0 or 0 <= newline < close:
            waits = not final and newline < 0 and len(text) - begin < _LONGEST_FORMULA
            return None if waits else (begin, text[at:begin] if mark == 1 else "")
        content, end = text[begin:close], close + len(closing)
        if mark == 1:
            if end == len(text) and not final:
                return None
            # As pandoc tells it: no space inside the marks, no digit after them.
            if not content or content[-1].isspace() or text[end : end + 1].isdigit():
                return begin, "$"
        return end, plain_formula(content)

    def _emphasis(self, text: str, at: int, final: bool) -> Step | None:
        mark, count = text[at], _run(text, at)
        end = at + count
        if end == len(text) and not final:
            return None
        before, after = self._before, text[end : end + 1] or "\n"
        if mark == "~":
            return end, "~" if count == 1 else ""
        inside_word = before.isascii() and before.isalnum() and after.isascii() and after.isalnum()
        if mark == "_":
            return end, "_" if inside_word and count == 1 else ""
        if count == 1 and ((before.isspace() and after.isspace()) or (inside_word and not self._emphasised)):
            return end, "*"
        if before.isdigit() and after.isdigit():
            return end, mark * count
        if count % 2:
            self._emphasised = not self._emphasised
        return end, ""

    def _link(self, text: str, at: int, final: bool) -> Step | None:
        close = _closing(text, at, "[", "]", _LONGEST_LINK_TEXT)
        if close is None:
            waits = not final and "\n" not in text[at:] and len(text) - at < _LONGEST_LINK_TEXT
            return None if waits else (at + 1, "")
        content = text[at + 1 : close]
        after = text[close + 1 : close + 2]
        if not after and not final:
            return None
        if after in ("(", "["):
            end = _closing(text, close + 1, after, ")" if after == "(" else "]", _LONGEST_URL)
            if end is not None and _CITATION.fullmatch(content):
                return (end + 1 if after == "(" else close + 1), ""
            if end is not None:
                return end + 1, self._once(content).strip() or LINK[self._language]
            if not final and "\n" not in text[close:] and len(text) - close < _LONGEST_URL:
                return None
        if _FOOTNOTE.fullmatch(content):
            return close + 1, ""
        return at + 1, ""

    def _tag(self, text: str, at: int, final: bool) -> Step | None:
        if tag := _HTML.match(text, at):
            breaks = tag[0].lower().startswith(("<br", "</p", "</li", "</h", "</tr", "</div"))
            return tag.end(), "\n" if breaks else ""
        rest = text[at + 1 : at + 9].lower()
        if rest.startswith(_URL_STARTS):
            return at + 1, ""
        if not final:
            if any(start.startswith(rest) for start in _URL_STARTS):
                return None
            opening = _HTML_OPEN.fullmatch(text, at)
            if opening and _may_be_html(opening):
                return None
        return at + 1, "<"

    def _once(self, text: str) -> str:
        inner = MarkupFilter(self._language)
        inner._line_start = False
        return inner.feed(text) + inner.finish()


def without_pictures(text: str) -> str:
    """``text`` without emoji and other pictures; signs that a voice can name (℃, ㎡, ㈜, №, °) stay.

    By Unicode category and one character at a time (the parts of a joined emoji, skin tones, flags,
    variation selectors, keycaps), so that a sequence cut by the stream leaves nothing behind.
    """
    return _SIGNS.sub(lambda sign: "" if _is_picture(sign[0]) else sign[0], text)


@lru_cache(maxsize=512)
def _is_picture(sign: str) -> bool:
    code = ord(sign)
    if sign in "▲△▼▽":  # before a number they say which way it went
        return False
    if 0x2100 <= code <= 0x214F or 0x3200 <= code <= 0x33FF:
        return sign in "℗℠™℡ℹ"
    if code in (0x200D, 0xFE0E, 0xFE0F, 0x20E3) or 0xE0000 <= code <= 0xE007F or 0x1F3FB <= code <= 0x1F3FF:
        return True
    category = unicodedata.category(sign)
    # Not assigned in this Python's Unicode tables: an emoji newer than they are.
    return category in ("So", "Co") or (category == "Cn" and code >= 0x1F000)


def _span(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _reaches_end(pattern: re.Pattern[str], text: str, at: int) -> bool:
    return _span(pattern, text, at) == len(text)


def _run(text: str, at: int) -> int:
    return len(text) - at - len(text[at:].lstrip(text[at]))


def _is_mark(sign: str) -> bool:
    return sign.isascii() and sign.isprintable() and not sign.isalnum() and sign != " "


def _closing(text: str, at: int, opening: str, closing: str, longest: int) -> int | None:
    depth = 0
    for index in range(at, min(len(text), at + longest)):
        sign = text[index]
        if sign == "\n":
            return None
        if sign == opening:
            depth += 1
        elif sign == closing:
            depth -= 1
            if depth == 0:
                return index
    return None


def _whole_url(url: str) -> str:
    """``url`` without the punctuation of the sentence around it."""
    while True:
        shorter = _URL_TAIL.sub("", url)
        if shorter.endswith(")") and shorter.count(")") > shorter.count("("):
            shorter = shorter[:-1]
        if shorter == url:
            return url
        url = shorter


def _may_be_html(opening: re.Match[str]) -> bool:
    if opening["name"] is None:
        return True
    name = opening["name"].lower()
    if opening["rest"]:
        return name in _HTML_NAMES
    return any(known.startswith(name) for known in _HTML_NAMES)
