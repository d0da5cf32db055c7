from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine_contract.tracing import opened_to_write, opens, outside, sockets, strace

TRACE = r"""
12 connect(3, {sa_family=AF_UNIX, sun_path="/run/x.sock"}, 110) = 0
12 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0
12 connect(3, {sa_family=AF_INET6, sin6_port=htons(80), inet_pton(AF_INET6, "::1", &sin6_addr)}, 28) = 0
12 connect(4, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("192.0.2.1")}, 16) = 0
13 sendto(5, "x", 1, 0, {sa_family=AF_INET6, inet_pton(AF_INET6, "2001:db8::1", &sin6_addr)}, 28) = 1
14 openat(AT_FDCWD, "/m/model.bin", O_RDONLY|O_CLOEXEC) = 7
14 openat(AT_FDCWD, "/m/model.bin", O_RDONLY) = -1 ENOENT (No such file or directory)
14 openat(AT_FDCWD, "/m/model.bin.json", O_RDONLY) = 8
14 open("/m/model.bin", O_RDONLY) = 9
14 openat(AT_FDCWD, "/\354\240\200/model.bin", O_RDONLY) = 9
"""


def test_only_attempts_at_other_machines_count() -> None:
    assert [line.split("(")[0] for line in outside(TRACE)] == ["12 connect", "13 sendto"]


def test_sockets_of_other_families_and_abstract_ones_count() -> None:
    made = """
12 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3
12 socket(AF_INET, SOCK_DGRAM, IPPROTO_IP) = -1 EAFNOSUPPORT (Address family not supported by protocol)
12 socket(AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_ROUTE <unfinished ...>
12 connect(3, {sa_family=AF_UNIX, sun_path=@"bus"}, 110) = 0
"""
    assert [line.split(",")[0] for line in sockets(made)] == [
        "12 socket(AF_INET", "12 socket(AF_NETLINK", "12 connect(3",
    ]  # fmt: skip
    assert sockets(TRACE) == []


def test_only_opens_that_succeeded_count() -> None:
    assert opens(TRACE, Path("/m/model.bin")) == 2
    assert opens(TRACE, Path("/저/model.bin")) == 1
    assert opens(TRACE, Path("/m/other.bin")) == 0


def test_opens_to_write_count_whether_they_succeed_or_not() -> None:
    made = r"""
14 openat(AT_FDCWD, "/m/a", O_RDONLY|O_CLOEXEC) = 7
14 openat(AT_FDCWD, "/m/b", O_RDWR) = -1 EROFS (Read-only file system)
14 openat(AT_FDCWD, "/m/c", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666 <unfinished ...>
14 openat2(AT_FDCWD, "/m/d", {flags=O_WRONLY, resolve=0}, 24) = 9
14 openat(AT_FDCWD, "/elsewhere", O_WRONLY) = 9
"""
    assert opened_to_write(made, Path("/m")) == {Path("/m/b"), Path("/m/c"), Path("/m/d")}


@pytest.mark.engines
def test_an_attempt_and_an_open_of_a_real_process_are_seen(tmp_path: Path) -> None:
    # A UDP connect sends nothing; 192.0.2.0/24 is nobody's (RFC 5737).
    script = (
        "import socket, sys; open(sys.argv[1]).close();"
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    )
    file = tmp_path / "가 file"
    file.touch()
    trace = tmp_path / "trace"
    with subprocess.Popen([*strace(trace), sys.executable, "-c", script, str(file)]) as process:
        process.wait()
        assert process.returncode == 0 or "Network is unreachable" in trace.read_text()
    assert len(outside(trace.read_text())) == 1
    assert opens(trace.read_text(), file) == 1
