from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.unit.cli.conftest import Ondam

from ondam.cli import COMMANDS, command
from ondam.cli.frame import run
from ondam.errors import ConfigError, EngineError
from ondam.messages import catalog

HEAVY = ("numpy", "aiohttp", "pydantic", "onnxruntime", "asyncio", "rich")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_heavy(argument: str) -> None:
    done = python(
        "-c",
        "import sys; from ondam.cli import command; from ondam.cli.frame import run;"
        f"code = run(command, ['{argument}']);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr); sys.exit(code)",
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_version_costs_little_more_than_python_and_click() -> None:
    def cpu_s(*arguments: str) -> float:
        """Of a process, the best of five: this box may be busy, CPU time is not wall time."""

        def once() -> float:
            before = os.times()
            assert python(*arguments).returncode == 0
            after = os.times()
            return (after.children_user + after.children_system) - (
                before.children_user + before.children_system
            )

        return min(once() for _ in range(5))

    assert cpu_s("-m", "ondam", "--version") < cpu_s("-c", "import click") + 0.05


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_the_table_loads_and_explains_itself(name: str) -> None:
    found = command.get_command(click.Context(command), name)
    assert found is not None
    assert found.help
    assert found.name == name


async def test_a_command_that_does_not_exist_is_a_usage_error_with_the_nearest_name(ondam: Ondam) -> None:
    done = await ondam("sttus")
    assert (done.code, done.out) == (2, "")
    assert done.err == "there is no command 'sttus' (did you mean 'status'?)\n→ ondam --help\n"


async def test_a_usage_error_is_told_in_korean_too(ondam: Ondam, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    done = await ondam("sttus")
    assert done.err.splitlines()[0] == (
        "명령을 이해하지 못했습니다: 'sttus' 명령이 없습니다('status'을(를) 찾으시나요?)"
    )
    assert "'xyz' 명령이 없습니다\n" in (await ondam("xyz")).err
    said = await ondam("say")
    assert said.code == 2
    assert said.err.startswith("명령을 이해하지 못했습니다: 읽을 문장(TEXT)을 적거나")


async def test_no_daemon_is_exit_code_4_with_what_to_type_in_the_readers_language(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (["ask", "hi"], ["say", "hi"], ["listen"], ["status"], ["stop"], ["turns"], ["down"]):
        done = await ondam(*arguments)
        assert (done.code, done.out) == (4, "")
        assert done.err.splitlines()[-1] == "→ ondam up"
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    assert (await ondam("ask", "hi")).err.startswith("온담이 실행되고 있지 않습니다.")


async def test_with_json_an_error_is_json_on_stdout_and_nothing_else(ondam: Ondam) -> None:
    done = await ondam("ask", "hi", "--json")
    assert (done.code, done.err) == (4, "")
    assert done.json["error"]["code"] == "daemon_not_running"
    assert done.json["error"]["next"] == "ondam up"
    usage = await ondam("listen", "--timeout", "never", "--json")
    assert (usage.code, usage.json["error"]["code"]) == (2, "cli_usage")
    assert usage.json["error"]["next"] == "ondam listen --help"
    text = await ondam("ask", "--", "--json")  # a text, not an option
    assert (text.code, text.out) == (4, "")


@pytest.mark.parametrize(
    ("raised", "code", "told"),
    [
        (ConfigError("file_missing", path="/a"), 3, "/a does not exist.\n"),
        (EngineError("engine_not_running_here", name="piper"), 6, "→ ondam status\n"),
        (ValueError("boom"), 1, "ValueError: boom"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_a_command_raises_becomes_a_text_and_an_exit_code(
    raised: BaseException, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def failing() -> None:
        raise raised

    group = click.Group(commands={"failing": failing})
    assert run(group, ["failing"]) == code
    out, err = capsys.readouterr()
    assert out.strip() == ""
    assert told in err
    assert "Traceback" not in err


def test_a_traceback_is_there_for_who_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ONDAM_DEBUG", "1")

    @click.command()
    def failing() -> None:
        raise ValueError("boom")

    run(click.Group(commands={"failing": failing}), ["failing"])
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_closes_the_pipe_is_no_traceback() -> None:
    done = subprocess.run(
        f"{sys.executable} -m ondam config show | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [["turns", "--json"], ["sttus"], ["--help"], ["config", "show"]])
@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_output_that_nobody_takes_is_no_traceback(arguments: list[str], closed: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ondam", *arguments],
            stdout=writes if closed == "stdout" else subprocess.PIPE,
            stderr=writes if closed == "stderr" else subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writes)
    assert "Traceback" not in (done.stderr or "")
    assert "BrokenPipe" not in (done.stderr or "")
    assert done.returncode in {0, 1, 2, 4}


def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ondam", "read", "-", "--lang", "en"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(b"One. Two. ")
    process.stdin.flush()
    assert process.stdout.readline() == b"One.\n"  # it runs, and streams
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(10) == 130
        assert b"Traceback" not in process.stderr.read()
    finally:
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        process.kill()


def test_every_word_of_the_command_line_is_in_both_languages() -> None:
    ours = {
        code: entry for code, entry in catalog().items() if code.startswith(("cli_", "doctor_", "control_"))
    }
    assert len(ours) > 80
    for code, entry in ours.items():
        assert entry["en"], code
        assert entry["ko"], code


async def test_a_closed_stdin_holds_no_text(ondam: Ondam, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    done = await ondam("ask", "-")
    assert (done.code, done.err.splitlines()[-1]) == (2, "→ ondam ask --help")


@pytest.mark.parametrize(
    ("number", "path", "told"),
    [
        (errno.ENOSPC, "/home/a b/x", "ls -ld '/home/a b/x'; df -h"),
        (errno.EACCES, "answer.wav", "ls -ld answer.wav; df -h"),
        (errno.EACCES, "/var/lib/ondam/state", "sudo -u ondam ondam mode open"),
        (errno.EROFS, "/var/lib/ondam/state", "ls -ld /var/lib/ondam/state; df -h"),
    ],
)
async def test_a_file_that_the_machine_does_not_give_is_no_surprise_and_says_what_to_look_at(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch, number: int, path: str, told: str
) -> None:
    def closed(*_: object) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr("ondam.cli.mode.daemon", closed)
    done = await ondam("mode", "open")
    assert (done.code, done.out) == (1, "")
    assert path in done.err and os.strerror(number) in done.err
    assert done.err.splitlines()[-1].endswith(told)
