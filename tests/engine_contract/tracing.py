"""What an engine did, as the trace of ``ondam doctor --air-gap`` shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ondam.airgap import trace
from ondam.airgap.attempts import Attempt, attempts
from ondam.airgap.files import OPENING, WRITING
from ondam.airgap.trace import Call, Trace, plain

NOT_OUTSIDE = {"loopback", "abstract"}
"""Ways that stay in the network of an engine that has a loopback of its own."""

LOCAL = ("AF_UNIX", "AF_LOCAL")

PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')


def strace(into: Path) -> list[str]:
    """Words to put in front of a command: it keeps its own process id, and its parent."""
    # Quickly: a traced engine is not cut off, so no filter refuses what strace is to see.
    return [*trace.command(into), "--seccomp-bpf"]


def reached(found: Trace) -> list[Attempt]:
    """Every attempt at something that is not a socket in the file system."""
    seen = attempts(found, lambda thread: "engine", own=lambda path: False, configured=frozenset())
    return [one for one in seen if one.verdict == "attempt"]


def outside(found: Trace) -> list[Attempt]:
    """Every attempt that would leave a network with nothing but a loopback in it."""
    return [one for one in reached(found) if one.way not in NOT_OUTSIDE]


def sockets(found: Trace) -> list[str]:
    """Every socket of another family than those in the file system, whatever it was for."""
    made = (call.arguments for call in _calls(found) if call.name == "socket")
    return [arguments for arguments in made if not arguments.startswith(LOCAL)]


def opens(found: Trace, path: Path) -> int:
    """How often ``path`` was opened with success, by whatever name."""
    return sum(call.name in OPENING and call.opened == str(path.resolve()) for call in _calls(found))


def opened_to_write(found: Trace, folder: Path) -> set[Path]:
    """What below ``folder`` was to be written, made or cut off, whether that succeeded or not."""
    paths = {
        Path(call.opened or _named(call)).resolve()
        for call in _calls(found)
        if call.name == "creat" or (call.name in OPENING and WRITING.search(call.arguments))
    }
    return {path for path in paths if path.is_relative_to(folder.resolve())}


def _named(call: Call) -> str:
    match = PATH.search(call.arguments)
    return plain(match[1]) if match else ""


def _calls(found: Trace) -> Iterator[Call]:
    for made in found.calls.values():
        yield from made
