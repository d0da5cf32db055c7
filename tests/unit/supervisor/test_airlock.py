"""The filter, run by hand over calls; and real processes that were cut off, on systems that allow it."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ondam.supervisor import airlock
from ondam.supervisor.airlock import FAMILIES, MACHINES, Instruction, program
from ondam.supervisor.isolation import Isolation
from ondam.supervisor.leash import leashed

ALLOW = 0x7FFF0000
NO_FAMILY = 0x00050000 | errno.EAFNOSUPPORT
NO_CALL = 0x00050000 | errno.ENOSYS

INTEL, ARM = MACHINES["x86_64"], MACHINES["aarch64"]


def verdict(code: list[Instruction], audit: int, call: int, argument: int = 0) -> int:
    """What the kernel's interpreter would return for one call."""
    data = struct.pack("<iIQ6Q", call, audit, 0, argument, 0, 0, 0, 0, 0)
    at, register = 0, 0
    while True:
        what, true, false, constant = code[at]
        at += 1
        match what:
            case airlock.LOAD:
                register = struct.unpack_from("<I", data, constant)[0]
            case airlock.EQUAL:
                at += true if register == constant else false
            case airlock.AT_LEAST:
                at += true if register >= constant else false
            case airlock.RETURN:
                return constant
            case _:
                raise AssertionError(what)


@pytest.mark.parametrize(("machine", "socket_call", "write_call"), [(INTEL, 41, 1), (ARM, 198, 64)])
def test_without_a_network_only_unix_sockets_are_made(
    machine: airlock.Machine, socket_call: int, write_call: int
) -> None:
    code = program(machine, FAMILIES["none"])
    assert verdict(code, machine.audit, socket_call, socket.AF_UNIX) == ALLOW
    # Internet, IPv6, netlink, raw packets, virtual machines' sockets, Bluetooth.
    for family in (2, 10, 16, 17, 40, 31):
        assert verdict(code, machine.audit, socket_call, family) == NO_FAMILY, family
    assert verdict(code, machine.audit, write_call, 2) == ALLOW


def test_the_upper_half_of_the_argument_hides_nothing() -> None:
    code = program(INTEL, FAMILIES["none"])
    assert verdict(code, INTEL.audit, 41, 0xFFFF_FFFF_0000_0002) == NO_FAMILY


def test_with_a_loopback_families_that_leave_the_namespace_are_refused() -> None:
    code = program(INTEL, FAMILIES["loopback"])
    assert [verdict(code, INTEL.audit, 41, family) for family in (1, 2, 10, 16)] == [ALLOW] * 4
    assert [verdict(code, INTEL.audit, 41, family) for family in (17, 40, 31)] == [NO_FAMILY] * 3


@pytest.mark.parametrize("machine", [INTEL, ARM])
def test_ways_past_the_filter_are_closed(machine: airlock.Machine) -> None:
    code = program(machine, FAMILIES["none"])
    other = ARM if machine is INTEL else INTEL
    assert verdict(code, machine.audit, 425) == NO_CALL  # io_uring_setup
    assert verdict(code, other.audit, 1) == NO_CALL  # another machine's numbers
    assert verdict(code, INTEL.audit if machine is INTEL else 0x40000028, 0x40000029, 2) == NO_CALL


def test_what_was_found_is_told_in_words_and_read_again() -> None:
    held = Isolation("none", ("namespace", "filter"))
    assert str(held) == "none namespace filter"
    assert Isolation.parse("none namespace filter") == held
    assert [Isolation.parse(text) for text in ("", "all", "none moat")] == [None] * 3


@pytest.mark.parametrize(
    ("told", "closed", "remains"),
    [
        ("none namespace filter", True, ()),
        ("none landlock filter", True, ()),
        ("none filter", True, ("abstract",)),
        ("loopback namespace filter", True, ()),
        ("loopback landlock filter", False, ("network", "abstract")),
        ("none", False, ("network", "abstract")),
        ("open", False, ("network", "abstract")),
    ],
)
def test_what_is_left_open_follows_from_the_means(told: str, closed: bool, remains: tuple[str, ...]) -> None:
    held = Isolation.parse(told)
    assert held is not None
    assert (held.closed, held.remains) == (closed, remains)


TRY = """
import errno, json, os, socket, sys
def tried(family, kind, address=None):
    try:
        with socket.socket(family, kind) as made:
            if address:
                made.connect(address)
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "speculation": status.get("Speculation_Store_Bypass", "").strip(),
    "variable": os.environ.get("ONDAM_NETWORK"),
    "udp": tried(2, socket.SOCK_DGRAM, ("192.0.2.1", 9)),
    "loopback": tried(2, socket.SOCK_STREAM, ("127.0.0.1", 9)),
    "netlink": tried(16, 3), "unix": tried(1, socket.SOCK_STREAM, sys.argv[1]),
    "abstract": tried(1, socket.SOCK_STREAM, "\\0" + sys.argv[2]),
}))
"""

BARE = [sys.executable, "-I", "-S", "-c", TRY]

WITHOUT = """
import os, sys
from ondam.supervisor import airlock
found = airlock.isolate(sys.argv[1], leave_out=sys.argv[2].split())
os.environ["ONDAM_NETWORK"] = " ".join((sys.argv[1], *found))
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Becomes a command on a system that lacks something."""


def told(command: list[str], tmp_path: Path) -> dict[str, str]:
    """What the script saw, while somebody listens on a file's socket and on an abstract one."""
    name = f"ondam-test-{tmp_path.name}-{id(tmp_path)}"
    (tmp_path / "s").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as file, socket.socket(socket.AF_UNIX) as abstract:
        file.bind(str(tmp_path / "s"))
        abstract.bind("\0" + name)
        file.listen()
        abstract.listen()
        done = subprocess.run([*command, str(tmp_path / "s"), name], capture_output=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing of it exists")


@pytest.fixture(scope="module")
def namespaces() -> None:
    """Skips where this system gives nobody a network of his own."""
    how = ["--net"] if os.geteuid() == 0 else ["--user", "--net"]
    try:
        subprocess.run(["unshare", *how, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no namespaces here: {error}")


@linux
@pytest.mark.usefixtures("namespaces")
def test_a_process_without_a_network_reaches_files_sockets_alone(tmp_path: Path) -> None:
    found = told(leashed(BARE, "none"), tmp_path)
    assert found["variable"] == "none namespace filter"
    # A filter costs no speed: processors' mitigations stay as they are for everybody else.
    own = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    assert found.pop("speculation") == own.get("Speculation_Store_Bypass", "").strip()
    refused = dict.fromkeys(("udp", "loopback", "netlink"), "EAFNOSUPPORT")
    assert found == {"variable": found["variable"], **refused, "unix": "ok", "abstract": "ECONNREFUSED"}


@linux
@pytest.mark.usefixtures("namespaces")
def test_a_loopback_is_nobody_elses(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        script = TRY.replace('("127.0.0.1", 9)', f'("127.0.0.1", {listening.getsockname()[1]})')
        found = told(leashed([*BARE[:-1], script], "loopback"), tmp_path)
        assert told([*BARE[:-1], script], tmp_path)["loopback"] == "ok"
    assert found["variable"] == "loopback namespace filter"
    assert (found["loopback"], found["abstract"]) == ("ECONNREFUSED", "ECONNREFUSED")
    assert found["udp"] == "ENETUNREACH"
    assert (found["netlink"], found["unix"]) == ("ok", "ok")


@linux
@pytest.mark.parametrize(
    ("lacking", "variable", "abstract"),
    [("namespace", "none landlock filter", "EPERM"), ("namespace landlock", "none filter", "ok")],
)
def test_where_there_is_no_namespace_abstract_sockets_take_landlock(
    lacking: str, variable: str, abstract: str, tmp_path: Path
) -> None:
    found = told([sys.executable, "-c", WITHOUT, "none", lacking, *BARE], tmp_path)
    if found["variable"] != variable:
        pytest.skip(f"this system gives {found['variable']}")
    assert (found["udp"], found["loopback"], found["unix"]) == ("EAFNOSUPPORT", "EAFNOSUPPORT", "ok")
    assert found["abstract"] == abstract


@linux
def test_what_is_not_cut_off_carries_no_mark(tmp_path: Path) -> None:
    assert told(leashed(BARE), tmp_path)["variable"] is None
