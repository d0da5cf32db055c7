"""What a bundle holds and whom it is for. Standard library only: the first install has nothing else.

``manifest.json`` is the signed part: it names every other file with its size and SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, get_args

from ondam.errors import BundleError

FORMAT = 1
"""Raised when an older Ondam could not install it."""

MARKER = "ondam-bundle.json"
"""In an installed version: its manifest, written last. A version without it was never finished."""

Kind = Literal["script", "wheel", "model", "lock", "debian", "python", "sbom", "licence", "config"]

FOLDERS: Mapping[Kind, str] = {
    "wheel": "wheels/",
    "model": "models/",
    "lock": "locks/",
    "debian": "debian/",
    "python": "python/",
    "sbom": "sbom/",
    "licence": "licences/",
    "config": "config.toml",
}
"""What the paths of a kind begin with: none of them can be the marker, or inside of an environment."""

LARGEST = 1 << 50
"""Bytes: no count of them is higher."""

SHA256 = re.compile(r"[0-9a-f]{64}")
IDENTITY = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,99}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the bundle."""

    path: str
    """Relative, with ``/``: ``wheels/NAME.whl``, ``models/ID/FILE``."""
    kind: Kind
    size: int
    """Bytes."""
    sha256: str

    @property
    def member(self) -> str:
        """Its name in the archive: contents that two files share are carried once."""
        return self.path if self.kind == "script" else f"blobs/{self.sha256}"


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that the bundle was made for."""

    system: str
    """As ``sys.platform``."""
    machine: str
    """``x86_64``, ``aarch64``."""
    python: str
    """``3.11``: wheels are built for one minor version."""
    glibc: str | None = None
    """The lowest that its wheels run with; None where none of them asks."""
    driver: int | None = None
    """The lowest major version of NVIDIA's driver; None where nothing computes on its cards."""
    cpu_flags: tuple[str, ...] = ()
    """As /proc/cpuinfo names them."""
    release: str | None = None
    """Debian's or Ubuntu's code name that its Debian packages are of; None where it carries none."""


@dataclass(frozen=True, slots=True)
class Environment:
    """One virtual environment that is made from the bundle."""

    name: str
    """``ondam``, or an engine."""
    lock: str
    """Path of the hash-pinned list of its wheels."""
    variant: str = "cpu"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of ``manifest.json``."""

    version: str
    """Of Ondam."""
    created: str
    """UTC, ISO 8601."""
    target: Target
    environments: tuple[Environment, ...]
    models: tuple[str, ...]
    """Ids."""
    debian: tuple[str, ...]
    """Packages that were asked for; what they need is carried with them."""
    files: tuple[Entry, ...]
    installed_size: int = 0
    """Bytes that a version takes on the disk, about."""

    @property
    def identity(self) -> str:
        """Name of the installed version: Ondam's and the beginning of the contents' hash."""
        told = json.dumps([asdict(self.target), [asdict(file) for file in self.files]], sort_keys=True)
        return f"{self.version}-{hashlib.sha256(told.encode()).hexdigest()[:10]}"

    @property
    def size(self) -> int:
        """Bytes of everything it carries, each content once."""
        return sum(entry.size for entry in self.members())

    def members(self) -> Iterator[Entry]:
        """In the order of the archive, each content once."""
        seen: set[str] = set()
        for entry in self.files:
            if entry.member not in seen:
                seen.add(entry.member)
                yield entry

    def of_kind(self, *kinds: Kind) -> list[Entry]:
        """Its files of these kinds."""
        return [entry for entry in self.files if entry.kind in kinds]

    def as_bytes(self) -> bytes:
        """As it is written and signed."""
        told = {"format": FORMAT, **asdict(self)}
        return (json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, text: bytes, origin: object) -> Manifest:
        """Raises BundleError where it is none, or one that only a newer Ondam understands."""
        try:
            told = json.loads(text)
            found = _count(told["format"])
            if found > FORMAT:
                raise BundleError("bundle_format_newer", path=origin, found=found, known=FORMAT)
            manifest = cls(
                version=_word(told["version"]),
                created=str(told["created"]),
                target=_target(told["target"]),
                environments=tuple(_environment(each) for each in told["environments"]),
                models=tuple(map(_word, told["models"])),
                debian=tuple(map(_word, told["debian"])),
                files=tuple(_entry(each) for each in told["files"]),
                installed_size=_count(told["installed_size"]),
            )
            _once(entry.path for entry in manifest.files)
            _complete(manifest)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise BundleError("bundle_manifest_broken", path=origin, reason=reason) from error
        return manifest


def _entry(told: dict[str, Any]) -> Entry:
    entry = Entry(_path(told["path"]), told["kind"], _count(told["size"]), str(told["sha256"]))
    if entry.kind not in get_args(Kind) or not SHA256.fullmatch(entry.sha256):
        raise ValueError(f"{entry.path}: kind {entry.kind!r}, sha256 {entry.sha256!r}")
    lies = "/" not in entry.path if entry.kind == "script" else entry.path.startswith(FOLDERS[entry.kind])
    if not lies:
        raise ValueError(f"{entry.path}: no place for a {entry.kind}")
    return entry


def _target(told: dict[str, Any]) -> Target:
    driver, glibc, release = told["driver"], told["glibc"], told["release"]
    return Target(
        system=_word(told["system"]),
        machine=_word(told["machine"]),
        python=_word(told["python"]),
        glibc=None if glibc is None else _word(glibc),
        driver=None if driver is None else _count(driver),
        cpu_flags=tuple(map(_word, told["cpu_flags"])),
        release=None if release is None else _word(release),
    )


def _environment(told: dict[str, Any]) -> Environment:
    return Environment(_word(told["name"]), _path(told["lock"]), _word(told["variant"]))


def _word(value: object) -> str:
    if not isinstance(value, str) or not IDENTITY.fullmatch(value):
        raise ValueError(f"{value!r}")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise ValueError(f"{value!r}")
    return value


def _path(value: object) -> str:
    """A path that stays inside the folder that it is unpacked in."""
    if not isinstance(value, str) or not value.isprintable() or "\\" in value:
        raise ValueError(f"{value!r}")
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or str(path) != value or not path.parts:
        raise ValueError(f"{value!r}")
    return value


def _complete(manifest: Manifest) -> None:
    """Whether what is made of it is in it."""
    _once(environment.name for environment in manifest.environments)
    if all(environment.name != "ondam" for environment in manifest.environments):
        raise ValueError("no environment for ondam")
    locks = {entry.path for entry in manifest.of_kind("lock")}
    if lacking := [each.lock for each in manifest.environments if each.lock not in locks]:
        raise ValueError(f"{lacking[0]} is not in it")
    if len(manifest.of_kind("python")) > 1:
        raise ValueError("more than one Python")


def _once(paths: Iterable[str]) -> None:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise ValueError(f"{path} twice")
        seen.add(path)
