"""What keeps an engine from the network, as the kernel shows it. How it came about: ``airlock``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from ondam.supervisor import airlock
from ondam.supervisor.airlock import VARIABLE, Means, Network

Remains: TypeAlias = Literal["network", "abstract"]
"""The machine's network; abstract Unix sockets of other programs, which no file's rights close."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """What keeps one engine from the network."""

    network: Network
    """What it was to have."""
    means: tuple[Means, ...] = ()

    @property
    def closed(self) -> bool:
        """No network of the machine's is open to it."""
        return airlock.closed(self.network, self.means)

    @property
    def remains(self) -> tuple[Remains, ...]:
        """What is open all the same."""
        if not self.closed:
            return ("network", "abstract")
        return () if {"namespace", "landlock"} & set(self.means) else ("abstract",)

    def __str__(self) -> str:
        return " ".join((self.network, *self.means))

    @classmethod
    def parse(cls, text: str) -> Isolation | None:
        """The reverse of ``str``; None when ``text`` is something else."""
        network, *means = text.split() or [""]
        if network not in get_args(Network) or set(means) - set(get_args(Means)):
            return None
        return cls(network, tuple(means))  # type: ignore[arg-type]  # checked in the line above


def isolation_of(pid: int, proc: Path = Path("/proc")) -> Isolation | None:
    """What holds the process ``pid``. None: gone, not ours to see, or nobody was to cut it off.

    What stands in its environment is believed as far as the kernel shows the same. What Landlock does, the
    kernel shows to nobody.
    """
    there, here = proc / str(pid), proc / "self"
    try:
        entries = (there / "environ").read_bytes().split(b"\0")
        said = [entry.partition(b"=")[2] for entry in entries if entry.startswith(f"{VARIABLE}=".encode())]
        claimed = Isolation.parse(said[0].decode("ascii", "replace")) if said else None
        if claimed is None:
            return None
        seen = {*_seen(there, here), "landlock"}
    except OSError:
        return None
    return Isolation(claimed.network, tuple(means for means in claimed.means if means in seen))


def _seen(there: Path, here: Path) -> Iterator[Means]:
    if (there / "ns/net").readlink() != (here / "ns/net").readlink():
        yield "namespace"
    if _filters(there) > _filters(here):
        yield "filter"


def _filters(process: Path) -> int:
    """How many seccomp filters it has: a daemon under systemd has some itself. Before Linux 5.9: 0 or 2."""
    lines = (process / "status").read_text(encoding="ascii", errors="replace").splitlines()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(found.get("Seccomp_filters", found.get("Seccomp", "0")))
