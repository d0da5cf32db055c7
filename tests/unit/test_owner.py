"""What root leaves in the system's folders goes to their owner, and nothing else does."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
from pathlib import Path

import pytest

from ondam.owner import become_owner, hand_over, is_anothers, may_read, name_of

ANOTHER = 12345

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes what is somebody else's")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "var"
    folder.mkdir()
    os.chown(folder, ANOTHER, ANOTHER + 1)
    return folder


def owners(folder: Path) -> dict[str, tuple[int, int]]:
    found = {path.name: path.lstat() for path in folder.rglob("*")}
    return {name: (status.st_uid, status.st_gid) for name, status in found.items()}


def test_what_root_made_belongs_to_whom_the_folder_belongs(state: Path) -> None:
    (state / "data/models").mkdir(parents=True)
    (state / "data/models/weights").touch()
    (state / "mine").touch()
    os.chown(state / "mine", 777, 778)
    hand_over(state)
    theirs = (ANOTHER, ANOTHER + 1)
    assert owners(state) == {"data": theirs, "models": theirs, "weights": theirs, "mine": (777, 778)}


def test_no_file_that_is_also_elsewhere_and_nothing_behind_a_link_is_given_away(
    state: Path, tmp_path: Path
) -> None:
    secret, folder = tmp_path / "shadow", tmp_path / "etc"
    secret.touch()
    folder.mkdir()
    (folder / "passwd").touch()
    os.link(secret, state / "copy")
    (state / "link").symlink_to(folder)
    (state / "file").symlink_to(secret)
    os.mkfifo(state / "pipe")
    hand_over(state)
    assert {secret.stat().st_uid, folder.stat().st_uid, (folder / "passwd").stat().st_uid} == {0}


def test_where_the_folder_is_roots_or_not_there_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", ANOTHER, ANOTHER)
    hand_over(tmp_path)
    hand_over(tmp_path / "none")
    assert (tmp_path / "file").stat().st_uid == ANOTHER
    assert not is_anothers(tmp_path) and not is_anothers(tmp_path / "none")


def test_an_owner_whom_nobody_knows_is_a_number(state: Path) -> None:
    assert (is_anothers(state), name_of(state), name_of(state.parent)) == (True, "12345", "root")


def test_whether_the_owner_may_read_a_file_is_asked_of_the_kernel(state: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # a test's own folder is closed to everybody else
        Path(folder).chmod(0o755)
        file = Path(folder) / "config.toml"
        file.touch(mode=0o600)
        assert not may_read(file, state)
        file.chmod(0o644)
        assert may_read(file, state)
        Path(folder).chmod(0o700)
        assert not may_read(file, state), "the way to it counts too"


def in_a_child(folder: Path) -> dict[str, object]:
    """Who a process is after ``become_owner``."""
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become_owner(folder)
            told: dict[str, object] = {
                "ids": [*os.getresuid(), *os.getresgid()],
                "groups": os.getgroups(),
                "cwd": str(Path.cwd()),
            }
            told |= {name: os.environ.get(name) for name in ("HOME", "USER", "XDG_RUNTIME_DIR", "PATH")}
            os.write(out, json.dumps(told).encode())
        finally:
            os._exit(0)
    os.close(out)
    os.waitpid(child, 0)
    with os.fdopen(into) as said:
        found: dict[str, object] = json.load(said)
    return found


def test_whoever_becomes_an_owner_keeps_nothing_of_root(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/0")
    rights = {
        "HOME": None,
        "USER": os.environ.get("USER"),
        "XDG_RUNTIME_DIR": None,
        "PATH": os.environ["PATH"],
    }
    unknown = in_a_child(state)
    assert unknown == {"ids": [ANOTHER] * 3 + [ANOTHER + 1] * 3, "groups": [], "cwd": "/", **rights}
    nobody = pwd.getpwnam("nobody")
    os.chown(state, nobody.pw_uid, 777)
    known = in_a_child(state)
    assert known["ids"] == [nobody.pw_uid] * 3 + [nobody.pw_gid] * 3
    assert (known["HOME"], known["USER"]) == (nobody.pw_dir, "nobody")
    assert known["groups"] == os.getgrouplist("nobody", nobody.pw_gid)
    assert in_a_child(tmp_path)["ids"] == [0] * 6, "the folder is root's"
