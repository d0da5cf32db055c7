"""Where a speech engine answers: ``unix:///path`` or ``tcp://host:port``."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass
from urllib.parse import urlsplit

from ondam.errors import EngineError


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A socket on this machine."""

    path: str

    async def open(self, line_limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection. Raises OSError."""
        return await asyncio.open_unix_connection(self.path, limit=line_limit)


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A server that the user wrote into the configuration."""

    host: str
    port: int

    async def open(self, line_limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection. Raises OSError."""
        try:
            return await asyncio.open_connection(self.host, self.port, limit=line_limit)
        except UnicodeError as error:  # "a..b", or a part that is too long, is no name for a resolver
            raise OSError(errno.EINVAL, str(error)) from error


def speech_address(text: str) -> UnixAddress | TcpAddress:
    """``text`` as an address. Raises EngineError when it is none."""
    if text.startswith("unix:///"):
        return UnixAddress(text.removeprefix("unix://"))
    if text.startswith("tcp://"):
        try:
            parts = urlsplit(text)
            if parts.hostname and parts.port and not parts.path.strip("/"):
                return TcpAddress(parts.hostname, parts.port)
        except ValueError:
            pass  # a port that is no number or too large: told below, with the other malformed addresses
    raise EngineError("speech_address_malformed", address=text)
