"""Which wheels an environment of the target needs: from its lock, for a machine that need not be this one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename
from unearth.fetchers import PyPIClient
from unearth.link import Link

from ondam.deploy.bundle_manifest import Target
from ondam.errors import BundleError
from ondam.models.registry import Registry
from ondam.models.wheels import offered

AT_ONCE = 8
"""Pages of an index asked for side by side: they are small."""

LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
"""Names that manylinux had before it was numbered by glibc (PEP 600)."""

OLDEST_GLIBC = 5
"""2.5: of the oldest manylinux."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """One line of a lock."""

    name: str
    version: str
    hashes: frozenset[str]
    """SHA-256 of every file that will do."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The file that is carried for it."""

    pinned: Pinned
    filename: str
    sha256: str
    size: int | None
    """Bytes; None where no place told."""

    @property
    def compiled(self) -> bool:
        """Whether it is a source that has to be built."""
        return not self.filename.endswith(".whl")


def pinned(lock: str, target: Target) -> list[Pinned]:
    """Lines of a lock that hold for ``target``."""
    wanted = []
    environment = marker_environment(target)
    for line in lock.replace("\\\n", " ").splitlines():
        said = line.partition(" #")[0].strip()
        if not said or said.startswith(("#", "-")):
            continue
        requirement = Requirement(said.partition(" --hash")[0].strip())
        if requirement.marker is None or requirement.marker.evaluate(dict(environment)):
            (specifier,) = requirement.specifier
            hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", said)
            wanted.append(Pinned(requirement.name, specifier.version, frozenset(hashes)))
    return wanted


def marker_environment(target: Target) -> dict[str, str]:
    """What environment markers see there."""
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{target.python}.0",
        "os_name": "nt" if target.system == "win32" else "posix",
        "platform_machine": target.machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(target.system, ""),
        "platform_version": "",
        "python_full_version": f"{target.python}.0",
        "python_version": target.python,
        "sys_platform": target.system,
        "extra": "",
    }


def tags(target: Target, glibc: str) -> list[Tag]:
    """What a wheel may be built for, the best first; up to this ``glibc``."""
    major, minor = map(int, target.python.split("."))
    newest = int(glibc.split(".")[1])
    platforms = []
    for number in range(newest, OLDEST_GLIBC - 1, -1):
        platforms.append(f"manylinux_2_{number}_{target.machine}")
        if (2, number) in LEGACY:
            platforms.append(f"{LEGACY[2, number]}_{target.machine}")
    platforms.append(f"linux_{target.machine}")
    interpreter = f"cp{major}{minor}"
    return [
        *cpython_tags((major, minor), platforms=platforms),
        *compatible_tags((major, minor), interpreter, platforms),
    ]


def glibc_of(filenames: Iterable[str], compiled_with: str | None = None) -> str | None:
    """The lowest glibc that all of these wheels run with.

    A wheel that names none (``linux_x86_64``) was compiled with ``compiled_with``.
    """
    needed = []
    for filename in filenames:
        numbers = [
            number
            for tag in parse_wheel_filename(filename)[3]
            if (number := _glibc(tag.platform, compiled_with))
        ]
        if numbers:
            needed.append(min(numbers))
    return f"2.{max(needed)}" if needed else None


def choose(
    wanted: Sequence[Pinned], ranked: Sequence[Tag], registry: Registry, client: PyPIClient, notes: Path
) -> list[Choice]:
    """A file for each: the best wheel, else the source. ``notes``: what was chosen before; not asked again.

    Raises BundleError where there is nothing for the target; ModelError where no place answers.
    """
    known = _read(notes)
    rank = {tag: number for number, tag in enumerate(ranked)}
    key = f"{ranked[0]}"

    def one(pin: Pinned) -> Choice:
        noted = known.get(f"{pin.name}=={pin.version} {key}")
        if noted and noted[1] in pin.hashes:
            return Choice(pin, *noted)
        links = [link for link in offered(pin.name, pin.version, registry, client) if _sha256(link, pin)]
        best = min(
            ((number, link) for link in links if (number := _rank(link, rank)) is not None),
            key=lambda pair: pair[0],
            default=None,
        )
        sources = [link for link in links if link.filename.endswith((".tar.gz", ".zip"))]
        if best is None and not sources:
            raise BundleError("bundle_no_wheel", package=f"{pin.name} {pin.version}", target=key)
        link = best[1] if best else sources[0]
        return Choice(pin, link.filename, _sha256(link, pin) or "", _size(link, client))

    with ThreadPoolExecutor(AT_ONCE, "choose") as pool:
        choices = list(pool.map(one, wanted))
    for choice in choices:
        known[f"{choice.pinned.name}=={choice.pinned.version} {key}"] = (
            choice.filename,
            choice.sha256,
            choice.size,
        )
    notes.parent.mkdir(parents=True, exist_ok=True)
    fresh = notes.with_suffix(".new")
    fresh.write_text(json.dumps(known, indent=0), "utf-8")
    fresh.replace(notes)
    return choices


def as_lock(carried: Iterable[tuple[str, str, str]]) -> bytes:
    """The list that the target's environment is made from: name, version and the one file that is carried."""
    return "".join(f"{n}=={v} --hash=sha256:{sha256}\n" for n, v, sha256 in sorted(carried)).encode()


def _rank(link: Link, rank: dict[Tag, int]) -> int | None:
    if not link.filename.endswith(".whl"):
        return None
    return min((rank[tag] for tag in parse_wheel_filename(link.filename)[3] if tag in rank), default=None)


def _sha256(link: Link, pin: Pinned) -> str | None:
    """The file's hash, as its page states it, where the lock has it. A page that states none is not used."""
    stated = (link.hash_option or {}).get("sha256", [])
    if not stated and link.is_file:
        from ondam.models.store import sha256_of

        stated = [sha256_of(link.file_path)]
    return next((found for found in stated if found in pin.hashes), None)


def _size(link: Link, client: PyPIClient) -> int | None:
    if link.is_file:
        return link.file_path.stat().st_size
    length = client.head(link.url_without_fragment).headers.get("Content-Length")
    return int(length) if length else None


def _glibc(platform: str, compiled_with: str | None) -> int | None:
    if platform.startswith("linux_") and compiled_with:
        return int(compiled_with.split(".")[1])
    if match := re.match(r"manylinux_2_(\d+)_", platform):
        return int(match[1])
    return next((number for (_, number), name in LEGACY.items() if platform.startswith(f"{name}_")), None)


def _read(notes: Path) -> dict[str, tuple[str, str, int | None]]:
    try:
        told = json.loads(notes.read_text("utf-8"))
        return {key: (str(name), str(sha256), size) for key, (name, sha256, size) in told.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}  # none, or half of one: everything is asked again
