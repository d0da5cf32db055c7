"""What Ondam keeps on this machine, by kind: where, how much, since when, for how long, and what is in it."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import filelock

from ondam.config import Config
from ondam.errors import ConfigError, ControlError
from ondam.journal.keep import Keep
from ondam.messages import typed
from ondam.owner import hand_over
from ondam.places import Places
from ondam.planner.correction import FILE as MEASURED

Kind = Literal[
    "text",
    "audio",
    "copies",
    "audit",
    "journal",
    "logs",
    "measured",
    "runtime",
    "config",
    "models",
    "engines",
    "caches",
    "other",
]
Holds = Literal["words", "sound", "perhaps_words", "timings", "events", "figures", "settings", "program"]

OF_USE: tuple[Kind, ...] = ("text", "audio", "copies", "audit", "journal", "logs", "measured")
"""What comes of being used, in the order in which it is removed: what tells most goes first."""

OF_PROGRAM: tuple[Kind, ...] = ("config", "models", "engines", "caches")
"""What Ondam runs with. Removed only where it is named."""

OVERWRITTEN: frozenset[Kind] = frozenset({"text", "audio", "copies", "audit", "journal", "logs"})
"""Overwritten before they are deleted. (A disk that writes elsewhere, an SSD or a copy-on-write file system,
keeps the old blocks for a while all the same: only encryption helps there.)"""

ZEROS = bytes(1 << 20)

ENDED_FIRST = "ondam down && ondam privacy remove …"
STOPPED_FIRST = (
    "sudo systemctl stop ondam && sudo ondam --system privacy remove …; sudo systemctl start ondam"
)


@dataclass(frozen=True, slots=True)
class Kept:
    """One kind of thing that is kept."""

    kind: Kind
    paths: tuple[Path, ...]
    """Files and folders, whether they are there or not."""
    holds: Holds
    days: int | None = None
    """How long it is kept; None: until it is removed."""
    most_bytes: int | None = None
    """How much of it is kept at most; None: as much as comes."""
    wanted: bool = True
    """Whether the configuration has more of it written."""
    files: int = 0
    bytes: int = 0
    since: str | None = None
    """ISO 8601, the oldest of it."""
    excluded: tuple[Path, ...] = field(default=(), repr=False)
    """Parts of ``paths`` that are another kind."""
    behind_link: str | None = field(default=None, repr=False)
    """What Ondam's own files are called; where a folder of ``paths`` is a link, these alone are its."""

    def each(self) -> Iterator[Path]:
        """Every file of it: no folder, and no link followed but one that ``paths`` names."""
        for path in self.paths:
            if self.behind_link and path.is_symlink() and path.is_dir():
                # Moved to another disk. Whatever else lies there is somebody's own.
                yield from (each for each in _files(path.resolve(), frozenset()) if self._is_own(each))
            else:
                yield from _files(path, frozenset(self.excluded))

    def _is_own(self, path: Path) -> bool:
        return bool(self.behind_link and re.fullmatch(self.behind_link, path.name)) and not path.is_symlink()


def inventory(config: Config, places: Places) -> list[Kept]:
    """Every file below Ondam's folders belongs to exactly one kind."""
    keep = Keep.of(config, places)
    journal = places.journal
    named = (keep.audit or places.audit,)
    rotated = tuple(path for log in dict.fromkeys((*named, places.audit)) for path in _lines(log))
    copies = _beside(journal, (".broken-*", ".schema-*"))
    measured = places.state / MEASURED
    known: list[Kept] = [
        Kept(
            "text",
            tuple(_beside(_real(_given(keep.texts)), ("", "-*", ".broken-*"))),
            "words",
            keep.text_days,
            wanted=keep.text,
        ),
        Kept(
            "audio",
            (_given(keep.sounds),),
            "sound",
            keep.audio_days,
            keep.audio_bytes,
            wanted=keep.audio,
            behind_link=r"\.?\d{8}T\d{12}-.*\.(flac|part)",
        ),
        Kept("copies", tuple(copies), "perhaps_words", min(keep.text_days, keep.days)),
        Kept(
            "audit",
            tuple(dict.fromkeys(rotated)),
            "timings",
            most_bytes=keep.audit_bytes * (keep.audit_files + 1),
            wanted=keep.audit is not None,
        ),
        Kept(
            "journal", tuple(_beside(_real(journal), ("", "-wal", "-shm", "-journal"))), "timings", keep.days
        ),
        Kept("logs", (places.logs,), "events", behind_link=r".*\.log(\.\d+)?"),
        Kept("measured", (measured,), "figures"),
        Kept("runtime", (places.runtime,), "events"),
        Kept("config", (places.config,), "settings"),
        Kept("models", (places.models,), "program"),
        Kept("engines", (places.environments, places.user_engines), "program"),
        Kept("caches", (places.data / "caches",), "program"),
    ]
    links = (_given(keep.texts), journal, *named, places.audit)
    taken = (*(path for kept in known for path in kept.paths), *(path for path in links if path.is_symlink()))
    known.append(Kept("other", (places.state, places.data), "program", excluded=taken))
    return [_measured(kept) for kept in known]


def remove(kinds: Iterable[Kind], config: Config, places: Places, on_file: Callable[[Path], None]) -> int:
    """Delete what is kept of ``kinds``; the bytes freed. What tells most is deleted first.

    Raises ControlError ``privacy_daemon_runs`` while a daemon has the files, ConfigError where a file cannot
    be deleted: what was deleted before stays deleted.
    """
    wanted = set(kinds)
    freed = 0
    with _no_daemon(places):
        found = {kept.kind: kept for kept in inventory(config, places)}
        for kind in (*OF_USE, *OF_PROGRAM):
            if kind in wanted:
                for path in list(found[kind].each()):
                    freed += _delete(path, overwrite=kind in OVERWRITTEN)
                    on_file(path)
                _empty_folders(found[kind].paths)
    return freed


@contextmanager
def _no_daemon(places: Places) -> Iterator[None]:
    """No daemon has the files, and none begins meanwhile."""
    if not places.state.is_dir():
        yield
        return
    lock = filelock.FileLock(places.lock)
    try:
        lock.acquire(timeout=0)
        # Root's own would keep the daemon of whoever these folders belong to from starting.
        hand_over(places.state)
    except filelock.Timeout as error:
        command = ENDED_FIRST if places.group is None else typed(STOPPED_FIRST)
        raise ControlError("privacy_daemon_runs", command=command) from error
    except OSError as error:
        lock.release()
        raise ConfigError("privacy_not_removed", path=places.lock, reason=error.strerror) from error
    try:
        yield
    finally:
        lock.release()


def _delete(path: Path, *, overwrite: bool) -> int:
    try:
        found = path.lstat()
        if overwrite and stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            # One with another name is somebody else's too.
            _overwrite(path, found.st_size)
        path.unlink()
        _flush(path.parent)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise ConfigError("privacy_not_removed", path=path, reason=error.strerror or error) from error
    return found.st_size


def _overwrite(path: Path, size: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while size > 0:
            size -= os.write(descriptor, ZEROS[: min(size, len(ZEROS))])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush(folder: Path) -> None:
    """Make the deletion survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _empty_folders(paths: Iterable[Path]) -> None:
    for root in paths:
        if root.is_symlink() or not root.is_dir():
            continue
        for folder, _, _ in os.walk(root, topdown=False):
            with suppress(OSError):  # not empty: something came meanwhile
                Path(folder).rmdir()


def _measured(kept: Kept) -> Kept:
    files = size = 0
    oldest = float("inf")
    for path in kept.each():
        with suppress(OSError):  # gone meanwhile
            found = path.lstat()
            files, size, oldest = files + 1, size + found.st_size, min(oldest, found.st_mtime)
    since = None if files == 0 else datetime.fromtimestamp(oldest, UTC).isoformat(timespec="seconds")
    if files and kept.kind in {"text", "journal"}:
        since = _oldest_row(kept) or since
    return replace(kept, files=files, bytes=size, since=since)


def _oldest_row(kept: Kept) -> str | None:
    table = "texts" if kept.kind == "text" else "turns"
    # Immutable: looking makes no files beside it, and waits for nobody.
    address = f"{kept.paths[0].absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as opened:
            found = opened.execute(f"SELECT min(started_at) FROM {table}").fetchone()[0]
    except sqlite3.Error:
        return None  # broken, or busy: the file's own age has to do
    return found if isinstance(found, str) else None


def _real(path: Path) -> Path:
    """The file itself, where ``path`` is a link to one: what is written through it lies there."""
    return path.resolve() if path.is_symlink() and path.is_file() else path


def _lines(log: Path) -> Iterator[Path]:
    """The auditors' file and its older ones. A folder, a device or ``notes.md`` beside ``notes`` is none."""
    for path in (log, *_beside(log, (".*",))):
        if path != log and re.fullmatch(r"\d+", path.name.removeprefix(f"{log.name}.")) is None:
            continue
        if path.is_file() or not (path.exists() or path.is_symlink()):
            yield _real(path)


def _given(path: Path | None) -> Path:
    assert path is not None  # ``Keep.of`` names both
    return path


def _beside(path: Path, endings: Iterable[str]) -> list[Path]:
    """``path`` where "" is among the endings, and what is there of those beside it."""
    found: list[Path] = []
    for ending in endings:
        if not ending:
            found.append(path)
        elif path.parent.is_dir():
            found += sorted(path.parent.glob(_literal(path.name) + ending))
    return found


def _literal(name: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


def _files(path: Path, excluded: frozenset[Path]) -> Iterator[Path]:
    if path in excluded:
        return
    try:
        if not path.is_symlink() and path.is_dir():
            for entry in sorted(path.iterdir()):
                yield from _files(entry, excluded)
        elif path.is_symlink() or path.exists():
            yield path
    except OSError:
        return  # not ours to look at
