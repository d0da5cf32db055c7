"""``--system``, typed by root: what it leaves is the daemon's, and the daemon is not root's."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Ondam

ANOTHER = 12345

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes what is somebody else's")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "var"
    (folder / "data").mkdir(parents=True)
    os.chown(folder, ANOTHER, ANOTHER + 1)
    monkeypatch.setattr("ondam.places.MACHINE_STATE", folder)
    monkeypatch.setenv("ONDAM_SYSTEM", "")  # is put back
    return folder


@pytest.mark.parametrize("command", [("config", "path"), ("no-such-command",)])
async def test_a_command_for_the_system_leaves_nothing_of_roots(
    ondam: Ondam, state: Path, command: tuple[str, ...]
) -> None:
    await ondam("--system", *command)
    left = (state / "data").stat()
    assert (left.st_uid, left.st_gid) == (ANOTHER, ANOTHER + 1)


async def test_root_does_not_run_the_systems_daemon_by_hand(
    ondam: Ondam, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    refused = await ondam("--system", "up")
    assert (refused.code, refused.err.splitlines()[-1]) == (4, "→ systemctl start ondam")
    assert (await asyncio.to_thread(lambda: [path.name for path in state.rglob("*")])) == ["data"]


async def test_a_configuration_that_the_daemon_may_not_read_is_not_fine_because_root_may(
    ondam: Ondam, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = state.parent / "config.toml"
    monkeypatch.setattr("ondam.places.MACHINE_CONFIG", machine)
    monkeypatch.setattr("ondam.config.layers.MACHINE_CONFIG", machine)
    monkeypatch.setattr("ondam.owner.may_read", lambda file, _: file != machine)
    monkeypatch.delenv("SUDO_UID", raising=False)
    await asyncio.to_thread(machine.write_text, "[llm]\nmax_tokens = 40\n")
    refused = await ondam("--system", "config", "check")
    assert refused.code == 3
    assert refused.err == (
        f"{machine} cannot be read by the user {ANOTHER}, whom the system's daemon runs as.\n"
        f"→ chmod a+r {machine}\n"
    )
