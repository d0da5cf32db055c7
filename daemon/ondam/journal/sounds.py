"""The user's utterances as FLAC files, where the user wants them kept: bounded in size and in days."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import soundfile

from ondam.journal.texts import AHEAD, written_at
from ondam.journal.turn import Turn
from ondam.types import HEARING_RATE_HZ

SUFFIX = ".flac"


class Sounds:
    """A folder with one file per utterance, named after when it was said."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self.folder = folder
        self._most_bytes = most_bytes

    def add(self, turn: Turn) -> None:
        """Keep what the user said in ``turn``; the oldest go where there are too many. Raises OSError."""
        if turn.sound is None or not len(turn.sound):
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = f"{turn.started_at.astimezone(UTC):%Y%m%dT%H%M%S%f}-{turn.session}-{turn.id}"
        path = self.folder / (name + SUFFIX)
        beside = path.with_name(f".{name}.part")
        descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                soundfile.write(file, turn.sound, HEARING_RATE_HZ, format="FLAC", subtype="PCM_16")
            beside.replace(path)
        except soundfile.LibsndfileError as error:
            raise OSError(f"not written: {path}") from error
        finally:
            beside.unlink(missing_ok=True)
        self._bound()

    def forget_before(self, oldest: datetime, now: datetime) -> int:
        """Delete those from before ``oldest``; how many it was. Raises OSError."""
        gone = 0
        for path in self._files():
            if (at := _said_at(path)) is None:
                continue
            if (written_at(path, now) if at > now + AHEAD else at) >= oldest:
                continue
            path.unlink(missing_ok=True)
            gone += 1
        for left in self.folder.glob(".*.part"):  # what a crash interrupted
            if written_at(left, now) < oldest:
                left.unlink(missing_ok=True)
        return gone

    def _bound(self) -> None:
        files = [(path, path.stat().st_size) for path in self._files()]
        total = sum(size for _, size in files)
        for path, size in files:
            if total <= self._most_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _files(self) -> Iterator[Path]:
        """Oldest first: their names are times."""
        yield from sorted(self.folder.glob(f"*{SUFFIX}"))


def _said_at(path: Path) -> datetime | None:
    try:
        return datetime.strptime(path.name.split("-")[0], "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return None  # not one of ours: left alone
