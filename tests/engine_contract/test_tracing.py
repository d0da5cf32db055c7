from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine_contract.tracing import opened_to_write, opens, outside, reached, sockets, strace

from ondam.airgap.trace import Trace, calls

# ruff: noqa: E501 (strace's lines)

TRACE = r"""
connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/run/x.sock"}, 110) = 0
connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0
connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path=@"bus"}, 110) = 0
connect(4<socket:[2]>, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16) = 0
sendto(5<socket:[3]>, "x", 1, 0, {sa_family=AF_INET6, sin6_port=htons(9), inet_pton(AF_INET6, "2001:db8::1", &sin6_addr)}, 28) = 1
io_uring_setup(8, {flags=0}) = 6<anon_inode:[io_uring]>
openat(AT_FDCWD</x>, "/m/model.bin", O_RDONLY|O_CLOEXEC) = 7</m/model.bin>
openat(AT_FDCWD</x>, "/m/model.bin", O_RDONLY) = -1 ENOENT (No such file or directory)
openat(AT_FDCWD</x>, "/m/model.bin.json", O_RDONLY) = 8</m/model.bin.json>
open("/link/model.bin", O_RDONLY) = 9</m/model.bin>
openat(AT_FDCWD</x>, "/\354\240\200/model.bin", O_RDONLY) = 9</\354\240\200/model.bin>
"""


def made(text: str) -> Trace:
    return Trace.of({1: tuple(calls(text.strip().splitlines()))})


def test_other_machines_name_servers_and_rings_are_outside_and_a_loopback_is_not() -> None:
    assert [(one.call, one.way) for one in outside(made(TRACE))] == [
        ("io_uring_setup", "ring"),
        ("connect", "name_service"),
        ("sendto", "address"),
    ]
    assert {one.way for one in reached(made(TRACE))} == {
        "ring", "name_service", "address", "loopback", "abstract",
    }  # fmt: skip


def test_sockets_of_other_families_count_whatever_they_are_for() -> None:
    found = made("""
socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3<socket:[1]>
socket(AF_INET, SOCK_DGRAM, IPPROTO_IP) = -1 EAFNOSUPPORT (Address family not supported by protocol)
socket(AF_INET6, SOCK_STREAM, IPPROTO_IP) = 4<socket:[2]>
socket(AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_ROUTE) = 5<socket:[3]>
""")
    assert [arguments.split(",")[0] for arguments in sockets(found)] == ["AF_INET", "AF_INET6", "AF_NETLINK"]
    assert sockets(made(TRACE)) == []


def test_only_opens_that_succeeded_count() -> None:
    assert opens(made(TRACE), Path("/m/model.bin")) == 2
    assert opens(made(TRACE), Path("/저/model.bin")) == 1
    assert opens(made(TRACE), Path("/m/other.bin")) == 0


def test_opens_to_write_count_whether_they_succeed_or_not() -> None:
    found = made(r"""
openat(AT_FDCWD</x>, "/m/a", O_RDONLY|O_CLOEXEC) = 7</m/a>
openat(AT_FDCWD</x>, "/m/b", O_RDWR) = -1 EROFS (Read-only file system)
openat(AT_FDCWD</x>, "/m/c", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666) = 8</m/c>
openat2(AT_FDCWD</x>, "/m/d", {flags=O_WRONLY, resolve=0}, 24) = 9</m/d>
creat("/m/e", 0600) = 10</m/e>
openat(AT_FDCWD</x>, "/elsewhere", O_WRONLY) = 9</elsewhere>
""")
    assert opened_to_write(found, Path("/m")) == {Path("/m/b"), Path("/m/c"), Path("/m/d"), Path("/m/e")}


@pytest.mark.engines
def test_an_attempt_and_an_open_of_a_real_process_are_seen(tmp_path: Path) -> None:
    # A UDP connect sends nothing; 192.0.2.0/24 is nobody's (RFC 5737).
    script = (
        "import socket, sys; open(sys.argv[1]).close();"
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    )
    file = tmp_path / "가 file"
    file.touch()
    with subprocess.Popen([*strace(tmp_path), sys.executable, "-c", script, str(file)]) as process:
        process.wait()
    found = Trace.read(tmp_path)
    assert [(one.way, one.address) for one in outside(found)] == [("address", "192.0.2.1:9")]
    assert process.returncode == 0 or outside(found)[0].outcome == "ENETUNREACH"
    assert opens(found, file) == 1
