"""From a bundle to a version that runs, with no network.

The order makes it safe to be killed anywhere: everything is unpacked and hashed, then the version's folder is
made, then it is tried, then its marker is written, and ``current`` is switched last, by one rename. What a
killed installation left is taken up, where it is whole, or thrown away by the next one.
Standard library only: the first installation has nothing else.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shlex
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ondam.deploy import bundle_archive as archive
from ondam.deploy import bundle_signature, bundle_target
from ondam.deploy.bundle_manifest import MARKER, Entry, Manifest
from ondam.deploy.bundle_versions import (
    Version,
    Versions,
    children,
    discard,
    flush_folder,
    in_use,
    of_home,
    readable,
    write_whole,
)
from ondam.errors import BundleError
from ondam.messages import Phrase, reader_language, text, typed

if TYPE_CHECKING:
    from ondam.models.progress import Reporter

DROPPED = ("PYTHON", "PIP_", "UV_", "VIRTUAL_ENV", "CONDA", "LD_PRELOAD")
"""Beginnings of variables that would point an interpreter or uv to something outside of the bundle."""

NO_ROOM = (b"No space left on device", b"Disk quota exceeded")
"""ENOSPC and EDQUOT as programs tell them; uv knows no other language."""

ROOM_FOR_A_LOG = 1 << 20

KEPT = ("licence", "sbom", "debian", "lock", "config")
"""Kinds of files that stay readable in the version's folder."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found out."""

    head: archive.Head
    signer: str | None
    """Whose signature it is; None where none was checked."""


def check_head(
    path: Path, file: BinaryIO, signers: Path | None, *, unsigned: bool, say: Callable[[str], None]
) -> Checked:
    """Read what stands in front of ``file`` and check its signature.

    ``unsigned``: take it without one; that is told through ``say``. Raises BundleError.
    """
    head = archive.read_head(file, path)
    language = reader_language()
    if unsigned:
        say(text("bundle_taken_unsigned" if head.signature is None else "bundle_signature_ignored", language))
        return Checked(head, None)
    if head.signature is None:
        raise BundleError("bundle_unsigned", path=path)
    if signers is None:
        raise BundleError("bundle_signers_unknown")
    signer = bundle_signature.verify(head.text, head.signature, signers)
    say(text("bundle_signed_by", language, name=signer))
    return Checked(head, signer)


def verify(
    path: Path,
    root: Path,
    signers: Path | None,
    reporter: Reporter,
    *,
    unsigned: bool = False,
    fit: bool = True,
) -> Checked:
    """Signature, every byte, and whether it fits this machine (``fit``). Nothing is written.

    Raises BundleError with everything that is wrong.
    """
    with archive.opened(path) as file:
        checked = check_head(path, file, signers, unsigned=unsigned, say=reporter.say)
        manifest = checked.head.manifest
        faults = _read(file, path, checked.head, archive.Sink(), reporter)
        if faults:
            raise archive.damaged(path, faults)
    if fit:
        bundle_target.refuse(path, manifest, bundle_target.this_system(root, manifest.target), root)
    return checked


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation into ``versions``."""

    path: Path
    """The bundle."""
    versions: Versions
    reporter: Reporter

    def run(self, signers: Path | None, *, unsigned: bool = False, switch: bool = True) -> Version:
        """Install, try, and switch to it. Raises BundleError; the version that runs is then what it was."""
        with archive.opened(self.path) as file, readable(), self.versions.changing(self._wait) as lock:
            checked = check_head(self.path, file, signers, unsigned=unsigned, say=self.reporter.say)
            manifest = checked.head.manifest
            system = bundle_target.this_system(self.versions.root, manifest.target)
            here = self._whole(manifest)
            needed = 0 if here else None
            bundle_target.refuse(self.path, manifest, system, self.versions.root, needed=needed)
            try:
                if not here:
                    self._clear(manifest.identity)
                    self._unpack(file, checked.head)
                    self._make(manifest, lock)
                else:
                    self.reporter.say(text("bundle_whole_here", reader_language(), name=manifest.identity))
                version = Version(self.versions.folder(manifest.identity), manifest)
                self.versions.write_launcher()
                if switch:
                    self.versions.switch(version)
                shutil.rmtree(self.versions.incoming, ignore_errors=True)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise BundleError("bundle_disk_full", path=self.versions.root) from error
                raise BundleError(
                    "bundle_root_unwritable",
                    path=error.filename or self.versions.root,
                    reason=error.strerror or error,
                ) from error
        return version

    def _wait(self) -> None:
        self.reporter.say(text("bundle_root_busy", reader_language(), path=self.versions.root))

    def _whole(self, manifest: Manifest) -> bool:
        return (self.versions.folder(manifest.identity) / MARKER).is_file()

    def _clear(self, identity: str) -> None:
        """What was unpacked for another bundle, unfinished versions, and whatever may be half written.

        Of this bundle's last try only the contents stay: each is there under its name whole or not at all.
        """
        incoming, kept = self.versions.incoming, self.versions.incoming / identity / "blobs"
        for folder in (*children(incoming), *children(kept.parent)):
            if folder not in (kept, kept.parent):
                discard(folder)
        whole = {version.folder for version in self.versions.all()}
        for folder in children(self.versions.folder(identity).parent):
            if folder not in whole:
                discard(folder)

    def _unpack(self, file: BinaryIO, head: archive.Head) -> None:
        incoming = self.versions.incoming / head.manifest.identity
        sink = _Unpacking(incoming / "blobs", self.versions.blobs)
        faults = _read(file, self.path, head, sink, self.reporter)
        if faults:
            raise archive.damaged(self.path, faults)

    def _make(self, manifest: Manifest, lock: int) -> None:
        folder = self.versions.folder(manifest.identity)
        incoming = self.versions.incoming / manifest.identity
        for entry in manifest.files:
            if entry.kind in KEPT:
                _link(incoming / "blobs" / entry.sha256, folder / entry.path)
            elif entry.kind == "model":
                _link(self.versions.blobs / entry.sha256, folder / entry.path)
            elif entry.kind == "wheel":
                _link(incoming / "blobs" / entry.sha256, incoming / entry.path)
                if entry.path.startswith("wheels/ondam-"):
                    # So that this version can make bundles too.
                    _link(incoming / "blobs" / entry.sha256, folder / entry.path)
        steps = _Steps(environment(incoming), incoming / "install.log", lock)
        self._environments(manifest, folder, incoming, steps)
        flush_folder(folder)
        # Whoever sees the marker may run what lies beside it: it has to be on the disk first.
        os.sync()
        write_whole(folder / MARKER, manifest.as_bytes())

    def _environments(self, manifest: Manifest, folder: Path, incoming: Path, run: _Steps) -> None:
        language = reader_language()
        python = self._python(manifest, incoming)
        uv = _uv(incoming / "wheels", incoming / "uv")
        (own,) = (each for each in manifest.environments if each.name == "ondam")
        self.reporter.say(text("bundle_makes_environment", language, name="ondam"))
        venv = folder / "venv"
        run(uv, "venv", "--quiet", "--no-project", "--clear", "--relocatable", "--python", python, venv)
        pip = [uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python"]
        pip += [
            "--no-index",
            "--no-deps",
            "--no-build",
            "--require-hashes",
            "--find-links",
            incoming / "wheels",
        ]
        run(*pip, "--requirement", folder / own.lock)
        if engines := [each for each in manifest.environments if each.name != "ondam"]:
            for each in engines:
                self.reporter.say(text("bundle_makes_environment", language, name=each.name))
            # By the new version itself: it knows how its engines are laid out.
            settle = [venv / "bin" / "python", "-I", "-m", "ondam.deploy.bundle_settle", folder, incoming]
            manifest_file = incoming / archive.MANIFEST
            write_whole(manifest_file, manifest.as_bytes())
            run(*settle, manifest_file)
        self.reporter.say(text("bundle_tries", language))
        run(venv / "bin" / "python", "-I", "-m", "ondam", "--version")

    def _python(self, manifest: Manifest, incoming: Path) -> Path:
        carried = manifest.of_kind("python")
        if not carried:
            found = bundle_target.python_of(manifest.target.python)
            assert found is not None, "the target was found to fit"
            return found
        (entry,) = carried
        folder = self.versions.pythons / entry.sha256
        if not folder.is_dir():
            fresh = self.versions.pythons / f".{entry.sha256}.new"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            unpack(incoming / "blobs" / entry.sha256, fresh, manifest.target.python)
            fresh.replace(folder)
        return interpreter_in(folder, manifest.target.python)


def unpack(packed: Path, folder: Path, version: str) -> None:
    """A Python's tar, below ``folder``. Raises BundleError where it is none, or leads outside."""
    try:
        with tarfile.open(packed) as opened:
            if hasattr(tarfile, "tar_filter"):
                opened.extractall(folder, filter="tar")
                return
            # Python before 3.11.4, such as Debian 12's.
            for member in opened.getmembers():
                for name in (member.name, *([member.linkname] if member.islnk() else [])):
                    if not (folder / name).resolve().is_relative_to(folder.resolve()):
                        raise tarfile.TarError(name)
                opened.extract(member, folder)
    except tarfile.TarError as error:
        raise BundleError("bundle_python_lacks", path=packed, version=version) from error


def interpreter_in(folder: Path, version: str) -> Path:
    """The program in an unpacked Python (``bin/python3.11``, perhaps one folder down). Raises BundleError."""
    for path in sorted((*folder.glob(f"bin/python{version}"), *folder.glob(f"*/bin/python{version}"))):
        return path
    raise BundleError("bundle_python_lacks", path=folder, version=version)


def environment(incoming: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables for what is run: uv reaches nothing but the folder it is given."""
    kept = {name: value for name, value in environ.items() if not name.startswith(DROPPED)}
    home = incoming / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {
        **kept,
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_CACHE_DIR": str(incoming / "cache"),
        # A home of its own: nothing that the user has there may take part.
        "HOME": str(home),
        "ONDAM_HOME": str(home / "ondam"),
    }


class _Unpacking(archive.Sink):
    """Contents under their SHA-256: weights where they stay, everything else where it is thrown away.

    What is there already is hashed too: it was whole when it was written, and the disk may have lost it.
    """

    def __init__(self, incoming: Path, blobs: Path) -> None:
        self._folders = {"model": blobs}
        self._incoming = incoming

    def _place(self, entry: Entry) -> Path:
        return self._folders.get(entry.kind, self._incoming) / entry.sha256

    def begin(self, entry: Entry) -> BinaryIO | None:
        place = self._place(entry)
        if place.is_file() and place.stat().st_size == entry.size and _sha256(place) == entry.sha256:
            return None
        place.parent.mkdir(parents=True, exist_ok=True)
        return place.with_name(f".{place.name}.part").open("wb")

    def end(self, entry: Entry, whole: bool) -> None:
        place = self._place(entry)
        part = place.with_name(f".{place.name}.part")
        if part.exists():
            if whole:
                part.replace(place)
            else:
                part.unlink()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(
    file: BinaryIO, path: Path, head: archive.Head, sink: archive.Sink, reporter: Reporter
) -> list[archive.FileFault]:
    task = reporter.task(path.name)
    task.size(head.manifest.size)
    try:
        faults = archive.read_files(file, head, sink, task.advance)
    except OSError as error:
        raise BundleError(
            "bundle_read_failed", path=error.filename or path, reason=error.strerror or error
        ) from error
    task.finish()
    return faults


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        # A file system without hard links: what is lost is room on the disk.
        shutil.copyfile(source, target)


def _uv(wheels: Path, target: Path) -> Path:
    """uv's program, taken from its wheel. Raises BundleError."""
    for wheel in sorted(wheels.glob("uv-*.whl")):
        with zipfile.ZipFile(wheel) as opened:
            for name in opened.namelist():
                if name.endswith((".data/scripts/uv", ".data/scripts/uv.exe")):
                    target.write_bytes(opened.read(name))
                    target.chmod(0o755)
                    return target
    raise BundleError("bundle_lacks_uv")


@dataclass(frozen=True, slots=True)
class _Steps:
    """Runs one step after the other, written down."""

    env: Mapping[str, str]
    log: Path
    lock: int
    """Held by what is run, for as long as it lasts."""

    def __call__(self, *command: object) -> None:
        """Raises BundleError with the end of what it said, and where all of it is."""
        with self.log.open("ab") as out:
            out.write(b"$ " + os.fsencode(" ".join(map(str, command))) + b"\n")
            out.flush()
            began = out.tell()
            done = subprocess.run(
                [str(part) for part in command],
                env=dict(self.env),
                cwd=self.log.parent,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=(self.lock,),
            )
        if done.returncode != 0:
            if self._full():
                raise BundleError("bundle_disk_full", path=self.log.parent)
            said = self.log.read_bytes()[began:].decode("utf-8", "replace").strip().splitlines()
            reason = "\n".join(said[-6:]) or f"exit {done.returncode}"
            raise BundleError("bundle_step_failed", log=self.log, reason=reason)

    def _full(self) -> bool:
        """Whether the disk was full. What failed may have tidied up, and a full disk takes no log either."""
        logs = [log.read_bytes() for log in self.log.parent.glob("*.log")]
        return any(word in log for log in logs for word in NO_ROOM) or (
            shutil.disk_usage(self.log.parent).free < ROOM_FOR_A_LOG
        )


def debian_lacking(manifest: Manifest, folder: Path) -> list[Path]:
    """Debian packages of the bundle that this machine lacks; none where it has no dpkg."""
    if not manifest.debian or shutil.which("dpkg-query") is None:
        return []
    lacking = []
    for entry in manifest.of_kind("debian"):
        name = Path(entry.path).name.partition("_")[0]
        done = subprocess.run(
            ["dpkg-query", "-W", "-f=${Status}", name], capture_output=True, text=True, check=False
        )
        if "ok installed" not in done.stdout:
            lacking.append(folder / entry.path)
    return lacking


def afterwards(version: Version, versions: Versions, folder: Path | None) -> list[Phrase]:
    """What is left to be done by hand, and how; the command is put on PATH (into ``folder``)."""
    with readable():
        told = [_no_home(versions) if folder is None else put_on_path(versions, folder)]
        if (file := config_file()) is not None:
            for entry in version.manifest.of_kind("config"):
                switched = version.identity == versions.current()
                told.append(_put_config(version.folder / entry.path, file, switched=switched))
    if lacking := debian_lacking(version.manifest, version.folder):
        if version.manifest.target.release == bundle_target.release():
            files = shlex.join(map(str, lacking))
            told.append(Phrase("bundle_debian_lacking", count=len(lacking), files=files))
        else:
            told.append(
                Phrase(
                    "bundle_debian_other",
                    wanted=version.manifest.target.release,
                    names=" ".join(version.manifest.debian),
                )
            )
    return [*told, *still_running(versions)]


def still_running(versions: Versions) -> list[Phrase]:
    """Versions that are not current and run all the same, with what is typed then."""
    command = "sudo systemctl restart ondam" if bundle_target.is_root() else "systemctl --user restart ondam"
    return [
        Phrase("bundle_restart", name=version.identity, command=typed(command))
        for version in versions.all()
        if version.identity != versions.current() and in_use(version.folder)
    ]


def config_file() -> Path | None:
    """Where a configuration counts: the machine's for root, else the user's. None without a HOME."""
    if bundle_target.is_root():
        return Path("/etc/ondam/config.toml")
    folder = of_home(os.environ.get("XDG_CONFIG_HOME") or "~/.config")
    return None if folder is None else folder / "ondam" / "config.toml"


def _put_config(brought: Path, file: Path, *, switched: bool) -> Phrase:
    """A configuration that is there already was written by somebody who knows this machine.

    Without a switch the version that runs would take up one that is made for another.
    """
    try:
        if file.exists():
            return Phrase("bundle_config_there", path=file, brought=brought)
        if not switched:
            return Phrase("bundle_config_kept", brought=brought)
        write_whole(file, brought.read_bytes())
    except OSError as error:
        reason = error.strerror or error
        return Phrase("bundle_config_failed", path=file, reason=reason, brought=brought)
    return Phrase("bundle_config_put", path=file)


def _no_home(versions: Versions) -> Phrase:
    return Phrase(
        "bundle_command_failed", path="~/.local/bin/ondam", reason="no HOME", launcher=versions.launcher
    )


def put_on_path(versions: Versions, folder: Path) -> Phrase:
    """Link the launcher as ``folder/ondam``; what somebody else put there is left alone. What was done."""
    link = folder / "ondam"
    try:
        if link.is_symlink() and link.resolve() == versions.launcher.resolve():
            return Phrase("bundle_command_there", path=link)
        if link.exists() or link.is_symlink():
            return Phrase("bundle_command_taken", path=link, launcher=versions.launcher)
        folder.mkdir(parents=True, exist_ok=True)
        link.symlink_to(versions.launcher)
    except OSError as error:
        return Phrase(
            "bundle_command_failed", path=link, reason=error.strerror or error, launcher=versions.launcher
        )
    on_path = str(folder) in os.environ.get("PATH", "").split(os.pathsep)
    return Phrase("bundle_command_put" if on_path else "bundle_command_off_path", path=link, folder=folder)
