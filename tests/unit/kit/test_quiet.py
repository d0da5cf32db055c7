"""What a model is asked is in no line of its engine's log, whatever the model raises or logs."""

from __future__ import annotations

import subprocess
import sys
import textwrap

WORD = "차돌박이"


def log_of(program: str) -> str:
    """What a process that is quiet writes on stderr."""
    before = "import asyncio, logging, threading, warnings\n"
    before += "from ondam_engines.kit.quiet import be_quiet, quiet_loop\n"
    before += "logging.basicConfig(level=logging.INFO)\nbe_quiet()\n"
    ended = subprocess.run(
        [sys.executable, "-c", before + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.stderr
    return ended.stderr


def test_a_failed_request_is_told_by_its_type_and_its_place() -> None:
    said = log_of(
        f"""
        def spoken(text): raise ValueError(f"cannot speak {{text}}")
        try: spoken("{WORD}")
        except ValueError: logging.getLogger("ondam_engines.kit.jobs").exception("a request failed")
        """
    )
    assert WORD not in said
    assert "a request failed" in said and "ValueError\n" in said and "in spoken" in said


def test_of_a_librarys_line_only_its_place_is_written() -> None:
    said = log_of(f'logging.getLogger("faster_whisper").info("heard {WORD}")')
    assert WORD not in said
    assert "INFO:faster_whisper:<string>:" in said


def test_the_last_words_of_threads_tasks_and_the_process_hold_none() -> None:
    said = log_of(
        f"""
        thread = threading.Thread(target=lambda: int("{WORD}")); thread.start(); thread.join()
        warnings.warn("{WORD}")
        async def lost(): raise KeyError("{WORD}")
        async def main():
            quiet_loop(asyncio.get_running_loop())
            task = asyncio.create_task(lost()); await asyncio.sleep(0); del task; await asyncio.sleep(0)
        asyncio.run(main())
        raise RuntimeError("{WORD}")
        """
    )
    assert WORD not in said
    assert said.count("broke down") == 3


def test_a_missing_file_is_named() -> None:
    said = log_of(
        """
        try: open("/nowhere/model.onnx")
        except OSError: logging.getLogger("ondam_engines.x").exception("no model")
        """
    )
    assert "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/model.onnx'" in said
