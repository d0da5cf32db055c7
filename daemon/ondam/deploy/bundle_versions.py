"""The installed versions of one place, and which of them is current. Standard library only.

::

    ROOT/bin/ondam          what is put on PATH; runs the current version
    ROOT/current            → versions/ID, changed by one rename
    ROOT/previous           → versions/ID, what rollback goes to
    ROOT/versions/ID/       venv/ environments/ models/ licences/ sbom/ debian/, and the marker, written last
    ROOT/blobs/SHA256       weights; the versions' models are hard links to them
    ROOT/pythons/SHA256/    interpreters that a bundle brought along
    ROOT/incoming/          what an installation unpacks; gone when it is done
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ondam.deploy.bundle_manifest import MARKER, Manifest
from ondam.errors import BundleError

LAUNCHER = """\
#!/bin/sh
# Ondam's current version. The link is followed once, so that a switch changes nothing for what runs already.
root=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
version=$(readlink -- "$root/current") || {
  echo "ondam: no version is installed in $root" >&2
  exit 1
}
exec "$root/$version/venv/bin/ondam" "$@"
"""


def default_root() -> Path:
    """Where versions are kept: the machine's for root, else the user's. Raises BundleError without a HOME."""
    if os.geteuid() == 0:
        return Path("/opt/ondam")
    folder = of_home(os.environ.get("XDG_DATA_HOME") or "~/.local/share")
    if folder is None:
        raise BundleError("bundle_no_root")
    return folder / "ondam-versions"


def default_bin() -> Path | None:
    """Where the command is put: a folder that is on PATH. None without a HOME."""
    return Path("/usr/local/bin") if os.geteuid() == 0 else of_home("~/.local/bin")


def of_home(path: str) -> Path | None:
    """``path`` with its ``~``; None where nobody knows a home, or it would depend on where one stands."""
    try:
        folder = Path(path).expanduser()
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


@contextmanager
def readable() -> Iterator[None]:
    """What is made meanwhile can be read as the system's programs can, and nobody else can change it.

    Root's umask of 077, usual where systems are hardened, would install for root alone; the service runs as
    another user. Of a user the umask is a wish.
    """
    before = os.umask(0o022)
    os.umask(0o022 if os.geteuid() == 0 else before | 0o022)
    try:
        yield
    finally:
        os.umask(before)


@dataclass(frozen=True, slots=True)
class Version:
    """One that is installed whole."""

    folder: Path
    manifest: Manifest

    @property
    def identity(self) -> str:
        """Its name."""
        return self.folder.name


@dataclass(frozen=True, slots=True)
class Versions:
    """All of one place. Whoever changes it holds ``changing``."""

    root: Path

    @property
    def blobs(self) -> Path:
        """Weights by their SHA-256."""
        return self.root / "blobs"

    @property
    def pythons(self) -> Path:
        """Interpreters that bundles brought along."""
        return self.root / "pythons"

    @property
    def incoming(self) -> Path:
        """Of the installation that is going on, or was interrupted."""
        return self.root / "incoming"

    @property
    def launcher(self) -> Path:
        """What runs the current version."""
        return self.root / "bin" / "ondam"

    def folder(self, identity: str) -> Path:
        """Where a version is, or will be."""
        return self.root / "versions" / identity

    def all(self) -> list[Version]:
        """Those that are whole, oldest first."""
        found = []
        if not is_there(self.root / "versions"):
            return []
        for marker in (self.root / "versions").glob(f"*/{MARKER}"):
            with contextlib.suppress(OSError, BundleError):  # what cannot be read is not installed
                when = marker.stat().st_mtime_ns
                found.append((when, Version(marker.parent, Manifest.from_bytes(marker.read_bytes(), marker))))
        return [version for _, version in sorted(found, key=lambda pair: pair[0])]

    def named(self, identity: str) -> Version:
        """The version ``identity``, or the only one that begins so. Raises BundleError."""
        versions = self.all()
        matching = [version for version in versions if version.identity == identity] or [
            version for version in versions if version.identity.startswith(identity)
        ]
        if len(matching) != 1:
            known = ", ".join(version.identity for version in versions) or "–"
            raise BundleError("bundle_version_unknown", name=identity, root=self.root, known=known)
        return matching[0]

    def current(self) -> str | None:
        """The version that runs."""
        return self._pointed("current")

    def previous(self) -> str | None:
        """The version that ran before it, as long as it is here.

        A switch that was killed between its two links left both at one version: then it is the newest other.
        """
        name, now = self._pointed("previous"), self.current()
        if name is not None and name == now:
            return next((each.identity for each in reversed(self.all()) if each.identity != now), None)
        return name if name is not None and (self.folder(name) / MARKER).is_file() else None

    def switch(self, version: Version) -> None:
        """Make ``version`` the current one: by one rename, so that there is one at any moment."""
        now = self.current()
        if now == version.identity:
            return
        if now is not None:
            self._point("previous", now)
        self._point("current", version.identity)

    @contextmanager
    def changing(self, on_wait: Callable[[], None] | None = None, *, make: bool = True) -> Iterator[int]:
        """Hold the place against other installations; waits for one that has it, after calling ``on_wait``.
        Not ``make``: it has to be there.

        The descriptor is to be handed on to what an installation starts: where it is killed alone, they hold
        the place until they have ended too. Raises BundleError without the right to write there, and for a
        folder of somebody else's, in which everything would look like a leftover.
        """
        if not make and not is_there(self.root):
            raise BundleError("bundle_none_installed", root=self.root)
        taken = [
            each
            for each in (self.root / "versions", self.blobs, self.pythons, self.incoming)
            if is_there(each)
        ]
        if taken and not is_there(self.root / ".lock"):
            raise BundleError("bundle_root_foreign", path=self.root, found=taken[0].name)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with contextlib.suppress(PermissionError):  # somebody else's, who let us write
                # Whoever may read it could hold it, and with it every installation.
                os.fchmod(lock, 0o600)
        except OSError as error:
            raise BundleError(
                "bundle_root_unwritable", path=self.root, reason=error.strerror or error
            ) from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if on_wait:
                    on_wait()
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)

    def write_launcher(self) -> None:
        """The program that PATH points at."""
        write_whole(self.launcher, LAUNCHER.encode(), 0o755)

    def remove(self, version: Version) -> None:
        """Take a version away. It is no version from the first moment on."""
        (version.folder / MARKER).unlink()
        shutil.rmtree(version.folder)

    def leftovers(self) -> list[Path]:
        """What no version needs: unfinished ones, what was unpacked, weights and interpreters of none."""
        versions = self.all()
        whole = {version.folder for version in versions}
        found = [folder for folder in children(self.root / "versions") if folder not in whole]
        found += [self.incoming] if self.incoming.exists() else []
        weights, pythons = (
            {entry.sha256 for version in versions for entry in version.manifest.of_kind(kind)}
            for kind in ("model", "python")
        )
        # Unfinished versions have names for weights too. One with no other name was copied into its versions.
        found += [
            path for path in children(self.blobs) if path.name not in weights or path.stat().st_nlink == 1
        ]
        return found + [folder for folder in children(self.pythons) if folder.name not in pythons]

    def _pointed(self, link: str) -> str | None:
        try:
            return (self.root / link).readlink().name
        except OSError:
            return None

    def _point(self, link: str, identity: str) -> None:
        fresh = self.root / f".{link}.new"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(Path("versions") / identity)
        fresh.replace(self.root / link)
        flush_folder(self.root)


def in_use(folder: Path) -> list[int]:
    """Processes that run from this version's folder, as far as this user may see them."""
    found = []
    # The launcher follows links to the place; whoever names it may not have.
    wanted = {os.fsencode(each) + b"/" for each in (folder, folder.resolve())}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (process / "cmdline").read_bytes()
            if any(each in line for each in wanted):
                found.append(int(process.name))
    return sorted(set(found) - {os.getpid(), os.getppid()})


def discard(path: Path) -> None:
    """Delete a file or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def is_there(path: Path) -> bool:
    """Whether ``path`` is there. Raises BundleError where this user may not look."""
    try:
        return path.exists()
    except OSError as error:
        raise BundleError("bundle_root_closed", path=path, reason=error.strerror or error) from error


def weight(path: Path) -> int:
    """Bytes of a file or a folder that nothing outside of it links to."""
    inside: dict[int, tuple[int, int, int]] = {}
    for each in (path, *path.rglob("*")):
        if each.is_symlink() or not each.is_dir():
            status = each.lstat()
            seen = inside.get(status.st_ino, (0, 0, 0))[0]
            inside[status.st_ino] = (seen + 1, status.st_nlink, status.st_size)
    return sum(size for seen, links, size in inside.values() if seen == links)


def write_whole(path: Path, content: bytes, mode: int = 0o644) -> None:
    """A file that is there under its name only when it is complete and on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.chmod(mode)
    fresh.replace(path)
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def children(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where there is none."""
    return sorted(folder.iterdir()) if folder.is_dir() else []
