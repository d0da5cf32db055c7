"""What of a trace is an attempt to reach something beyond the machine's own engines. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ondam.airgap.trace import Call, Trace, plain

Verdict: TypeAlias = Literal["attempt", "configured", "noted"]
"""Tried to get out; reached an engine whose address the user wrote; harmless, and shown."""

Way: TypeAlias = Literal[
    "address", "name_service", "loopback", "family", "abstract", "socket", "resolver", "ring", "interfaces"
]
"""``loopback``: this machine's own address, where a proxy may listen. ``family``: a socket of a family that
is not let be, or of the Internet's and refused. ``resolver``: a service that looks names up, by its socket in
the file system; ``socket``: another program's there. ``ring``: calls through io_uring, which no trace sees.
``interfaces``: netlink, a question to the kernel."""

FAMILY = re.compile(r"^(AF_\w+)")
SOCKADDR = re.compile(r"\{sa_family=(AF_\w+)((?:[^{}\"]|\"(?:[^\"\\]|\\.)*\"|\{[^{}]*\})*)\}")
IPV4 = re.compile(r'inet_addr\("([^"]+)"\)')
IPV6 = re.compile(r'inet_pton\(AF_INET6, "([^"]+)"')
PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
ABSTRACT = re.compile(r'sun_path=@"((?:[^"\\]|\\.)*)"')
NAMED = re.compile(r'sun_path="((?:[^"\\]|\\.)*)"')

REACHING = {"connect", "sendto", "sendmsg", "sendmmsg"}

NAME_PORTS = {53, 853, 5353, 5355}
"""DNS, DNS over TLS, mDNS, LLMNR: wherever such a port is, what is asked there is asked of others."""

RESOLVERS = ("/run/systemd/resolve/", "/run/avahi-daemon/")
"""Services that look names up for others. Not nscd: who asks for a user's name asks it too."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One thing that a process tried to reach, however often."""

    process: str
    program: str
    call: str
    family: str
    address: str
    """``192.0.2.1:53``, a path, ``@name``; empty where the family alone was refused."""
    way: Way
    verdict: Verdict
    outcome: str
    """``ok``, or the error's name."""
    times: int = 1


def attempts(
    trace: Trace,
    name: Callable[[int], str],
    *,
    own: Callable[[str], bool],
    configured: frozenset[tuple[str, int]],
) -> tuple[Attempt, ...]:
    """Everything of ``trace`` that reaches out of its process, alike ones counted, attempts first.

    ``name``: of a thread's process (an engine's, ``daemon``). ``own``: whether a path is a socket of this
    instance. ``configured``: hosts and ports of engines outside; a host that is a name fits every address,
    since the trace has only those.
    """
    found: dict[tuple[str, ...], Attempt] = {}
    for thread, made in trace.calls.items():
        process, program = name(thread), ""
        for call in made:
            for family, address, way in _reached(call):
                if way == "socket" and own(address):
                    continue
                verdict = _verdict(process, way, address, configured)
                outcome = call.error or "ok"
                key = (process, call.name, family, address, way, outcome)
                program = program or trace.program(thread)
                times = found[key].times + 1 if key in found else 1
                found[key] = Attempt(
                    process, program, call.name, family, address, way, verdict, outcome, times
                )
    order = {"attempt": 0, "configured": 1, "noted": 2}
    return tuple(sorted(found.values(), key=lambda one: (order[one.verdict], one.process, one.address)))


def _reached(call: Call) -> Iterator[tuple[str, str, Way]]:
    """Family, address and way of what one call reaches for."""
    if call.name == "io_uring_setup":
        yield "", "", "ring"
    elif call.name == "socket":
        family = found[1] if (found := FAMILY.match(call.arguments)) else call.arguments.partition(",")[0]
        if family in {"AF_NETLINK", "AF_ROUTE"}:
            yield "AF_NETLINK", "", "interfaces"
        elif family not in {"AF_UNIX", "AF_LOCAL"} and (call.error or family not in {"AF_INET", "AF_INET6"}):
            # One of the Internet's that was made is judged by what it is used for.
            yield family, "", "family"
    elif call.name in REACHING:
        for found in SOCKADDR.finditer(call.arguments):
            if (one := _address(found[1], found[2])) is not None:
                yield one


def _address(family: str, rest: str) -> tuple[str, str, Way] | None:
    if family in {"AF_UNIX", "AF_LOCAL"}:
        if abstract := ABSTRACT.search(rest):
            return "AF_UNIX", "@" + plain(abstract[1]), "abstract"
        if named := NAMED.search(rest):
            path = plain(named[1])
            return "AF_UNIX", path, "resolver" if path.startswith(RESOLVERS) else "socket"
        return None
    host = IPV4.search(rest) or IPV6.search(rest)
    if host is None:
        # Netlink's are the kernel's; a connect to AF_UNSPEC lets go of an address.
        return None if family in {"AF_NETLINK", "AF_UNSPEC"} else (family, rest.strip(", "), "family")
    port = int(found[1]) if (found := PORT.search(rest)) else 0
    ip = ipaddress.ip_address(host[1])
    at = f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}"
    if port in NAME_PORTS:
        return family, at, "name_service"
    return family, at, "loopback" if ip.is_loopback else "address"


def _verdict(process: str, way: Way, address: str, configured: frozenset[tuple[str, int]]) -> Verdict:
    if way in {"socket", "interfaces"}:
        return "noted"
    if process == "daemon" and way in {"address", "loopback", "name_service"} and configured:
        host, _, port = address.rpartition(":")
        named = {(_plain_host(known), at) for known, at in configured}
        if (host.strip("[]"), int(port)) in named or ("", int(port)) in named:
            return "configured"
        if way == "name_service" and any(known == "" for known, _ in named):
            return "configured"
    return "attempt"


def _plain_host(host: str) -> str:
    """An address as it is written in a trace; empty for a name, which is any."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return ""
