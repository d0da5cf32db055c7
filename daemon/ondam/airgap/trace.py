"""What strace wrote, one file for each thread (``--output-separately``), read back as calls.

One for each, because the lines of several threads in one file interrupt one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

CALLS = (
    "socket,connect,bind,listen,sendto,sendmsg,sendmmsg,io_uring_setup,"
    "open,openat,openat2,creat,execve,clone,clone3,fork,vfork"
)
"""What is looked at: ways out, files, and who started whom."""

LINE = re.compile(
    r'^(?P<name>\w+)\((?P<arguments>(?>"(?:[^"\\]|\\.)*"|<(?:[^<>\\]|\\.)*>|\\.|[^"])*?)\)?'
    + r" *= (?P<result>-?\d+|\?)(?P<more>.*)$"
)
"""Strings and paths are passed over as wholes: in them anything may stand, also `` = 5``."""

ESCAPED = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}

OPENED_AS = re.compile(r"^<(.*)>$")


def command(into: Path, strace: str = "strace") -> list[str]:
    """Words to put in front of a command: it and all that it starts is watched, and written below ``into``.

    Every call stops, watched or not: strace's quick way (``--seccomp-bpf``) would not see what the engines'
    own filter refuses, which is decided first.
    """
    # -D: the command stays our child, and strace becomes the stranger. ?: where the machine has such a call.
    calls = ",".join(f"?{name}" for name in CALLS.split(","))
    return [
        strace, "-D", "--follow-forks", "--output-separately", "--quiet=all", "--string-limit=64",
        "--decode-fds=path", f"--trace={calls}", f"--output={into / 'trace'}",
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One system call that returned."""

    name: str
    arguments: str
    """As strace writes them."""
    error: str
    """``ENETUNREACH``; empty where it succeeded."""
    result: int | None = None
    opened: str = ""
    """Path of the descriptor that it returned."""


def calls(lines: Iterable[str]) -> Iterator[Call]:
    """Of one thread's file. What never returned (its thread was killed in it) counts as done."""
    for line in lines:
        if (found := LINE.match(line)) is None:
            continue
        more = found["more"].strip()
        result = None if found["result"] == "?" else int(found["result"])
        error = more.split(" ", 1)[0] if result == -1 else ""
        path = OPENED_AS.match(more)
        yield Call(found["name"], found["arguments"], error, result, plain(path[1]) if path else "")


def plain(text: str) -> str:
    """A path as it is: strace writes bytes that are no ASCII in octal, and some others as C does."""
    raw = ESCAPED.sub(_byte, text.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def _byte(escaped: re.Match[bytes]) -> bytes:
    told = escaped[1]
    return bytes([int(told, 8) & 255]) if told.isdigit() else LETTERS.get(told, told)


@dataclass(frozen=True, slots=True)
class Trace:
    """All threads: what each called, and who started it."""

    calls: Mapping[int, tuple[Call, ...]]
    parents: Mapping[int, int]

    @classmethod
    def read(cls, folder: Path) -> Trace:
        """What was written below ``folder``. Raises OSError."""
        found = {}
        for file in folder.glob("trace.*"):
            with file.open(encoding="utf-8", errors="replace") as lines:
                found[int(file.suffix[1:])] = tuple(calls(lines))
        return cls.of(found)

    @classmethod
    def of(cls, found: Mapping[int, tuple[Call, ...]]) -> Trace:
        """From each thread's calls."""
        starts = {"clone", "clone3", "fork", "vfork"}
        parents = {
            call.result: thread
            for thread, made in found.items()
            for call in made
            if call.name in starts and call.result is not None and call.result > 0
        }
        return cls(found, parents)

    def ancestors(self, thread: int) -> Iterator[int]:
        """It, who started it, and so on."""
        seen: set[int] = set()
        at: int | None = thread
        while at is not None and at not in seen:
            seen.add(at)
            yield at
            at = self.parents.get(at)

    def program(self, thread: int) -> str:
        """The program that it, or who started it, became: its last words are what a person knows it by."""
        for each in self.ancestors(thread):
            for call in reversed(self.calls.get(each, ())):
                if call.name == "execve" and not call.error:
                    return _words(call.arguments)
        return "?"


def _words(arguments: str) -> str:
    words = [plain(word) for word in re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)]
    # execve("/program", ["argv 0", …], 0x… /* n vars */): the first is argv 0's longer name.
    named = [Path(words[0]).name, *words[2:]] if words else ["?"]
    return " ".join(word for word in named if not word.startswith("-"))[:80]
