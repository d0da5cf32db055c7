"""Real users of this machine at the system's control socket: who may read, command and administer."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make users"),
    pytest.mark.skipif(shutil.which("useradd") is None, reason="no useradd here"),
]

CLOSED = dict.fromkeys(("read", "command", "admin"), "control_socket_closed_to_you")
NOTHING = dict.fromkeys(("read", "command", "admin"), "control_not_permitted")
USE = {"read": "ok", "command": "ok", "admin": "control_not_permitted"}
EVERYTHING = dict.fromkeys(("read", "command", "admin"), "ok")


@dataclass(frozen=True)
class Box:
    """A machine with a daemon of its own and some people."""

    group: str
    socket: Path

    def user(self, kind: str) -> str:
        return f"{self.group}{kind}"

    def called_by(self, *users: tuple[str, str | None]) -> list[dict[str, str]]:
        told = json.dumps({"path": str(self.socket), "users": [(self.user(k), g) for k, g in users]})
        done = subprocess.run(
            [sys.executable, "-m", "tests.faults.callers", told],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, str]] = json.loads(done.stdout)
        return answers


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    name = f"ondam{secrets.token_hex(3)}"
    members = {"daemon": name, "stranger": None, "member": None, "primary": name, "admin": None, "half": None}
    more = {"member": name, "admin": f"{name},{name}-admin", "half": f"{name}-admin"}
    folder = Path(tempfile.mkdtemp(prefix="ondam-"))
    folder.chmod(0o755)
    run("groupadd", "--system", name)
    run("groupadd", "--system", f"{name}-admin")
    made: list[str] = []
    try:
        for kind, group in members.items():
            own = ["--gid", group] if group else ["--user-group"]
            added = ["--groups", more[kind]] if kind in more else []
            run("useradd", "--system", "--no-create-home", *own, *added, f"{name}{kind}")
            made.append(f"{name}{kind}")
        box = Box(name, folder / "run" / "control.sock")
        box.socket.parent.mkdir(mode=0o700)
        shutil.chown(box.socket.parent, f"{name}daemon", name)
        told = {"path": str(box.socket), "user": f"{name}daemon", "group": name}
        serving = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.group_server", json.dumps(told)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert serving.stdout is not None
        assert serving.stdout.readline() == "listening\n"
        yield box
        serving.communicate("", timeout=10)
    finally:
        for user in made:
            run("userdel", user)
        for group in (name, f"{name}-admin"):
            subprocess.run(["groupdel", group], check=False, capture_output=True)
        shutil.rmtree(folder)


def test_the_systems_socket_is_the_groups_and_nobody_elses(box: Box) -> None:
    folder, socket = box.socket.parent.stat(), box.socket.stat()
    assert (stat.S_IMODE(folder.st_mode), stat.S_IMODE(socket.st_mode)) == (0o750, 0o660)
    assert box.socket.group() == box.socket.parent.group() == box.group
    assert box.socket.owner() == box.user("daemon")


def test_a_stranger_is_kept_out_by_the_mode_and_a_member_may_use_it_and_an_administrator_more(
    box: Box,
) -> None:
    kinds = ("stranger", "member", "primary", "admin", "half", "daemon")
    assert dict(zip(kinds, box.called_by(*((kind, None) for kind in kinds)), strict=True)) == {
        "stranger": CLOSED,
        "member": USE,  # the group is none that the kernel reports of its process
        "primary": USE,
        "admin": EVERYTHING,
        "half": CLOSED,  # ondam-admin alone opens no socket: both groups are needed
        "daemon": EVERYTHING,
    }


def test_who_came_through_an_open_door_is_refused_for_who_he_is(box: Box) -> None:
    box.socket.parent.chmod(0o755)
    box.socket.chmod(0o666)
    try:
        stranger, member, half = box.called_by(("stranger", None), ("member", None), ("half", None))
    finally:
        box.socket.parent.chmod(0o750)
        box.socket.chmod(0o660)
    assert (stranger, member, half) == (NOTHING, USE, EVERYTHING)


def test_the_group_that_a_process_claims_is_not_what_counts(box: Box) -> None:
    (claimed,) = box.called_by(("stranger", box.group))
    assert claimed == NOTHING, "the mode lets the process in, the user is no member"
