"""A bundle that is installed in a moment: an Ondam that says its version, and a file of every kind."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import uv

from ondam.deploy import bundle_archive, bundle_signature
from ondam.deploy.bundle_first import Lines
from ondam.deploy.bundle_install import Installation
from ondam.deploy.bundle_manifest import Entry, Environment, Kind, Manifest, Target
from ondam.deploy.bundle_target import this_system
from ondam.deploy.bundle_versions import Version, Versions
from ondam.deploy.bundle_wheels import as_lock

ROOT = Path(__file__).parents[2]

HERE = this_system(Path("/"), Target("linux", "x86_64", f"3.{sys.version_info.minor}"))

WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

SAYS_VERSION = """\
import sys


def main():
    print("ondam {version}")
    sys.exit(0)


if __name__ == "__main__":
    main()
"""


class Silent(Lines):
    """What is told, to be asked about."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """A wheel that uv installs."""
    info = f"{name}-{version}.dist-info"
    told = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nLicense: MIT\n",
        f"{info}/WHEEL": WHEEL,
    }
    if name == "ondam":
        told[f"{info}/entry_points.txt"] = "[console_scripts]\nondam = ondam.__main__:main\n"
    lines = [f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in told.items()]
    told[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as out:
        for member, text in told.items():
            out.writestr(zipfile.ZipInfo(member), text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@dataclass(frozen=True)
class Small:
    """A bundle and what it was made of."""

    path: Path
    manifest: Manifest
    sources: dict[str, Path]

    def write(self, path: Path, manifest: Manifest, signature: bytes | None = None) -> Path:
        """The same files under another manifest."""
        with path.open("wb") as out:
            bundle_archive.write(out, manifest, signature, self.sources)
        return path


def small(folder: Path, version: str, *, key: Path | None = None, model: bytes = b"weights" * 3000) -> Small:
    """Make one in ``folder``; two with the same ``model`` share it."""
    made = folder / f"made-{version}"
    made.mkdir(parents=True)
    entries: list[Entry] = []
    sources: dict[str, Path] = {}

    def add(path: str, kind: Kind, content: bytes | Path) -> str:
        source = made / str(len(entries))
        source.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
        entries.append(Entry(path, kind, source.stat().st_size, sha256))
        sources[path] = source
        return sha256

    own = wheel(made, "ondam", version, {
        "ondam/__init__.py": "", "ondam/__main__.py": SAYS_VERSION.format(version=version)
    })  # fmt: skip
    real = f'#!/bin/sh\nexec "{uv.find_uv_bin()}" "$@"\n'
    tool = wheel(made, "uv", "1", {"uv-1.data/scripts/uv": real})
    add("install.py", "script", ROOT / "packaging/bundle/install.py")
    add(f"wheels/{own.name}", "wheel", own)
    add(f"wheels/{tool.name}", "wheel", tool)
    lock = [(path.name.split("-")[0], path.name.split("-")[1], _sha256(path)) for path in (own, tool)]
    add("locks/ondam.txt", "lock", as_lock(lock))
    add("models/toy/model.bin", "model", model)
    add("models/toy/same.bin", "model", model)
    add("models/toy/settings.json", "model", b"{}")
    add("debian/toy_1_all.deb", "debian", b"!<arch>\n" * 70)
    add("sbom/ondam.cdx.json", "sbom", b'{"bomFormat": "CycloneDX"}')
    add("licences/toy-1/LICENSE", "licence", b"Take it.\n")
    add("licences/overview.tsv", "licence", f"toy\t{version}\n".encode())
    target = Target(HERE.system, HERE.machine, HERE.pythons[0])
    manifest = Manifest(
        version=version,
        created="2026-01-01T00:00:00+00:00",
        target=target,
        environments=(Environment("ondam", "locks/ondam.txt"),),
        models=(),
        debian=(),
        files=tuple(entries),
        installed_size=1 << 20,
    )
    path = folder / f"ondam-{version}.bundle"
    made_of = Small(path, manifest, sources)
    signature = None if key is None else bundle_signature.sign(manifest.as_bytes(), key)
    made_of.write(path, manifest, signature)
    return made_of


def retargeted(one: Small, target: Target, path: Path) -> Path:
    """The same bundle for another machine."""
    return one.write(path, replace(one.manifest, target=target))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def install(one: Small, versions: Versions, reporter: Silent | None = None) -> Version:
    """Install it, unsigned."""
    return Installation(one.path, versions, reporter or Silent()).run(None, unsigned=True)


def says(versions: Versions) -> str:
    """What the command says: proof that the current version runs."""
    command = [str(versions.launcher), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def first(*arguments: object) -> Sequence[str]:
    """The command of a first installation: a Python without a single package."""
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("dying.py")), *map(str, arguments)]


ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
