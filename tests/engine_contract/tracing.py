"""What a process did, as strace saw it."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

ADDRESS = re.compile(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"')
OPENED = re.compile(r'^(?:\d+ +)?open(?:at|at2)?\((?:AT_FDCWD, |\d+[^,]*, )?"((?:[^"\\]|\\.)*)".* = \d+')
TO_WRITE = re.compile(
    r'^(?:\d+ +)?open(?:at|at2)?\((?:AT_FDCWD, |\d+[^,]*, )?"((?:[^"\\]|\\.)*)", '
    r"[^)]*O_(?:WRONLY|RDWR|CREAT|TRUNC)"
)
CALL = re.compile(r"^(?:\d+ +)?(connect|sendto|sendmsg|sendmmsg)\(")

OTHER_FAMILY = re.compile(r"^(?:\d+ +)?socket\((?!AF_UNIX|AF_LOCAL)")
ABSTRACT = re.compile(r'^(?:\d+ +)?(?:connect|sendto|sendmsg|sendmmsg)\(.*sun_path=@"')


def strace(output: Path) -> list[str]:
    """Words to put in front of a command: it keeps its own process id, and its parent."""
    calls = "open,openat,openat2,socket,connect,sendto,sendmsg,sendmmsg"
    return [
        "strace",
        "-D",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-s",
        "4096",
        "-e",
        f"trace={calls}",
        "-o",
        str(output),
    ]


def outside(trace: str) -> list[str]:
    """Every attempt at an address that is not this machine's own."""
    return [
        line
        for line in trace.splitlines()
        if CALL.match(line)
        and any(not ipaddress.ip_address(v4 or v6).is_loopback for v4, v6 in ADDRESS.findall(line))
    ]


def sockets(trace: str) -> list[str]:
    """Every socket that is none in the file system: of another family, or abstract."""
    return [line for line in trace.splitlines() if OTHER_FAMILY.match(line) or ABSTRACT.match(line)]


def opens(trace: str, path: Path) -> int:
    """How often ``path`` was opened with success."""
    found = (OPENED.match(line) for line in trace.splitlines())
    return sum(match is not None and Path(_plain(match[1])) == path for match in found)


def opened_to_write(trace: str, folder: Path) -> set[Path]:
    """What below ``folder`` was to be written, made or cut off, whether that succeeded or not."""
    found = (TO_WRITE.match(line) for line in trace.splitlines())
    paths = {Path(_plain(match[1])) for match in found if match is not None}
    return {path for path in paths if path.is_relative_to(folder)}


def _plain(text: str) -> str:
    """strace writes bytes that are no ASCII in octal."""
    octal = re.sub(
        rb"\\([0-7]{1,3})", lambda match: bytes([int(match[1], 8)]), text.encode("ascii", "backslashreplace")
    )
    return octal.decode("utf-8", "surrogateescape")
