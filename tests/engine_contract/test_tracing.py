from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine_contract.tracing import opens, outside, strace

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


def test_only_opens_that_succeeded_count() -> None:
    assert opens(TRACE, Path("/m/model.bin")) == 2
    assert opens(TRACE, Path("/저/model.bin")) == 1
    assert opens(TRACE, Path("/m/other.bin")) == 0


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
