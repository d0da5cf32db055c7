"""Who listens where, as the kernel tells it of each process's own network. Linux."""

from __future__ import annotations

import ipaddress
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LISTENS_TCP = "0A"
"""TCP_LISTEN in /proc/net/tcp (net/tcp_states.h)."""

UNCONNECTED_UDP = "07"
"""How a UDP socket that anybody may write to stands in /proc/net/udp."""

ACCEPTS = 0x10000
"""__SO_ACCEPTCON of linux/net.h, in the flags of /proc/net/unix."""


@dataclass(frozen=True, slots=True)
class Listening:
    """A socket that takes connections."""

    process: str
    family: str
    """``unix``, ``tcp``, ``tcp6``, ``udp``, ``udp6``."""
    address: str
    mode: int | None = None
    """Rights of its file; None for one that is no file."""
    configured: bool = False
    """Of a port that the user wished for, and that the daemon of the proof does not open."""

    @property
    def private(self) -> bool:
        """Only the owner, or the group of the folder that it lies in, comes in."""
        return self.family == "unix" and self.mode is not None and not self.mode & 0o007


def listening(processes: Iterable[tuple[int, str]], proc: Path = Path("/proc")) -> tuple[Listening, ...]:
    """Of processes by id and name. One that is gone listens to nothing."""
    found: dict[Listening, None] = {}
    for pid, name in processes:
        there = proc / str(pid)
        try:
            held = _held(there)
            found |= dict.fromkeys(_unix(there, name, held))
            for family in ("tcp", "tcp6", "udp", "udp6"):
                found |= dict.fromkeys(_internet(there, name, family, held))
        except OSError:
            continue  # ended meanwhile
    return tuple(found)


def _held(there: Path) -> set[str]:
    """Inodes of the sockets that a process holds."""
    held = set()
    for descriptor in (there / "fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:
            continue  # closed while we looked
        if match := re.fullmatch(r"socket:\[(\d+)\]", target):
            held.add(match[1])
    return held


def _unix(there: Path, name: str, held: set[str]) -> Iterator[Listening]:
    for line in (there / "net/unix").read_text("utf-8", "replace").splitlines()[1:]:
        _, _, _, flags, _, _, inode, *path = line.split(None, 7)
        if inode in held and int(flags, 16) & ACCEPTS and path:
            yield Listening(name, "unix", path[0], _mode(path[0]))


def _mode(path: str) -> int | None:
    """Rights of a socket, less those that the folder around it takes away."""
    if not path.startswith("/"):
        return None
    try:
        around = Path(path).parent.stat().st_mode
        # One that got another name since it was bound: the folder's rights hold for that as well.
        inside = Path(path).stat().st_mode if Path(path).exists() else 0o777
    except OSError:
        return None
    # Who may not pass the folder cannot reach the file.
    passes = sum(0o7 << shift for shift in (0, 3, 6) if around >> shift & 1)
    return stat.S_IMODE(inside) & passes


def _internet(there: Path, name: str, family: str, held: set[str]) -> Iterator[Listening]:
    file = there / "net" / family
    if not file.exists():
        return
    state = LISTENS_TCP if family.startswith("tcp") else UNCONNECTED_UDP
    for line in file.read_text("ascii", "replace").splitlines()[1:]:
        words = line.split()
        if words[3] == state and words[9] in held:
            yield Listening(name, family, _address(words[1]))


def _address(text: str) -> str:
    """``0100007F:1F90`` (words of 32 bits in the machine's order) as a person writes it."""
    host, _, port = text.partition(":")
    raw = b"".join(struct.pack("=I", int(host[at : at + 8], 16)) for at in range(0, len(host), 8))
    ip = ipaddress.ip_address(raw)
    return f"[{ip}]:{int(port, 16)}" if ip.version == 6 else f"{ip}:{int(port, 16)}"


def family_of(pid: int) -> list[int]:
    """``pid`` and all that it started, those who started before others first."""
    import psutil

    try:
        leader = psutil.Process(pid)
        return [pid, *(child.pid for child in leader.children(recursive=True) if child.pid != os.getpid())]
    except psutil.Error:
        return []
