"""Wyoming frames, read within bounds.

``wyoming.event.async_read_event`` takes any length a client announces, answers None both to a broken frame
and to the end of the stream, and lets some broken frames escape as TypeError or RecursionError. This reader
tells the three apart. Writing stays with ``wyoming``. See docs/decisions/wyoming-frames.md.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn

from wyoming.event import Event

from ondam_engines.kit.limits import Limits, RequestError


async def read_frame(reader: asyncio.StreamReader, limits: Limits) -> Event | None:
    """The next event, or None when the client closed its side, between frames or within one.

    The reader must have been made with ``limit=limits.line_bytes``. Raises RequestError(``bad_request``)
    for a frame that is broken or over a bound; nothing sensible can be read after that.
    """
    try:
        line = await reader.readuntil(b"\n")
        header = _object(line, "header")
        kind = header.get("type")
        if not isinstance(kind, str):
            raise RequestError("bad_request", "a frame's type must be a string")
        data = header.get("data") or {}
        if not isinstance(data, dict):
            raise RequestError("bad_request", "a frame's data must be an object")
        if length := _length(header, "data_length", limits.data_bytes):
            data |= _object(await reader.readexactly(length), "data")
        payload = None
        if length := _length(header, "payload_length", limits.payload_bytes):
            payload = await reader.readexactly(length)
    except asyncio.LimitOverrunError as error:
        raise RequestError("bad_request", f"a line is longer than {limits.line_bytes} bytes") from error
    except (asyncio.IncompleteReadError, ConnectionError):
        # Half a frame, then the end: the client is gone, and there is nobody to tell.
        return None
    return Event(kind, data, payload)


def _object(text: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constant)
        # A lone surrogate (\ud800) passes the parser and can be neither spoken, logged nor sent back.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise RequestError("bad_request", f"a frame's {what} is not JSON in UTF-8") from error
    if not isinstance(value, dict):
        raise RequestError("bad_request", f"a frame's {what} must be an object")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _length(header: dict[str, Any], key: str, most: int) -> int:
    length = header.get(key)
    if length is None:
        return 0
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise RequestError("bad_request", f"{key} must be a number of bytes")
    if length > most:
        raise RequestError("bad_request", f"{key} {length} is over {most}")
    return length
