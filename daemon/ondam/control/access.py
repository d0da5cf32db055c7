"""Who is calling, and what they may do: the peer's uid and its groups; modes of the folder and the socket."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
import sys
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from pathlib import Path

from ondam.control.wire import Permission
from ondam.errors import ControlError
from ondam.places import private_folder

EVERYTHING: frozenset[Permission] = frozenset({"read", "command", "admin"})
USE: frozenset[Permission] = frozenset({"read", "command"})
NOTHING: frozenset[Permission] = frozenset()

_UCRED = struct.Struct("3i")
"""pid, uid, gid: ``struct ucred`` of unix(7)."""

_XUCRED = struct.Struct("=IIh2x16I")
"""version, uid, number of groups, groups: ``struct xucred`` of macOS's sys/ucred.h."""


def peer_uid(connection: socket.socket) -> int:
    """The user at the other end of a Unix socket, as the kernel tells it. Differs by system."""
    if sys.platform == "darwin":
        local_peercred = 1  # sys/un.h; Python has no name for it
        return int(_XUCRED.unpack(connection.getsockopt(0, local_peercred, _XUCRED.size))[1])
    return int(_UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))[1])


def peer_pid(connection: socket.socket) -> int:
    """The process at the other end, or the one that opened it; 0 where the system does not tell."""
    try:
        if sys.platform == "darwin":
            local_peerpid = 2  # sys/un.h
            return int(connection.getsockopt(0, local_peerpid))
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        return int(_UCRED.unpack(told)[0])
    except OSError:
        return 0  # gone already


def groups_of(uid: int) -> frozenset[str]:
    """Names of all groups of a user by the user database: the socket tells only the process's first one."""
    try:
        user = pwd.getpwuid(uid)
    except KeyError:  # a uid without an entry (containers): it has no groups either
        return frozenset()
    names = set()
    for gid in os.getgrouplist(user.pw_name, user.pw_gid):
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except KeyError:  # a group without a name cannot be one of ours
            continue
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one daemon.

    Its own user and root may do everything. With ``group`` (the system's daemon) its members may read and
    command, and members of ``<group>-admin`` may do everything. Nobody else may do anything.
    """

    owner: int
    group: str | None = None
    groups_of: Callable[[int], Set[str]] = field(default=groups_of)

    def of(self, uid: int) -> frozenset[Permission]:
        """What ``uid`` may do. Looks into the user database when it is not the daemon's own user."""
        if uid in (0, self.owner):
            return EVERYTHING
        if self.group is None:
            return NOTHING
        groups = self.groups_of(uid)
        if f"{self.group}-admin" in groups:
            return EVERYTHING
        return USE if self.group in groups else NOTHING


def listening_socket(path: Path, group: str | None) -> socket.socket:
    """A bound socket at ``path``: 0600, or 0660 and ``group``.

    The caller holds the daemon's lock; a file left by a daemon that died is removed, one that answers is not:
    ControlError ``daemon_already_running``. ConfigError when the folder is not safe.
    """
    gid = None if group is None else _gid(group)
    private_folder(path.parent, gid)
    _clear(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(os.fspath(path))
        if gid is not None:
            os.chown(path, -1, gid)
        path.chmod(0o600 if gid is None else 0o660)
    except BaseException:  # whatever ended it, the socket has no other owner
        listening.close()
        raise
    return listening


def _clear(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(os.fspath(path))
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            path.unlink()
            return
        except TimeoutError:  # somebody listens and is too busy to accept
            pass
    raise ControlError("daemon_already_running", path=path)


def _gid(group: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise ControlError("control_group_missing", group=group) from error
