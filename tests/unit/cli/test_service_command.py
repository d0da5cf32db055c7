"""``ondam service status``: what a person is told of a service that runs, and of one that does not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from ondam.cli import service as shown
from ondam.deploy.service import Service

RUNS = Path("/opt/ondam/bin/ondam")

Status = Callable[[str], tuple[int, str]]


@pytest.fixture
def status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Status:
    """Of a service that is installed, and of which systemd says so much."""
    said = ""

    def systemctl(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(list(command), 0, said, "")

    (tmp_path / "run/systemd/system").mkdir(parents=True)
    there = Service("user", {"XDG_CONFIG_HOME": str(tmp_path / ".config")}, tmp_path, systemctl)
    there.install(RUNS, start=False)
    monkeypatch.setattr(shown, "_service", lambda system: there)
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")

    def told(properties: str) -> tuple[int, str]:
        nonlocal said
        said = properties
        done = CliRunner().invoke(shown.command, ["status"], standalone_mode=False)
        return int(done.return_value or 0), done.output

    return told


def test_of_one_that_runs_its_own_words_are_told(status: Status) -> None:
    code, told = status("ActiveState=activating\nSubState=start\nStatusText=loading piper\nResult=success\n")
    assert code == 1 and "activating (start): loading piper" in told
    code, told = status("ActiveState=active\nSubState=running\nStatusText=ready\nResult=success\n")
    assert code == 0 and "active (running): ready" in told and "journalctl" not in told


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_the_last_word_of_a_daemon_that_is_gone_is_not_told_as_its_state(status: Status, state: str) -> None:
    code, told = status(
        f"ActiveState={state}\nSubState=dead\nStatusText=ready\nNRestarts=0\nResult=exit-code\n"
    )
    assert code == 1 and f"{state} (dead)\n" in told and "ready" not in told
    assert "systemd's words: exit-code." in told and "again" not in told
    assert "→ journalctl --user -u ondam -n 20" in told
