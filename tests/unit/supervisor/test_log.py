from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ondam.supervisor.log import FILE_BYTES, KEPT, Log, tail


def drained(path: Path, ending: str) -> None:
    end = time.monotonic() + 10
    while not (path.exists() and path.read_text("utf-8", "replace").endswith(ending)):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_an_engine_says_is_kept_between_the_supervisors_notes(tmp_path: Path) -> None:
    log = Log(tmp_path / "logs" / "e.log")
    log.note("started")
    with os.fdopen(log.pipe(), "wb") as pipe:
        pipe.write("안녕\nbroken ".encode() + b"\xff\n")
    drained(log.path, "안녕\nbroken \ufffd\n")
    log.close()
    lines = log.path.read_text().splitlines()
    assert lines[0].endswith("ondam: started")
    assert tail(log.path, 1) == ["broken \ufffd"]


def test_a_flood_is_bounded_on_the_disk_and_its_end_is_kept(tmp_path: Path) -> None:
    log = Log(tmp_path / "e.log")
    written = (KEPT + 2) * FILE_BYTES
    with os.fdopen(log.pipe(), "wb") as pipe:
        for _ in range(written // 65536):
            pipe.write(b"x" * 65535 + b"\n")
        pipe.write(b"the end\n")
    drained(log.path, "the end\n")
    log.close()
    kept = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert FILE_BYTES < kept <= (KEPT + 1) * FILE_BYTES


def test_a_disk_that_refuses_does_not_stop_the_pipe(tmp_path: Path) -> None:
    log = Log(tmp_path / "e.log")
    (tmp_path / "e.log").mkdir()  # as good as a full disk: every write fails
    with os.fdopen(log.pipe(), "wb") as pipe:
        pipe.write(b"x" * 2**20)  # sixteen times what a pipe holds
    log.note("goes on")
    log.close()


def test_the_tail_reaches_into_older_files(tmp_path: Path) -> None:
    (tmp_path / "e.log").write_text("3\n4\n")
    (tmp_path / "e.log.1").write_text("1\n2\n")
    assert tail(tmp_path / "e.log", 3) == ["2", "3", "4"]
    assert tail(tmp_path / "e.log", 0) == [] == tail(tmp_path / "none.log", 5)


def test_what_is_said_after_it_was_hushed_is_left_out_to_the_last_word(tmp_path: Path) -> None:
    log = Log(tmp_path / "e.log")
    first = log.pipe()
    os.write(first, b"loading\n")
    until_written(log, "loading")
    log.hush()
    second = log.pipe()  # the next life speaks for itself
    os.write(second, b"loading again\n")
    until_written(log, "loading again")
    os.write(first, b"SECRET\n")
    os.close(first)
    until_written(log, "left out")
    os.close(second)
    log.close()
    said = log.path.read_text("utf-8")
    assert "loading\n" in said and "loading again\n" in said
    assert "SECRET" not in said
    assert "7 bytes of its output were left out" in said


def test_the_last_line_is_of_the_process_that_was_started_last(tmp_path: Path) -> None:
    log = Log(tmp_path / "e.log")
    assert log.last_line(0) == ""
    with os.fdopen(log.pipe(), "wb") as pipe:
        pipe.write(b"Traceback\nValueError: no such voice\n\n")
    assert log.last_line(10) == "ValueError: no such voice"
    os.close(log.pipe())
    assert log.last_line(10) == ""
    log.close()


def test_a_disk_that_takes_nothing_does_not_keep_the_file_from_being_let_go(tmp_path: Path) -> None:
    (tmp_path / "e.log").symlink_to("/dev/full")
    log = Log(tmp_path / "e.log")
    log.note("lost")
    log.close()


def until_written(log: Log, what: str) -> None:
    for _ in range(1000):
        if log.path.exists() and what in log.path.read_text("utf-8"):
            return
        time.sleep(0.005)
    pytest.fail(f"{what!r} was not written")
