"""Reasoning out of a stream of tokens: what a model writes to itself is never spoken.

Tags may be cut anywhere by the stream. Recognised: ``<think>``, ``<thinking>``, ``<thought>``,
``<reasoning>`` and their like (with attributes or a namespace as in ``<seed:think>``, nested, never closed),
``<tool_call>``, which is written to a program and not to a person, ``[THINK]`` (Mistral), ``◁think▷`` (Kimi),
the channels of gpt-oss (``<|channel|>analysis<|message|>``), ``<|START_THINKING|>`` (Cohere) and
``<|begin_of_thought|>``; every other ``<|special token|>`` is dropped.
"""

from __future__ import annotations

import re

_NAMES = "thinking|think|thoughts|thought|reasoning|reflection|scratchpad|tool_call"
_SPACES = "seed:|ant:|antml:"
"""Namespaces in which they come."""
_TAG = re.compile(
    rf"<(?P<slash>/?)(?:{_SPACES})?(?:{_NAMES})(?:\s[^<>\n]{{0,60}})?/?>"
    r"|[\[◁](?P<slash2>/?)THINK[\]▷]"
    r"|<\|(?P<special>[a-z_]{1,40})\|>",
    re.IGNORECASE,
)
_PREFIXES = (
    *(
        f"<{slash}{space}{name}"
        for name in _NAMES.split("|")
        for space in ("", *_SPACES.split("|"))
        for slash in ("", "/")
    ),
    *("<|", "[think]", "[/think]", "◁think▷", "◁/think▷"),
)
_OPEN_TAG = re.compile(
    rf"</?(?:{_SPACES})?(?:{_NAMES})(?:\s[^<>\n]{{0,60}})?/?|<\|[a-z_]{{0,40}}\|?", re.IGNORECASE
)
_BOUNDS = re.compile(r"(?:(?P<opens>start|begin)|end)_(?:of_)?(?:thinking|thought)")
_STARTS = re.compile(r"[<\[◁]")
_HALF_TAG_CHARS = 4
"""At the end of a stream this much of a tag (``<thi``) is a tag cut off, less is text (``<``)."""


class ThinkingFilter:
    """Lets everything through but reasoning. One per answer, or ``finish`` between answers."""

    def __init__(self, *, opened: bool = False) -> None:
        """``opened``: the chat template already wrote the opening tag into the prompt."""
        self._starts_opened = opened
        self.retractions = 0
        self.reasoned = False
        """Reasoning was left out: it is not spoken, but its tokens were waited for."""
        self._reset()

    def _reset(self) -> None:
        self._held = ""
        self._depth = 1 if self._starts_opened else 0
        self._header: str | None = None
        self._line = ""
        self._fenced = False

    def feed(self, chunk: str) -> str:
        """The text of ``chunk`` that is known to be no reasoning and no part of a tag.

        When a closing tag comes that nothing opened, ``retractions`` is one higher afterwards: all that
        was let through before it was reasoning, and only what this call returns counts.
        """
        text = self._held + chunk
        self._held = ""
        out: list[str] = []
        at = 0
        while start := _STARTS.search(text, at):
            begin = start.start()
            self._pass(text[at:begin], out)
            tag = None if self._quoted() else _TAG.match(text, begin)
            if tag:
                self._turn(tag, out)
                at = tag.end()
            elif not self._quoted() and _may_become_tag(text[begin:]):
                self._held = text[begin:]
                return "".join(out)
            else:
                self._pass(text[begin], out)
                at = begin + 1
        self._pass(text[at:], out)
        return "".join(out)

    def finish(self) -> str:
        """What was held back and turned out to be text. Ready for the next answer afterwards."""
        out: list[str] = []
        if len(self._held) < _HALF_TAG_CHARS:
            self._pass(self._held, out)
        self._reset()
        return "".join(out)

    def _turn(self, tag: re.Match[str], out: list[str]) -> None:
        special = (tag["special"] or "").lower()
        bounds = _BOUNDS.fullmatch(special)
        closes = not bounds["opens"] if bounds else bool(tag["slash"] or tag["slash2"])
        if special and not bounds:
            self._special(special)
        elif not closes and tag[0].endswith("/>"):
            pass  # <think/> holds nothing
        elif not closes:
            self._depth += 1
        elif self._depth:
            self._depth -= 1
        else:
            self.retractions += 1
            self.reasoned = True
            self._line = ""
            out.clear()

    def _special(self, name: str) -> None:
        if name in ("start", "channel"):
            self._header = ""
        elif name == "message":
            channel = (self._header or "").split()[:1]
            self._depth = 1 if channel and channel[0] in ("analysis", "commentary") else 0
            self._header = None
        elif name in ("end", "return"):
            self._header = None
            self._depth = 0

    def _pass(self, text: str, out: list[str]) -> None:
        if self._header is not None:
            self._header = (self._header + text)[:80]
        elif self._depth:
            self.reasoned |= not text.isspace() and bool(text)
        elif text:
            out.append(text)
            *whole, last = text.split("\n")
            for line in whole:
                self._line += line
                self._fenced ^= self._opens_fence()
                self._line = ""
            self._line = (self._line + last)[:3] + (self._line + last)[3:][-1:]

    def _opens_fence(self) -> bool:
        return self._line.startswith("```")

    def _quoted(self) -> bool:
        """In code a tag is a word about tags, not a tag."""
        return self._depth == 0 and (self._fenced or self._opens_fence() or self._line.endswith("`"))


def _may_become_tag(text: str) -> bool:
    folded = text.lower()
    return any(prefix.startswith(folded) for prefix in _PREFIXES) or _OPEN_TAG.fullmatch(text) is not None
