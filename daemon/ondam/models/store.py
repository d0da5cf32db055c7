"""Where weights lie, and whether they are whole. Never reaches for the network, never tries twice.

``<root>/<id>/`` holds a model's files as its card lists them, beside ``.verified.json`` (what was hashed
when), for an imported model ``card.json``, and for one from a hub ``hub.json`` (what was fetched).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import filelock

from ondam.carried import carried
from ondam.config.schema import check
from ondam.errors import ConfigError, ModelError
from ondam.messages import Phrase, Phrases
from ondam.models.card import ModelCard, ModelFile
from ondam.models.pickles import refuse_pickles
from ondam.models.snapshot import Snapshot

State = Literal["missing", "partial", "whole", "broken"]
Fault = Literal["missing", "size", "hash", "pointer", "page", "unreadable"]
"""``pointer``: Git LFS's stand-in for the file; ``page``: a web page that was saved in its place."""

CHUNK = 1 << 20
MARGIN = 64 << 20
"""Bytes that must stay free on the disk."""

LFS = b"version https://git-lfs.github.com/spec/"
RECORD = ".verified.json"
CARD = "card.json"


@dataclass(frozen=True, slots=True)
class FileFault:
    """What is wrong with one file. Sizes in bytes; what could not be found out is None."""

    path: Path
    fault: Fault
    expected_size: int
    expected_sha256: str
    found_size: int | None = None
    found_sha256: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """How a model is found on the disk."""

    card: ModelCard
    state: State
    faults: tuple[FileFault, ...] = ()


class Store:
    """The folder of all models. Reading needs no lock; whoever changes it holds ``changing()``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, model_id: str) -> Path:
        """Where a model lies, or would: in the store, else in what Ondam's own bundle brought."""
        own, version = self.root / model_id, carried()
        if version is None or own.is_dir() or not (brought := version / "models" / model_id).is_dir():
            return own
        return brought

    def path(self, card: ModelCard) -> Path:
        """What an engine is given. Raises ModelError, with what to type, unless the model is whole."""
        condition = self.check(card)
        if condition.state != "whole":
            raise fault_error(condition, self.folder(card.id))
        for file in condition.card.files:
            refuse_pickles(self.folder(card.id) / file.path)
        return self.folder(card.id) / card.entry

    def check(
        self, card: ModelCard, *, full: bool = False, on_bytes: Callable[[int], None] | None = None
    ) -> Condition:
        """Compare the files with the card.

        A file is hashed when it has changed since it was last found whole (size, inode times), and always
        when ``full``; ``on_bytes`` is told how much was hashed.
        """
        card = self.known(card)
        folder = self.folder(card.id)
        record = _read_record(self._beside(folder))
        now: dict[str, list[object]] = {}
        faults = []
        for file in card.files:
            fault, stamp = _check_file(
                folder / file.path, file, None if full else record.get(file.path), on_bytes
            )
            if fault:
                faults.append(fault)
            else:
                now[file.path] = stamp
        if any(record.get(path) != stamp for path, stamp in now.items()):
            _write_record(self._beside(folder), now)
        if not card.files:
            return Condition(card, "missing")  # of a hub's model nothing is known before it is fetched
        if not faults:
            return Condition(card, "whole")
        absent = [fault for fault in faults if fault.fault == "missing"]
        if len(absent) < len(faults):
            return Condition(card, "broken", tuple(faults))
        return Condition(card, "missing" if len(absent) == len(card.files) else "partial", tuple(faults))

    def _beside(self, folder: Path) -> Path:
        """Where is noted what was hashed. Not in what a bundle brought: not everybody may write there."""
        return folder if folder.parent == self.root else self.root / ".brought" / folder.name

    def known(self, card: ModelCard) -> ModelCard:
        """``card`` with the files that were fetched from its repository; itself where it names its files."""
        if card.files or card.repository is None:
            return card
        snapshot = Snapshot.read(self.folder(card.id))
        if snapshot is None or not snapshot.answers(card):
            return card
        return card.model_copy(update={"files": snapshot.files})

    def record_whole(self, card: ModelCard) -> None:
        """Note that every file was hashed while it was written, so that no start has to do it again."""
        folder = self.folder(card.id)
        _write_record(
            folder, {file.path: _stamp((folder / file.path).stat(), file.sha256) for file in card.files}
        )

    def imported(self, on_broken: Callable[[ModelError], None] | None = None) -> list[ModelCard]:
        """Models that were brought by hand.

        A card that cannot be read is left out, so that it takes no other model with it, and told to
        ``on_broken``.
        """
        cards = []
        version = carried()
        brought = [] if version is None else sorted((version / "models").glob(f"*/{CARD}"))
        own = sorted(self.root.glob(f"*/{CARD}"))
        taken = {path.parent.name for path in own}
        for path in [*own, *(path for path in brought if path.parent.name not in taken)]:
            try:
                cards.append(check(ModelCard, json.loads(path.read_bytes()), path))
            except (OSError, ValueError, RecursionError, ConfigError) as error:
                if on_broken:
                    on_broken(ModelError("card_broken", id=path.parent.name, path=path, reason=error))
        return cards

    def remove(self, model_id: str) -> int:
        """Delete a model; returns the bytes freed. A running engine keeps what it has loaded.

        Raises ModelError when there is nothing to delete, or it cannot be.
        """
        folder = self.folder(model_id)
        if not folder.is_dir():
            raise ModelError("model_not_here", id=model_id, path=folder)
        if folder != self.root / model_id:
            raise ModelError("model_brought", id=model_id, path=folder)
        with self.changing():
            freed = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise ModelError("store_unwritable", path=folder, reason=error.strerror) from error
        return freed

    @contextmanager
    def changing(self, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
        """Hold the store against other processes; waits for one that has it, after calling ``on_wait``."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self.root / ".lock")
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                if on_wait:
                    on_wait()
                lock.acquire()
        except OSError as error:
            raise ModelError("store_unwritable", path=self.root, reason=error.strerror or error) from error
        try:
            yield
        finally:
            lock.release()

    def need_room(self, size: int) -> None:
        """Raises ModelError when the disk has no room for ``size`` more bytes."""
        free = shutil.disk_usage(self.root).free
        if free < size + MARGIN:
            raise ModelError(
                "disk_too_small", path=self.root, needed=_megabytes(size + MARGIN), free=_megabytes(free)
            )

    @contextmanager
    def writing(self, target: Path) -> Iterator[BinaryIO]:
        """A file that appears under its name only when it is complete and on the disk."""
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.part")
        try:
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        flush_folder(target.parent)


def fault_error(condition: Condition, folder: Path) -> ModelError:
    """The error that tells a person what is wrong with a model and what to type."""
    card = condition.card
    again = card.origin != "import"
    command = f"ondam models add {card.id}" if again else f"ondam models remove {card.id}"
    if condition.state == "missing":
        code = "model_missing" if again else "model_missing_imported"
        return ModelError(code, id=card.id, path=folder / card.entry, command=command)
    return ModelError(
        "model_broken" if again else "model_broken_imported",
        id=card.id,
        path=folder,
        faults=Phrases(tuple(map(describe, condition.faults))),
        command=command,
    )


def describe(fault: FileFault) -> Phrase:
    """One line on one file."""
    return Phrase(
        "model_file_absent" if fault.found_size is None else "model_file_differs",
        path=fault.path,
        fault=Phrase(f"model_fault_{fault.fault}", reason=fault.reason),
        expected_size=fault.expected_size,
        expected=fault.expected_sha256,
        found_size=fault.found_size,
        found=fault.found_sha256,
    )


def sha256_of(path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
    """The file's hash. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
            if on_bytes:
                on_bytes(len(piece))
    return digest.hexdigest()


def disk_error(error: OSError, path: Path) -> ModelError:
    """A failed write as ModelError: no room, or no right."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return ModelError("disk_full" if full else "store_unwritable", path=path, reason=error.strerror or error)


def flush_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_file(
    path: Path, file: ModelFile, known: list[object] | None, on_bytes: Callable[[int], None] | None
) -> tuple[FileFault | None, list[object]]:
    def fault(kind: Fault, size: int | None = None, found: str | None = None, reason: str = "") -> FileFault:
        return FileFault(path, kind, file.size, file.sha256, size, found, reason)

    try:
        status = path.stat()
        with path.open("rb") as opened:
            head = opened.read(256)
        stamp = _stamp(status, file.sha256)
        if known == stamp and status.st_size == file.size:
            return None, stamp
        found = sha256_of(path, on_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return fault("missing"), []
    except OSError as error:
        return fault("unreadable", reason=error.strerror or str(error)), []
    if found == file.sha256:
        return None, stamp
    if head.startswith(LFS):
        return fault("pointer", status.st_size, found), []
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return fault("page", status.st_size, found), []
    return fault("hash" if status.st_size == file.size else "size", status.st_size, found), []


def _stamp(status: os.stat_result, sha256: str) -> list[object]:
    # The change time too: it moves when a file of the same size is moved into place, or its modification time
    # is set back. It also moves without a change of contents (chmod); that costs one more hashing.
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, sha256]


def _read_record(folder: Path) -> dict[str, list[object]]:
    try:
        record = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        # No record, or half of one, only means that the files are hashed.
        return {}
    return record if isinstance(record, dict) else {}


def _write_record(folder: Path, stamps: dict[str, list[object]]) -> None:
    temporary = folder / f"{RECORD}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(stamps), "utf-8")
        temporary.replace(folder / RECORD)
    except OSError:
        # A store that this user may only read: the files are hashed at each start.
        return


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
