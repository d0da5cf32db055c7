"""Log records as the journal's fields."""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ondam.deploy.journald import LONGEST, JournalHandler, to_journal


@pytest.fixture
def journal() -> Iterator[socket.socket]:
    with (
        tempfile.TemporaryDirectory(prefix="ondam-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made,
    ):
        made.bind(str(Path(folder) / "socket"))
        made.settimeout(1)
        yield made


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def fields(entry: bytes) -> dict[str, bytes]:
    """As the journal reads it."""
    found = {}
    while entry:
        line, _, entry = entry.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (length,) = struct.unpack("<Q", entry[:8])
            value, entry = entry[8 : 8 + length], entry[8 + length + 1 :]
        found[name.decode()] = value
    return found


def record(level: int, message: str, **given: object) -> logging.LogRecord:
    made = logging.getLogger("ondam.test").makeRecord(
        "ondam.test", level, "/x/y.py", 7, message, (), None, "f", {"fields": given} if given else None
    )
    made.threadName = "main"
    return made


def test_an_entry_has_its_message_its_weight_its_place_and_fields_of_its_own(journal: socket.socket) -> None:
    handler = JournalHandler(Kept(), Path(journal.getsockname()))
    handler.handle(record(logging.WARNING, "엔진이 끝났습니다", engine="piper", restarts=2))
    assert fields(journal.recv(65536)) == {
        "MESSAGE": "엔진이 끝났습니다".encode(),
        "PRIORITY": b"4",
        "SYSLOG_IDENTIFIER": b"ondam",
        "LOGGER": b"ondam.test",
        "CODE_FILE": b"/x/y.py",
        "CODE_LINE": b"7",
        "CODE_FUNC": b"f",
        "THREAD_NAME": b"main",
        "ONDAM_ENGINE": b"piper",
        "ONDAM_RESTARTS": b"2",
    }
    handler.close()


def test_line_breaks_forge_no_field_and_a_long_value_is_cut(journal: socket.socket) -> None:
    handler = JournalHandler(Kept(), Path(journal.getsockname()))
    handler.handle(record(logging.DEBUG, "a\nPRIORITY=0\nb"))
    told = fields(journal.recv(65536))
    assert (told["MESSAGE"], told["PRIORITY"]) == (b"a\nPRIORITY=0\nb", b"7")
    handler.handle(record(logging.INFO, "x" * 1_000_000))
    assert len(fields(journal.recv(65536))["MESSAGE"]) == LONGEST
    handler.close()


def test_a_journal_that_is_gone_or_full_costs_no_line(tmp_path: Path, journal: socket.socket) -> None:
    kept = Kept()
    lost = JournalHandler(kept, tmp_path / "none")
    lost.handle(record(logging.INFO, "a"))
    assert [one.getMessage() for one in kept.records] == ["a"]
    lost.close()
    handler = JournalHandler(kept, Path(journal.getsockname()))
    for _ in range(2000):  # nobody reads
        handler.handle(record(logging.INFO, "b"))
    assert len(kept.records) > 1
    handler.close()


def test_the_journal_is_used_where_stderr_leads_to_it() -> None:
    reading, writing = os.pipe()
    try:
        there = os.fstat(writing)
        stream = {"JOURNAL_STREAM": f"{there.st_dev}:{there.st_ino}"}
        assert to_journal(stream, writing)
        assert not to_journal({"JOURNAL_STREAM": f"{there.st_dev}:{there.st_ino + 1}"}, writing)
        assert not to_journal({}, writing)
    finally:
        os.close(reading)
        os.close(writing)
    assert not to_journal(stream, 987_654)
    assert sys.stderr is not None
