from __future__ import annotations

from ondam.airgap.attempts import Attempt, attempts
from ondam.airgap.files import Opened, opened
from ondam.airgap.trace import Call, Trace, calls, plain

# ruff: noqa: E501 (strace's lines)

DAEMON = r"""
execve("/usr/bin/python3", ["/usr/bin/python3", "-m", "ondam", "up"], 0x7ffd /* 60 vars */) = 0
clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f1) = 20
clone3({flags=CLONE_VM|CLONE_THREAD, child_tid=0x7f}, 88) = 11
socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3</run/x>
connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/run/ondam-1/engine-ear.sock"}, 110) = 0
connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file or directory)
socket(AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_ROUTE) = 4<socket:[2]>
openat(AT_FDCWD</home/x>, "\354\240\200/a.toml", O_RDONLY|O_CLOEXEC) = 5</home/x/\354\240\200/a.toml>
openat(AT_FDCWD</home/x>, "/tmp/leak", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 5</tmp/leak>
openat(AT_FDCWD</home/x>, "/etc/none", O_RDONLY) = -1 ENOENT (No such file or directory)
openat(AT_FDCWD</home/x>, "/usr/lib/a.so", O_RDONLY) = 6</usr/lib/a.so>
openat(AT_FDCWD</home/x>, "/run/ondam-1/x", O_RDWR) = 6</run/ondam-1/x>
+++ exited with 0 +++
"""

ENGINE = r"""
execve("/e/bin/python", ["/e/bin/python", "-P", "-m", "ondam_engines.ear.serve"], 0x5 /* 60 vars */) = 0
clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 21
socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = -1 EAFNOSUPPORT (Address family not supported by protocol)
socket(AF_INET6, SOCK_STREAM, IPPROTO_IP) = 7<socket:[5]>
"""

THREAD = r"""
connect(7<socket:[5]>, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "2001:db8::1", &sin6_addr), sin6_scope_id=0}, 28) = -1 ENETUNREACH (Network is unreachable)
sendto(8<socket:[6]>, "x{sa_family", 11, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16) = 11
sendmmsg(9<socket:[7]>, [{msg_hdr={msg_name={sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("192.0.2.1")}, msg_namelen=16, msg_iov=[{iov_base="x", iov_len=1}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=1}], 1, 0) = 1
connect(7<socket:[5]>, {sa_family=AF_INET, sin_port=htons(3128), sin_addr=inet_addr("127.0.0.1")}, 16) = -1 EINPROGRESS (Operation now in progress)
connect(7<socket:[5]>, {sa_family=AF_UNIX, sun_path=@"dbus-1"}, 110) = -1 ECONNREFUSED (Connection refused)
connect(7<socket:[5]>, {sa_family=AF_UNIX, sun_path=@"dbus-1"}, 110) = -1 ECONNREFUSED (Connection refused)
connect(7<socket:[5]>, {sa_family=AF_UNSPEC, sa_data="\0\0"}, 16) = 0
socket(AF_VSOCK, SOCK_STREAM, 0) = 10<socket:[8]>
"""

TRACE = Trace.of(
    {
        number: tuple(calls(text.strip().splitlines()))
        for number, text in ((10, DAEMON), (20, ENGINE), (21, THREAD))
    }
)


def name(thread: int) -> str:
    known = {10: "daemon", 20: "ear"}
    return next(known[one] for one in TRACE.ancestors(thread) if one in known)


def found(configured: frozenset[tuple[str, int]] = frozenset()) -> tuple[Attempt, ...]:
    return attempts(TRACE, name, own=lambda path: path.startswith("/run/ondam-1/"), configured=configured)


def test_each_line_is_a_call_with_what_it_came_to() -> None:
    (one,) = calls(['connect(3, {sa_family=AF_UNIX, sun_path="/a(b) = c"}, 110) = -1 ENOENT (No such file)'])
    assert one == Call("connect", '3, {sa_family=AF_UNIX, sun_path="/a(b) = c"}, 110', "ENOENT", -1)
    (killed,) = calls(["connect(3, {sa_family=AF_INET} <unfinished ...>) = ?"])
    assert (killed.error, killed.result) == ("", None)
    assert plain(r"/\354\240\200") == "/저"
    assert plain(r"/a\n\t\"\\\76") == '/a\n\t"\\>'


def test_nothing_that_is_sent_or_opened_can_look_like_the_end_of_its_line() -> None:
    to = '{sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("192.0.2.1")}'
    lines = [
        f'sendto(3<socket:[12]>, "v = 5\\"; w) = 0", 12, 0, {to}, 16) = 12',
        r'openat(AT_FDCWD</home/a \"b = 7>, "c = 1", O_WRONLY|O_CREAT, 0666) = 3</home/a \"b = 7/c = 1>',
    ]
    sent, wrote = calls(lines)
    trace = Trace.of({1: (sent, wrote)})
    (one,) = attempts(trace, lambda thread: "ear", own=lambda path: False, configured=frozenset())
    assert (one.address, one.way, one.verdict, sent.result) == ("192.0.2.1:9", "address", "attempt", 12)
    seen = opened(trace, lambda thread: "ear", own=(), system=())
    assert seen == (Opened("ear", '/home/a "b = 7/c = 1', written=True),)


def test_threads_belong_to_who_started_them() -> None:
    assert [name(thread) for thread in (10, 20, 21)] == ["daemon", "ear", "ear"]
    assert TRACE.program(21) == "python ondam_engines.ear.serve"
    assert TRACE.program(10) == "python3 ondam up"


def test_every_way_out_is_an_attempt_and_alike_ones_are_counted() -> None:
    seen = {(one.way, one.address, one.outcome, one.times) for one in found() if one.verdict == "attempt"}
    assert seen == {
        ("family", "", "EAFNOSUPPORT", 1),
        ("family", "", "ok", 1),
        ("address", "[2001:db8::1]:443", "ENETUNREACH", 1),
        ("name_service", "127.0.0.53:53", "ok", 1),
        ("address", "192.0.2.1:9", "ok", 1),
        ("loopback", "127.0.0.1:3128", "EINPROGRESS", 1),
        ("abstract", "@dbus-1", "ECONNREFUSED", 2),
    }
    assert {one.process for one in found() if one.verdict == "attempt"} == {"ear"}


def test_own_sockets_are_nothing_and_other_programs_are_noted() -> None:
    noted = [(one.process, one.way, one.address) for one in found() if one.verdict == "noted"]
    assert noted == [("daemon", "interfaces", ""), ("daemon", "socket", "/var/run/nscd/socket")]


def test_a_configured_address_is_the_daemons_alone() -> None:
    to_rack = 'connect(3, {sa_family=AF_INET, sin_port=htons(8000), sin_addr=inet_addr("192.0.2.7")}, 16) = 0'
    trace = Trace.of({10: tuple(calls([to_rack])), 20: tuple(calls([to_rack]))})
    both = attempts(
        trace, {10: "daemon", 20: "ear"}.__getitem__, own=lambda path: False,
        configured=frozenset({("192.0.2.7", 8000)}),
    )  # fmt: skip
    assert [(one.process, one.verdict) for one in both] == [("ear", "attempt"), ("daemon", "configured")]


def test_files_are_told_by_whose_folder_they_are_in() -> None:
    seen = opened(TRACE, name, own=("/run/ondam-1", "/home/x"), system=("/usr", "/lib"))
    assert seen == (Opened("daemon", "/tmp/leak", written=True),)
