"""Nothing leaves the machine: the demo without a network, and no attempt at another address under strace."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.house import prepared_data

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

ADDRESS = re.compile(r'sa_family=AF_INET6?,.*?(?:inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")')


def demo(home: Path, *prefix: str, turns: int = 1) -> Any:
    (home / "data").symlink_to(prepared_data())
    command = [sys.executable, "-m", "ondam", "demo", "--language", "en", "--quiet", "--json"]
    done = subprocess.run(
        [*prefix, *command, "--turns", str(turns), "--out", str(home / "answer.wav")],
        env={**os.environ, "ONDAM_HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def outside(line: str) -> bool:
    found = ADDRESS.search(line)
    if not found:
        return False
    address = found[1] or found[2]
    return not (address.startswith("127.") or address == "::1")


def test_the_lines_of_strace_are_understood() -> None:
    head = "12 connect(3, {sa_family="
    assert outside(head + 'AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.0.0.1")}, 16) = 0')
    assert outside(
        head + "AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), "
        'inet_pton(AF_INET6, "2001:db8::1", &sin6_addr), sin6_scope_id=0}, 28) = -1 ENETUNREACH'
    )
    assert not outside(head + 'AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0')
    assert not outside(head + 'AF_UNIX, sun_path="/tmp/x.sock"}, 110) = 0')


def test_the_whole_demo_runs_with_nothing_but_loopback(tmp_path: Path) -> None:
    script = 'ip link set lo up; exec "$@"'
    result = demo(tmp_path, "unshare", "--net", "--", "sh", "-c", script, "sh")
    (turn,) = result["turns"]
    assert turn["outcome"] == "answered"


def test_no_process_attempts_to_reach_another_address(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    # Two turns take over 12 s: some libraries try only some time after their start.
    demo(
        tmp_path, "strace", "--follow-forks", "--quiet=all", "--trace=connect,sendto,sendmsg,sendmmsg",
        f"--output={trace}", turns=3,
    )  # fmt: skip
    lines = trace.read_text("utf-8", "replace").splitlines()
    assert any("sun_path" in line for line in lines), "strace saw nothing at all"
    assert [line for line in lines if outside(line)] == []
