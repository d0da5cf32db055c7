"""The one file to carry: an uncompressed tar (wheels, packages and weights are compressed already).

In front ``checksums`` (of the two that follow; ``sha256sum -c`` reads it), ``manifest.json`` and, where it is
signed, ``manifest.json.sig``; then the manifest's files in its order, each content once. Every byte has one
value that it may have: headers are made again from the manifest and compared, padding is zero, nothing
follows.
Standard library only.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from ondam.deploy.bundle_manifest import Entry, Manifest
from ondam.errors import BundleError
from ondam.messages import Phrase, Phrases

CHECKSUMS = "checksums"
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"

CHUNK = 1 << 20
BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)

LARGEST_HEAD = 16 << 20
"""Bytes of a manifest, some two hundred for each file; of a broken header nobody reads more."""

LARGEST = 1 << 50
"""Bytes of any file. A header may say anything, also less than nothing."""

MOST_STRANGERS = 100
"""Files that are not in the manifest. After so many nobody looks for what comes behind them."""

Fault = Literal["missing", "differs", "header", "padding"]


@dataclass(frozen=True, slots=True)
class FileFault:
    """What is wrong with one file of the bundle."""

    path: str
    fault: Fault
    expected: str
    """SHA-256, or a name."""
    found: str = ""

    def phrase(self) -> Phrase:
        """For people."""
        return Phrase(f"bundle_fault_{self.fault}", path=self.path, expected=self.expected, found=self.found)


@dataclass(frozen=True, slots=True)
class Head:
    """What stands in front."""

    manifest: Manifest
    text: bytes
    """Of the manifest: what was signed."""
    signature: bytes | None


def header(name: str, size: int) -> bytes:
    """The tar header of a member: the only one that it may have."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o644, 0
    return info.tobuf(tarfile.GNU_FORMAT)


def write(
    out: BinaryIO,
    manifest: Manifest,
    signature: bytes | None,
    sources: Mapping[str, Path],
    on_bytes: Callable[[int], None] | None = None,
) -> None:
    """Write the archive. ``sources``: path in the bundle → file that it is taken from.

    Raises BundleError when a source is no longer what the manifest says; OSError when the disk is full.
    """
    text = manifest.as_bytes()
    for name, content in _head(text, signature):
        out.write(header(name, len(content)))
        out.write(content + bytes(-len(content) % BLOCK))
    for entry in manifest.members():
        out.write(header(entry.member, entry.size))
        digest, size = hashlib.sha256(), 0
        with sources[entry.path].open("rb") as source:
            while piece := source.read(CHUNK):
                digest.update(piece)
                size += len(piece)
                out.write(piece)
                if on_bytes:
                    on_bytes(len(piece))
        if (size, digest.hexdigest()) != (entry.size, entry.sha256):
            raise BundleError(
                "bundle_source_changed",
                path=sources[entry.path],
                expected=entry.sha256,
                found=digest.hexdigest(),
            )
        out.write(bytes(-size % BLOCK))
    out.write(END)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bundle's file. Raises BundleError where it cannot be opened."""
    try:
        # A pipe would be waited for, and cannot be read twice.
        if path.is_fifo():
            raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))
        file = path.open("rb")
    except OSError as error:
        raise BundleError("bundle_unreadable", path=path, reason=error.strerror or error) from error
    with file:
        yield file


def read_head(file: BinaryIO, path: Path) -> Head:
    """What stands in front; leaves ``file`` behind it. Raises BundleError: damaged, or no bundle."""
    checksums = _front(file, path, CHECKSUMS)
    wanted: dict[str, str] = {}
    for line in checksums.decode("ascii", "replace").splitlines():
        digest, _, name = line.partition("  ")
        wanted[name] = digest
    if list(wanted) not in ([MANIFEST], [MANIFEST, SIGNATURE]):
        raise BundleError("bundle_not_one", path=path)
    contents = {name: _front(file, path, name) for name in wanted}
    faults = [
        FileFault(name, "differs", wanted[name], found)
        for name, content in contents.items()
        if (found := hashlib.sha256(content).hexdigest()) != wanted[name]
    ]
    if faults:
        raise damaged(path, faults)
    signature = contents.get(SIGNATURE)
    if checksums != _checksums(contents[MANIFEST], signature):
        raise damaged(path, [FileFault(CHECKSUMS, "header", CHECKSUMS)])
    return Head(Manifest.from_bytes(contents[MANIFEST], path), contents[MANIFEST], signature)


class Sink:
    """Where a file's bytes go while they are hashed. This one forgets them."""

    def begin(self, entry: Entry) -> BinaryIO | None:
        """A file to write to, or None."""
        return None

    def end(self, entry: Entry, whole: bool) -> None:
        """Its last byte was read; ``whole``: they are what the manifest says."""


def read_files(
    file: BinaryIO, head: Head, sink: Sink, on_bytes: Callable[[int], None] | None = None
) -> list[FileFault]:
    """Read every file behind the head, once, hashing it on the way to ``sink``. What is wrong, by file.

    Raises OSError when ``file`` cannot be read or the sink not be written.
    """
    faults: list[FileFault] = []
    entries = list(head.manifest.members())
    names = {entry.member: number for number, entry in enumerate(entries)}
    number = strangers = 0
    while number < len(entries):
        entry = entries[number]
        at = file.tell()
        wanted = header(entry.member, entry.size)
        found = file.read(len(wanted))
        if found != wanted:
            other = _member(found)
            if other is not None and other[0] != entry.member:
                there = names.get(other[0], -1)
                if there > number:
                    # Taken out: what follows it is here.
                    faults += [FileFault(e.path, "missing", e.sha256) for e in entries[number:there]]
                    number = there
                    file.seek(at)
                    continue
                faults.append(FileFault(other[0], "header", entry.member, other[0]))
                strangers += 1
                if strangers == MOST_STRANGERS:
                    return faults
                file.seek(at + BLOCK + other[1] + -other[1] % BLOCK)
                continue
            if len(found) < len(wanted):
                faults += [FileFault(e.path, "missing", e.sha256) for e in entries[number:]]
                return faults
            faults.append(FileFault(entry.path, "header", entry.member))
        faults += _content(file, entry, sink, on_bytes)
        number += 1
    if file.read(len(END) + 1) != END:
        faults.append(FileFault(MANIFEST, "padding", "0"))
    return faults


def damaged(path: Path, faults: list[FileFault]) -> BundleError:
    """The error that names what is wrong."""
    shown = tuple(fault.phrase() for fault in faults[:20])
    return BundleError("bundle_damaged", path=path, count=len(faults), faults=Phrases(shown))


def _content(
    file: BinaryIO, entry: Entry, sink: Sink, on_bytes: Callable[[int], None] | None
) -> Iterator[FileFault]:
    digest, left = hashlib.sha256(), entry.size
    out = sink.begin(entry)
    try:
        while left and (piece := file.read(min(CHUNK, left))):
            digest.update(piece)
            left -= len(piece)
            if out:
                out.write(piece)
            if on_bytes:
                on_bytes(len(piece))
        whole = digest.hexdigest() == entry.sha256
        if out:
            out.flush()
            os.fsync(out.fileno())
    finally:
        if out:
            out.close()
    sink.end(entry, whole)
    if not whole:
        yield FileFault(entry.path, "missing" if left else "differs", entry.sha256, digest.hexdigest())
    padding = -entry.size % BLOCK
    if file.read(padding) != bytes(padding) and not left:
        yield FileFault(entry.path, "padding", "0")


def _head(text: bytes, signature: bytes | None) -> list[tuple[str, bytes]]:
    parts = [(CHECKSUMS, _checksums(text, signature)), (MANIFEST, text)]
    return parts if signature is None else [*parts, (SIGNATURE, signature)]


def _checksums(text: bytes, signature: bytes | None) -> bytes:
    parts = {MANIFEST: text} | ({} if signature is None else {SIGNATURE: signature})
    return "".join(f"{hashlib.sha256(part).hexdigest()}  {name}\n" for name, part in parts.items()).encode()


def _front(file: BinaryIO, path: Path, name: str) -> bytes:
    found = file.read(BLOCK)
    member = _member(found)
    if member is None or member[0] != name:
        # The first header says what a file is; behind it, that it was damaged.
        raise (
            BundleError("bundle_not_one", path=path)
            if name == CHECKSUMS
            else damaged(path, [FileFault(name, "header", name, member[0] if member else "")])
        )
    size = member[1]
    if found != header(name, size) or size > LARGEST_HEAD:
        raise damaged(path, [FileFault(name, "header", name)])
    content, padding = file.read(size), file.read(-size % BLOCK)
    if len(content) < size or padding != bytes(-size % BLOCK):
        raise damaged(path, [FileFault(name, "padding", "0")])
    return content


def _member(block: bytes) -> tuple[str, int] | None:
    """Name and size, where ``block`` is the header of a tar member that can be."""
    try:
        info = tarfile.TarInfo.frombuf(block[:BLOCK], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return None
    return (info.name, info.size) if 0 <= info.size <= LARGEST else None
