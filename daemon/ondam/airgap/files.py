"""Which files of a trace lie outside Ondam's folders. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ondam.airgap.trace import Trace

OPENING = {"open", "openat", "openat2", "creat"}

WRITING = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)\b")


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that a process opened."""

    process: str
    path: str
    written: bool


def opened(
    trace: Trace, name: Callable[[int], str], *, own: Sequence[str], system: Sequence[str]
) -> tuple[Opened, ...]:
    """Files that were opened outside the folders ``own``, written ones first, each once.

    What was only read below the folders ``system`` is left out: programs and libraries.
    """
    found: set[Opened] = set()
    for thread, made in trace.calls.items():
        for call in made:
            if call.name not in OPENING or not call.opened.startswith("/") or _below(call.opened, own):
                continue
            written = call.name == "creat" or WRITING.search(call.arguments) is not None
            if written or not _below(call.opened, system):
                found.add(Opened(name(thread), call.opened, written))
    return tuple(sorted(found, key=lambda one: (not one.written, one.path, one.process)))


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
