"""Wyoming events from a server that may be broken.

``wyoming.event.async_read_event`` answers None for a broken frame and for the end of the stream alike, and
believes every length it is told; docs/decisions/wyoming-frames.md.
"""

from __future__ import annotations

import asyncio

from wyoming.event import Event

from ondam.clients.json_text import Json, count_at, json_object, object_at, text_at
from ondam.errors import EngineError

AUDIO_START, AUDIO_CHUNK, AUDIO_STOP = "audio-start", "audio-chunk", "audio-stop"
"""Not ``wyoming.audio``: importing it imports audioop, which Python is removing and warns about."""

LONGEST_LINE = 1 << 20
"""Bytes of a header line. asyncio's own limit of 64 KiB would refuse valid headers with their data inline."""

LONGEST_DATA = 1 << 20
"""Bytes of an event's JSON. The longest real ones are transcripts: an hour of speech is about 60 kB."""

LONGEST_PAYLOAD = 16 << 20
"""Bytes of sound in one event: 87 s of 16-bit stereo at 48 kHz, for servers that send an answer whole."""


class Frames:
    """The events of one connection, in order."""

    def __init__(self, reader: asyncio.StreamReader, address: str) -> None:
        self._reader = reader
        self._address = address

    async def next(self) -> Event:
        """The next event.

        Raises EngineError: ``engine_hung_up`` at end of stream, which a caller still waiting never wants, and
        ``engine_broken_frame`` for bytes that are no event.
        """
        try:
            line = await self._reader.readuntil(b"\n")
            header = json_object(line)
            kind = text_at(header, "type")
            if not kind:
                raise ValueError('no "type"')
            data = object_at(header, "data")
            if length := _length(header, "data_length", LONGEST_DATA):
                data = data | json_object(await self._reader.readexactly(length))
            payload = None
            if length := _length(header, "payload_length", LONGEST_PAYLOAD):
                payload = await self._reader.readexactly(length)
        except asyncio.IncompleteReadError as error:
            raise EngineError("engine_hung_up", address=self._address) from error
        except ConnectionError as error:
            raise EngineError("engine_hung_up", address=self._address) from error
        except asyncio.LimitOverrunError as error:
            raise self.broken(f"a line over {LONGEST_LINE} bytes") from error
        except ValueError as error:
            raise self.broken(str(error)) from error
        return Event(kind, data, payload)

    def broken(self, reason: str) -> EngineError:
        """What to raise when an event is well-formed and still not usable."""
        return EngineError("engine_broken_frame", address=self._address, reason=reason)


def _length(header: dict[str, Json], key: str, limit: int) -> int:
    length = count_at(header, key) or 0
    if length > limit:
        raise ValueError(f'"{key}" over {limit}')
    return length
