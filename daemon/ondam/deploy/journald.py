"""Logs as the journal's own fields instead of lines of text.

The native protocol is one datagram of ``FIELD=value`` lines to ``/run/systemd/journal/socket``; a value with
line breaks is its length in eight bytes and then itself. Own lines instead of a library: see
docs/decisions/service.md.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

JOURNAL = Path("/run/systemd/journal/socket")

LONGEST = 32_768
"""Bytes of one value: a datagram of all of them fits the smallest default buffer (212,992)."""

PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""Of syslog(3): critical, error, warning, informational; what is below is debug, 7."""


def to_journal(environ: Mapping[str, str] = os.environ, descriptor: int = 2) -> bool:
    """Whether what is written to ``descriptor`` (stderr) goes to the journal: systemd says so in
    ``JOURNAL_STREAM``, and it must still be the same stream."""
    device, _, inode = environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        there = os.fstat(descriptor)
    except OSError:
        return False
    return (device, inode) == (str(there.st_dev), str(there.st_ino))


class JournalHandler(logging.Handler):
    """One entry per record. ``fields`` of a record (``log.info(…, extra={"fields": {"engine": "piper"}})``)
    become ``ONDAM_ENGINE``. Where the journal cannot be reached, ``instead`` gets the record."""

    def __init__(self, instead: logging.Handler, path: Path = JOURNAL) -> None:
        super().__init__()
        self._instead = instead
        self._path = path
        self._socket: socket.socket | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Never waits: a journal that does not read must not hold up a conversation."""
        try:
            entry = b"".join(_field(name, value) for name, value in self._fields(record))
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self._socket.sendto(entry, os.fspath(self._path))
        except OSError:
            self._instead.handle(record)
        except Exception:  # noqa: BLE001 - logging's own way of telling that logging failed
            self.handleError(record)

    def close(self) -> None:
        """Let go of the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        super().close()

    def _fields(self, record: logging.LogRecord) -> Iterator[tuple[str, object]]:
        yield "MESSAGE", self.format(record)
        yield "PRIORITY", next((value for level, value in PRIORITIES if record.levelno >= level), 7)
        yield "SYSLOG_IDENTIFIER", "ondam"
        yield "LOGGER", record.name
        yield "CODE_FILE", record.pathname
        yield "CODE_LINE", record.lineno
        yield "CODE_FUNC", record.funcName
        yield "THREAD_NAME", record.threadName
        for name, value in getattr(record, "fields", {}).items():
            yield f"ONDAM_{name}".upper(), value


def _field(name: str, value: object) -> bytes:
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,63}", name):
        raise ValueError(f"{name!r} is no name of a field")
    written = str(value).encode("utf-8", "replace")[:LONGEST]
    if b"\n" in written:
        return name.encode() + b"\n" + struct.pack("<Q", len(written)) + written + b"\n"
    return name.encode() + b"=" + written + b"\n"
