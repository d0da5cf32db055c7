"""What was said is in no log line and no crash dump, whatever fails and whoever tells of it."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from io import StringIO

import pytest

from ondam.clients.json_text import one_line
from ondam.errors import ConfigError, EngineError, OndamError
from ondam.messages import Phrase
from ondam.pipeline.runner import StageFailed
from ondam.quiet import be_quiet, quiet_loop, told, traceback_of

WORD = "차돌박이"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[StringIO]:
    """What the process logs once it is quiet."""
    factory, hooks = logging.getLogRecordFactory(), (sys.excepthook, sys.unraisablehook)
    root, out = logging.getLogger(), StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    monkeypatch.setattr("threading.excepthook", None)
    be_quiet()
    yield out
    root.removeHandler(handler)
    logging.captureWarnings(False)
    logging.setLogRecordFactory(factory)
    sys.excepthook, sys.unraisablehook = hooks


def failing() -> Exception:
    """A fault whose every link holds the word."""
    try:
        try:
            int(WORD)
        except ValueError as error:
            raise KeyError(WORD) from error
    except KeyError as error:
        found = error
    return found


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError(WORD), "ValueError"),
        (UnicodeEncodeError("ascii", WORD, 0, 1, WORD), "UnicodeEncodeError"),
        (OSError(WORD), "OSError"),
        (
            FileNotFoundError(2, "No such file or directory", "/a"),
            "FileNotFoundError: No such file or directory: '/a'",
        ),
        (sqlite3.OperationalError("database is locked"), "OperationalError: database is locked"),
        (
            EngineError("engine_silent", address="unix:///a", seconds="3"),
            EngineError("engine_silent", address="unix:///a", seconds="3").message().text,
        ),
        (StageFailed("tts", EngineError("excuse_tts")), "StageFailed"),
    ],
)
def test_an_error_is_told_by_what_it_is(error: BaseException, expected: str) -> None:
    assert told(error) == expected


def test_a_servers_own_words_are_told_to_the_user_and_not_to_the_log(written: StringIO) -> None:
    error = EngineError("llm_refused", address="unix:///a", status=400, reason=one_line(f"bad: {WORD}"))
    assert WORD in error.message().text
    logging.getLogger("ondam.x").warning("turn %d: %s", 3, error)
    logging.getLogger("ondam.x").warning("%(why)s", {"why": error})
    assert WORD not in written.getvalue()
    assert written.getvalue().count("unix:///a") == 2
    assert "turn 3: " in written.getvalue()


def test_words_inside_a_phrase_inside_an_error_are_left_out_too() -> None:
    inner = Phrase("reason_not_json", error=ValueError(WORD))
    assert WORD not in told(ConfigError("control_bad_request", reason=inner))


def test_a_traceback_keeps_its_places_and_loses_the_words(written: StringIO) -> None:
    logging.getLogger("ondam.pipeline").exception("turn %d failed", 7, exc_info=failing())
    said = written.getvalue()
    assert WORD not in said
    assert "turn 7 failed" in said and "in failing" in said and "int(WORD)" in said
    assert said.count("Traceback") == 2
    assert "KeyError\n" in said and "which came from:" in said


def test_a_group_of_errors_is_told_with_its_members() -> None:
    group = ExceptionGroup(WORD, [ValueError(WORD), FileNotFoundError(2, "No such file", "/a")])
    said = traceback_of(group)
    assert WORD not in said
    assert "  + ValueError\n  + FileNotFoundError: No such file: '/a'" in said


def test_of_a_librarys_line_only_its_place_is_written(written: StringIO) -> None:
    logging.getLogger("aiohttp.server").error("Error handling %s", WORD, exc_info=failing())
    logging.getLogger("asyncio").warning(f"Executing <Handle {WORD}> took 2 s")
    assert WORD not in written.getvalue()
    assert "test_quiet.py:" in written.getvalue()
    assert "KeyError" in written.getvalue()


async def test_a_task_that_nobody_waited_for_is_named_without_its_result(written: StringIO) -> None:
    loop = asyncio.get_running_loop()
    quiet_loop(loop)

    async def lost() -> None:
        raise ValueError(WORD)

    task = asyncio.create_task(lost(), name="draft 3")
    await asyncio.sleep(0)
    del task
    await asyncio.sleep(0)
    loop.call_soon(lambda word: 1 / 0, WORD)
    await asyncio.sleep(0.01)
    said = written.getvalue()
    assert WORD not in said
    assert "draft 3: an error that nobody waited for" in said
    assert "ZeroDivisionError" in said


def python(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_last_words_of_a_process_and_of_a_thread_hold_none() -> None:
    ended = python(
        f"""
        import threading, logging, warnings
        from ondam.quiet import be_quiet
        logging.basicConfig()
        be_quiet()
        class Broken:
            def __del__(self): raise ValueError("{WORD}")
        thread = threading.Thread(target=lambda: int("{WORD}"))
        thread.start(); thread.join()
        warnings.warn("{WORD}")
        Broken()
        int("{WORD}")
        """
    )
    assert ended.returncode == 1
    assert ended.stderr.count("broke down") == 3
    assert WORD not in ended.stderr + ended.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="core dumps are Linux's here")
def test_a_crash_leaves_no_core_in_the_process_nor_in_one_that_it_starts() -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    ended = python(
        f"""
        import json, os, resource, subprocess, sys
        from ondam.quiet import no_core_dumps
        soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        no_core_dumps()
        child = subprocess.Popen([sys.executable, "-c", {crash!r}])
        status = os.waitpid(child.pid, 0)[1]
        limits = resource.getrlimit(resource.RLIMIT_CORE)
        print(json.dumps([os.WTERMSIG(status), os.WCOREDUMP(status), limits]))
        """
    )
    number, dumped, limits = json.loads(ended.stdout)
    assert (number, dumped) == (signal.SIGSEGV, False)
    assert max(limits) <= 1


def test_every_error_of_ours_can_be_told() -> None:
    assert all(
        told(kind("internal_fault")) == kind("internal_fault").message("en").text
        for kind in OndamError.__subclasses__()
    )


async def test_callers_that_cannot_be_taken_are_told_of_once_and_without_a_traceback(
    written: StringIO,
) -> None:
    loop = asyncio.get_running_loop()
    quiet_loop(loop)
    for _ in range(100):  # as asyncio does when no descriptor is left
        error = OSError(errno.EMFILE, "Too many open files")
        loop.call_exception_handler({"message": "socket.accept()", "exception": error, "socket": None})
    assert written.getvalue().count("callers wait: OSError: Too many open files") == 1
    assert "Traceback" not in written.getvalue()
