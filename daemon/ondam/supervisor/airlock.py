"""Cuts the calling process, and all that it will ever start, off from every network.

Run by ``leash`` in the process that is about to become an engine. Three means, each taken where the kernel
gives it to an ordinary user (docs/decisions/isolation.md):

- ``namespace``: a network of its own, in which there is nothing, or a loopback that nobody else is on;
- ``filter``: a seccomp filter, under which ``socket()`` knows no address family but those that are needed;
- ``landlock``: where there is no namespace: no abstract Unix sockets of programs outside. The filter cannot
  see addresses, and abstract sockets are bound to no file whose rights could close them.

Sockets in the file system stay: they are how an engine is asked. Loaded without site-packages and at every
start of an engine: the standard library alone, and little of it (``dataclasses`` and ``pathlib`` would take
20 ms).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Network: TypeAlias = Literal["none", "loopback", "open"]
"""What an engine is let have: nothing, a loopback between its own processes, or whatever there is."""

Means: TypeAlias = Literal["namespace", "filter", "landlock"]

VARIABLE = "ONDAM_NETWORK"
"""Set for the engine: what it was to have, and the means that were there: ``none namespace filter``."""

# linux/sched.h
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
# linux/prctl.h, linux/seccomp.h
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_SPEC_ALLOW = 4
"""Before Linux 5.16 a filter without it slows down the program under it, against attacks from within that
program."""
SECCOMP_RET_ALLOW = 0x7FFF0000
SECCOMP_RET_ERRNO = 0x00050000
# linux/landlock.h; the numbers of its calls are the same everywhere
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_RESTRICT_SELF = 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET = 1
SCOPES_SINCE = 6
"""Landlock's version, Linux 6.12."""
# net/if.h, bits/ioctls.h
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
INTERFACE_FLAGS = "16sH14x"
"""struct ifreq: a name and its flags."""

AF_NETLINK = 16
"""Not every platform's Python has the name."""

FAMILIES: dict[Network, tuple[int, ...]] = {
    "none": (socket.AF_UNIX,),
    # Netlink: who asks for the machine's own addresses (NCCL, Gloo, psutil) asks through it.
    "loopback": (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, AF_NETLINK),
}
"""Address families that stay. With a loopback the namespace is what keeps the network out, and the filter
those families that know no namespace (AF_VSOCK, AF_BLUETOOTH, …)."""

IO_URING_SETUP = 425
"""The same everywhere. A ring makes sockets, and connects them, without any call that a filter sees."""

X32_CALLS = 0x40000000
"""Calls from here on are x86-64's third way to make them, under numbers of their own."""


class Machine(NamedTuple):
    """What a filter must know of the processor."""

    audit: int
    """AUDIT_ARCH_… of linux/audit.h."""
    socket: int
    """Number of socket(2): asm/unistd_64.h, asm-generic/unistd.h."""
    seccomp: int
    """Likewise of seccomp(2)."""


MACHINES = {"x86_64": Machine(0xC000003E, 41, 317), "aarch64": Machine(0xC00000B7, 198, 277)}
"""By uname's ``machine``. Elsewhere there is no filter."""

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
"""Of linux/bpf_common.h: BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K."""

CALL_AT, ARCH_AT, FIRST_ARGUMENT_AT = 0, 4, 16
"""In ``struct seccomp_data``. Of an argument's 64 bits the lower half, which comes first on both machines, is
all that the kernel looks at for an ``int``."""

Instruction: TypeAlias = "tuple[int, int, int, int]"
"""Code, how many to skip when true, when false, constant."""


def program(machine: Machine, families: Sequence[int]) -> list[Instruction]:
    """The filter: ``socket()`` of another family fails with EAFNOSUPPORT, as on a kernel that lacks it.

    Rings, and calls made as on another machine (32 bits, x32), fail with ENOSYS: they would go past it.
    """
    allow = (RETURN, 0, 0, SECCOMP_RET_ALLOW)
    unknown = (RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.ENOSYS)
    refused = (RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EAFNOSUPPORT)
    return [
        (LOAD, 0, 0, ARCH_AT),
        (EQUAL, 1, 0, machine.audit),
        unknown,
        (LOAD, 0, 0, CALL_AT),
        (AT_LEAST, 1, 0, X32_CALLS),
        (EQUAL, 0, 1, IO_URING_SETUP),
        unknown,
        (EQUAL, 1, 0, machine.socket),
        allow,
        (LOAD, 0, 0, FIRST_ARGUMENT_AT),
        *((EQUAL, len(families) - number, 0, family) for number, family in enumerate(families)),
        refused,
        allow,
    ]


def closed(network: Network, means: Sequence[Means]) -> bool:
    """Whether ``means`` leave no network of the machine's to who was to have ``network``."""
    return "namespace" in means or (network == "none" and "filter" in means)


def isolate(network: Network, *, leave_out: Sequence[Means] = ()) -> tuple[Means, ...]:
    """Cut this process off, for ever. Returns the means that were there.

    The process must have one thread. ``leave_out``: what to do without, as on a machine that lacks it.
    """
    if network == "open" or sys.platform != "linux":
        return ()
    found: list[Means] = []
    libc = ctypes.CDLL(None, use_errno=True)
    _wake_the_card()
    if "namespace" not in leave_out and _possible(libc, network):
        _own_network(libc, network)
        found.append("namespace")
    # What follows is open to everybody who gives up set-user-id programs for good.
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return tuple(found)
    if "landlock" not in leave_out and "namespace" not in found and _scope(libc):
        found.append("landlock")
    if "filter" not in leave_out and _filter(libc, FAMILIES[network]):
        found.append("filter")
    return tuple(found)


def _possible(libc: ctypes.CDLL, network: Network) -> bool:
    """Whether all steps to a network of its own succeed, tried in a child: half is worse than none."""
    child = os.fork()
    if child == 0:
        try:
            _own_network(libc, network)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _own_network(libc: ctypes.CDLL, network: Network) -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        # In a user namespace root could read no file that belongs to others any more.
        _checked(libc.unshare(CLONE_NEWNET))
    else:
        # In one call, so that a system that allows only the first leaves us as we were.
        _checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET))
        _write("setgroups", "deny")
        _write("uid_map", f"{user} {user} 1")
        _write("gid_map", f"{group} {group} 1")
    if network == "loopback":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            now = fcntl.ioctl(asked, SIOCGIFFLAGS, struct.pack(INTERFACE_FLAGS, b"lo", 0))
            flags = struct.unpack(INTERFACE_FLAGS, now)[1] | IFF_UP
            fcntl.ioctl(asked, SIOCSIFFLAGS, struct.pack(INTERFACE_FLAGS, b"lo", flags))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _write(name: str, text: str) -> None:
    file = os.open(f"/proc/self/{name}", os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _filter(libc: ctypes.CDLL, families: Sequence[int]) -> bool:
    machine = MACHINES.get(os.uname().machine)
    if machine is None or sys.maxsize < 2**32:
        return False
    code = b"".join(struct.pack("HBBI", *one) for one in program(machine, families))
    kept = ctypes.create_string_buffer(code)
    # struct sock_fprog: how many instructions, and where.
    whole = struct.pack("HP", len(code) // 8, ctypes.addressof(kept))
    flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW
    return bool(libc.syscall(machine.seccomp, SECCOMP_SET_MODE_FILTER, flags, whole) == 0)


def _scope(libc: ctypes.CDLL) -> bool:
    if libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION) < SCOPES_SINCE:
        return False
    # struct landlock_ruleset_attr: no file and no port is handled, one scope.
    asked = struct.pack("QQQ", 0, 0, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET)
    ruleset = libc.syscall(LANDLOCK_CREATE_RULESET, asked, len(asked), 0)
    if ruleset < 0:
        return False
    try:
        return bool(libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _wake_the_card() -> None:
    """Let NVIDIA's driver make the device that CUDA computes through, while set-user-id programs still work.

    CUDA starts ``nvidia-modprobe`` for it, which must be root; afterwards it could not.
    """
    if os.access("/proc/driver/nvidia", os.F_OK) and not os.access("/dev/nvidia-uvm", os.F_OK):
        # Late: hardly ever needed, and slow to load.
        import shutil
        import subprocess

        tool = shutil.which("nvidia-modprobe")
        if tool:
            with contextlib.suppress(OSError, subprocess.SubprocessError):  # CUDA will say what is missing
                subprocess.run([tool, "-u", "-c=0"], check=False, timeout=10, stdin=subprocess.DEVNULL)
