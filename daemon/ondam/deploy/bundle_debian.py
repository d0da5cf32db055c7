"""Debian packages that the target needs, with all that they need in turn and a minimal system lacks."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ondam.errors import BundleError
from ondam.models.store import sha256_of

if TYPE_CHECKING:
    from ondam.models.progress import Task

NEEDED = ("libportaudio2", "libasound2-plugins", "libgomp1")
"""The sound card (as ``script/setup`` installs it), and llama.cpp's threads."""

BASE = ("openssh-client",)
"""Carried as well, so that a minimal system can check the signature of the next bundle."""

EMPTY = ("-o", "Dir::State::status=/dev/null")
"""As if nothing were installed: what lacks here is not what lacks there."""

URI = re.compile(
    r"^'[^']+' (?P<file>\S+_\S+_\S+\.deb) (?P<size>\d+)(?: SHA256:(?P<sha256>[0-9a-f]{64}))?",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Package:
    """One package of this machine's release."""

    file: str
    """``libportaudio2_19.6.0-1.2_amd64.deb``."""
    size: int
    sha256: str
    """Empty where its release states none; then it is taken from nowhere."""

    @property
    def name(self) -> str:
        """``libportaudio2``."""
        return self.file.partition("_")[0]

    @property
    def version(self) -> str:
        """``19.6.0-1.2``."""
        return unquote(self.file.split("_")[1])


def needed(names: Sequence[str]) -> list[Package]:
    """``names`` and what they need, less what every Debian has. Raises BundleError without apt."""
    there = {package.name for package in _closure(_essential())}
    return [package for package in _closure(names) if package.name not in there]


def download(packages: Sequence[Package], folder: Path, task: Task) -> list[Path]:
    """Bring them into ``folder``; those that are whole there already stay. Raises BundleError."""
    folder.mkdir(parents=True, exist_ok=True)
    lacking = absent(packages, folder)
    for package in packages:
        if package not in lacking:
            task.advance(package.size)
    if lacking:
        for package in lacking:
            # apt takes what is there by its size alone.
            for path in folder.glob(f"{_pattern(package)}*"):
                path.unlink()
        # The user that apt fetches as may not write to this folder: it fetches as we are.
        _apt("-q", *EMPTY, "-o", "APT::Sandbox::User=root", "download",
             *(f"{package.name}={package.version}" for package in lacking), folder=folder)  # fmt: skip
        for package in lacking:
            task.advance(package.size)
    task.finish()
    paths = []
    for package in packages:
        whole = _whole(folder, package)
        if whole is None:
            raise BundleError("bundle_apt_failed", reason=package.file)
        paths.append(whole)
    return paths


def absent(packages: Sequence[Package], folder: Path) -> list[Package]:
    """Those of which ``folder`` has no whole file."""
    return [package for package in packages if _whole(folder, package) is None]


def copyright_of(package: Path) -> bytes | None:
    """The licence that a package carries; None where it links to another package's.

    Noted beside the package: to find it, all of it has to be unpacked.
    """
    noted = package.with_name(f"{package.name}.copyright")
    if not noted.exists():
        # It complains of a pipe that nobody reads to its end, once tar has found what is wanted.
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as packed:
            name = f"./usr/share/doc/{package.name.partition('_')[0]}/copyright"
            done = subprocess.run(
                ["tar", "-xO", "--occurrence=1", name], stdin=packed.stdout, capture_output=True, check=False
            )
            if packed.stdout:
                packed.stdout.close()
        beside = noted.with_name(f"{noted.name}.part")
        beside.write_bytes(done.stdout if done.returncode == 0 else b"")
        beside.replace(noted)
    return noted.read_bytes() or None


def _closure(names: Sequence[str]) -> list[Package]:
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        # What apt has fetched before it does not list.
        nothing = ("-o", f"Dir::Cache::Archives={folder}", "-o", "Acquire::ForceHash=SHA256")
        told = _apt(
            "install", "--print-uris", "-qq", "-y", "--no-install-recommends", *EMPTY, *nothing, *names
        )
    return [Package(m["file"], int(m["size"]), m["sha256"] or "") for m in URI.finditer(told)]


def _essential() -> list[str]:
    """Names of what no Debian lacks."""
    try:
        told = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BundleError("bundle_apt_failed", reason=error) from error
    names = []
    for paragraph in told.split("\n\n"):
        if re.search(r"^(Essential: yes|Priority: required)$", paragraph, re.MULTILINE):
            match = re.match(r"Package: (\S+)", paragraph)
            names += [match[1]] if match else []
    return sorted(set(names))


def _apt(*arguments: str, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            ["apt-get", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BundleError("bundle_apt_failed", reason=error.strerror or error) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise BundleError("bundle_apt_failed", reason=lines[-1] if lines else f"exit {done.returncode}")
    return done.stdout


def _whole(folder: Path, package: Package) -> Path | None:
    for path in sorted(folder.glob(_pattern(package))):
        if path.stat().st_size == package.size and sha256_of(path) == package.sha256:
            return path
    return None


def _pattern(package: Package) -> str:
    # apt writes an epoch's colon as %3a here, and as itself there.
    return f"{package.name}_*{package.version.rpartition(':')[2]}_*.deb"
