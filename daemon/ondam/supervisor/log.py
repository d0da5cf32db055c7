"""An engine's output, in a file that cannot grow without bound.

A thread of the daemon reads a pipe. A file given to the engine itself could only be cut under its hands, and
a full disk would reach it. A flood is slowed down (the engine waits a little in ``write``), never stopped:
the pipe is emptied whatever happens to the disk.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES = 2 * 1024 * 1024
KEPT = 2
"""Older files beside the one that is written: 6 MiB an engine in all."""

CHUNK = 64 * 1024
FLOOD_PAUSE_S = 0.02
"""After a full chunk: 3 MB/s at most, about 1 % of a core. No engine has that much to say."""


END_BYTES = 2000
"""Of what it said last that are kept in memory: a line, or the end of a long one."""


class _File(RotatingFileHandler):
    terminator = ""

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk loses lines; it must not stop the engine, nor fill the daemon's own log."""


class Log:
    """Where one engine's output goes, from start to start."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._hushed = threading.Event()
        """Of the process that was started last; as the next two."""
        self._draining: threading.Thread | None = None
        self._end = b""
        self._file = _File(path, maxBytes=FILE_BYTES, backupCount=KEPT, encoding="utf-8", delay=True)

    def note(self, text: str) -> None:
        """A line of the supervisor's own."""
        now = time.strftime("%Y-%m-%d %H:%M:%S%z")
        self._write(f"--- {now} ondam: {text}\n")

    def hush(self) -> None:
        """Leave out what the engine says from now on, to its last word; how much it was is written then."""
        self._hushed.set()

    def pipe(self) -> int:
        """A descriptor for an engine to write to; close it in the daemon once the engine has it."""
        reading, writing = os.pipe()
        self._hushed = hushed = threading.Event()
        self._end = b""
        # A daemon thread: it ends when the last process that holds the pipe does, which is made sure of
        # elsewhere.
        self._draining = threading.Thread(
            target=self._drain, args=(reading, hushed), name=f"log-{self.path.stem}", daemon=True
        )
        self._draining.start()
        return writing

    def last_line(self, within_s: float) -> str:
        """What the process that was started last said last, unless it was hushed; empty if nothing.

        Blocks until its pipe is empty, at most ``within_s``.
        """
        if self._draining is not None:
            self._draining.join(within_s)
        lines = self._end.decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """Let go of the file; it is opened again by what is still written."""
        with suppress(
            OSError
        ):  # a full disk: what it could not take is lost, and the engine has ended all the same
            self._file.close()

    def _drain(self, reading: int, hushed: threading.Event) -> None:
        left_out = 0
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while chunk := pipe.read(CHUNK):
                if hushed.is_set():
                    left_out += len(chunk)
                else:
                    self._write(chunk.decode("utf-8", "replace"))
                    if hushed is self._hushed:
                        self._end = (self._end + chunk)[-END_BYTES:]
                if len(chunk) == CHUNK:
                    time.sleep(FLOOD_PAUSE_S)
        if left_out:
            self.note(f"{left_out} bytes of its output were left out (supervisor.keep_output)")

    def _write(self, text: str) -> None:
        # handle() takes the handler's lock; two starts of an engine may overlap by a moment.
        self._file.handle(logging.makeLogRecord({"msg": text.replace("\0", "")}))


def tail(path: Path, lines: int) -> list[str]:
    """The last ``lines`` of a log, the rotated files before it included. Empty when there is none yet."""
    found: list[str] = []
    for file in (path, *(path.with_name(f"{path.name}.{n}") for n in range(1, KEPT + 1))):
        if len(found) >= lines or not file.exists():
            break
        found = [*file.read_text("utf-8", "replace").splitlines(), *found]
    return found[-lines:] if lines else []
