"""Server-sent events from bytes that may be cut anywhere (WHATWG HTML, 9.2.6).

docs/decisions/sse.md says why this is not a library.
"""

from __future__ import annotations

import re

LONGEST_EVENT = 1 << 20
"""Bytes of one event. A chunk of an answer takes under 2 kB; a stream without line ends must not fill RAM."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventStream:
    """Turns bytes into the ``data`` of events. Comments and every other field are ignored.

    Lines are cut in bytes and decoded whole: no line end is part of a character, so no cut can break one.
    """

    def __init__(self) -> None:
        self._bytes = b""
        self._data: list[str] = []
        self._size = 0
        self._first = True
        self._ended_in_cr = False

    def feed(self, more: bytes) -> list[str]:
        """The events that ``more`` completes. ValueError: over LONGEST_EVENT, or not UTF-8."""
        events: list[str] = []
        if not more:
            return events
        if self._ended_in_cr:
            # That line was told at once instead of waiting for a "\n" that may never come.
            more = more.removeprefix(b"\n")
        self._ended_in_cr = more.endswith(b"\r")
        searched = len(self._bytes)
        pending = self._bytes + more
        begin = 0
        for end in _LINE_END.finditer(pending, searched):
            self._line(pending[begin : end.start()], events)
            begin = end.end()
        self._bytes = pending[begin:]
        if len(self._bytes) + self._size > LONGEST_EVENT:
            raise ValueError(f"an event over {LONGEST_EVENT} bytes")
        return events

    def end(self) -> list[str]:
        """What the end of the stream completes: servers leave out the last blank line. See ``feed``."""
        events: list[str] = []
        if self._bytes:
            self._line(self._bytes, events)
            self._bytes = b""
        self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[str]) -> None:
        if self._first:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._first = False
        if not line:
            if self._data:
                events.append("\n".join(self._data))
            self._data, self._size = [], 0
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._size += len(value) + 1
            if self._size > LONGEST_EVENT:
                raise ValueError(f"an event over {LONGEST_EVENT} bytes")
            self._data.append(value.removeprefix(b" ").decode("utf-8"))
