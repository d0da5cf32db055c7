"""Whose the system's folders are: what root leaves there would keep their owner from going on."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from contextlib import suppress
from pathlib import Path


def is_anothers(folder: Path) -> bool:
    """Whether this is root and ``folder`` is there and belongs to somebody else."""
    try:
        return os.geteuid() == 0 and folder.lstat().st_uid != 0
    except OSError:
        return False


def name_of(folder: Path) -> str:
    """Whose ``folder`` is, by the user database, else by number."""
    try:
        return folder.owner()
    except KeyError:
        return str(folder.stat().st_uid)


def hand_over(top: Path) -> None:
    """Give what root made below ``top`` to whom ``top`` belongs; nothing where this is not root.

    Its owner may put anything there meanwhile: a file that has another name elsewhere is left alone, and no
    link is followed.
    """
    if not is_anothers(top):
        return
    owner = top.lstat()
    for _, folders, files, within in os.fwalk(top, follow_symlinks=False):
        for name in (*folders, *files):
            with suppress(OSError):  # gone meanwhile
                _give(name, within, owner)


def _give(name: str, within: int, owner: os.stat_result) -> None:
    found = os.stat(name, dir_fd=within, follow_symlinks=False)
    if found.st_uid != 0 or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
    finally:
        os.close(descriptor)


def become_owner(folder: Path) -> None:
    """Be whoever ``folder`` belongs to from now on, as a service of theirs. Nothing where this is not root.

    For what root's rights would falsify. There is no way back.
    """
    if not is_anothers(folder):
        return
    found = folder.stat()
    told: dict[str, str] = {}
    try:
        user = pwd.getpwuid(found.st_uid)
        groups, gid = os.getgrouplist(user.pw_name, user.pw_gid), user.pw_gid
        told = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
    except KeyError:  # a uid without an entry (containers)
        groups, gid = [], found.st_gid
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(found.st_uid)
    # Root's own places, which nobody else may use.
    for name in [name for name in os.environ if name.startswith("XDG_") or name in {"HOME", "TMPDIR"}]:
        del os.environ[name]
    os.environ.update(told)
    os.chdir("/")


def may_read(file: Path, owner_of: Path) -> bool:
    """Whether whoever ``owner_of`` belongs to may read ``file``, by the kernel's word. For root to ask."""
    owner = owner_of.stat()
    asked = subprocess.run(
        ["test", "-r", file], user=owner.st_uid, group=owner.st_gid, extra_groups=[], check=False
    )
    return asked.returncode == 0
