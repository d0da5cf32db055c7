"""A call of a tool, written out in words by a model whose server does not know it for one: never spoken.

Recognised at the begin of an answer: ``<tool_call>`` (Hermes, Qwen), ``[TOOL_CALLS]`` (Mistral),
``<function=``, ``<|python_tag|>``, ``<|tool_call`` and their like, and bare JSON with a name and arguments
(Llama).
"""

from __future__ import annotations

import re

_MARKS = ("<tool_call>", "[tool_calls]", "<function=", "<|python_tag|>", "<|tool_call", "<|tool▁call")

_CALL = re.compile(
    r"(?:```(?:json|tool_call)?\s*)?\[?\s*\{\s*\"(?:name|function|tool|parameters|arguments|tool_calls)\"\s*:"
    r"|(?:```(?:json|tool_call)?\s*)?\[?\s*\{\s*\"type\"\s*:\s*\"function\"",
    re.IGNORECASE,
)
_NAME = re.compile(r"\"name\"\s*:\s*\"([\w.-]{1,64})|<function=([\w.-]{1,64})")

_MAY_BE_JSON = re.compile(
    r"`{1,2}|(?:```\w{0,9}\s*)?\[?\s*(?:\{\s*(?:\"\w{0,12}(?:\"\s*:?\s*(?:\"\w{0,8})?)?)?)?"
)
"""The begin of one, as far as it has come."""

DECIDED = 48
"""Characters after which an answer that begins like a call is none."""

_KEPT = 1000
"""Characters of a call, in which its name is looked for."""


class CallFilter:
    """Lets everything through but an answer that begins as a call. One per answer."""

    def __init__(self) -> None:
        self._held = ""
        self._through = False
        self._calls = False

    @property
    def called(self) -> str | None:
        """The tool's name, ``?`` where none could be read; None where none was called."""
        if not self._calls:
            return None
        found = _NAME.search(self._held)
        return (found[1] or found[2]) if found else "?"

    def feed(self, chunk: str) -> str:
        """What of it may be spoken; kept back while it may become a call."""
        if self._through:
            return chunk
        if self._calls:
            self._held += chunk[: _KEPT - len(self._held)]
            return ""
        self._held += chunk
        begun = self._held.lstrip()
        small = begun.lower()
        if small.startswith(_MARKS) or _CALL.match(begun):
            self._calls = True
        elif len(begun) >= DECIDED or not (
            any(mark.startswith(small) for mark in _MARKS) or _MAY_BE_JSON.fullmatch(begun)
        ):
            return self.finish()
        return ""

    def finish(self) -> str:
        """What was kept back and is no call. Everything that follows goes through."""
        if self._calls:
            return ""
        self._through = True
        held, self._held = self._held, ""
        return held
