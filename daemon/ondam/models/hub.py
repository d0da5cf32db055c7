"""Models from a hub (Hugging Face's, or what HF_ENDPOINT names): looked up, fetched, proven, put in place.

``huggingface_hub`` finds the token, knows what the hub's refusals mean and fetches; resuming after the
process has ended, hashes and what is kept are ours (docs/decisions/hub.md). Only ``fetch``
imports this module.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from ondam.errors import ModelError, OndamError
from ondam.messages import reader_language, text
from ondam.models.card import ModelCard, ModelFile
from ondam.models.pickles import named_as_pickle
from ondam.models.progress import Reporter, Task
from ondam.models.snapshot import SNAPSHOT, Snapshot
from ondam.models.store import CARD, CHUNK, Store, disk_error, flush_folder, sha256_of

AT_ONCE = 4
"""Files side by side, as for wheels."""

ATTEMPTS = 5
"""How often a file is taken up again whose connection was reset; huggingface_hub itself takes up others."""

PIECE = 1 << 20
"""Bytes after which what has come is on the disk, shown, and an end is heeded. (huggingface_hub's own: 10 MB;
a connection that breaks loses what does not fill a piece.)"""

LOOKUP_S = 10.0
"""For the hub to answer what a repository holds: a machine without a network is told within seconds."""

WAITED_FOR = (408, 429)
"""Where ``huggingface_hub`` waits as long as it is told."""

LONGEST_WAIT_S = 10.0
"""A hub that asks to be left alone for longer (429, Retry-After) is told of, instead of being waited for in
silence: it may ask for an hour."""

PUBLIC = "https://huggingface.co"

HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""Git's, or a SHA-256."""

ARRIVALS = ".downloads"
"""Inside the model's folder: files by their hash at the hub, ``.part`` while they grow."""

NEVER = ("*.md", "*.png", "*.jpg", "*.jpeg", "*.gif", "*.svg", "*.mp4", "*.pdf")
"""Pages and pictures: what no engine loads, where a card does not name its files."""

SAME_WEIGHTS = (
    "pytorch_model*.bin", "tf_model*.h5", "flax_model*.msgpack", "rust_model.ot", "consolidated*",
    "original/*", "onnx/*", "openvino/*",
)  # fmt: skip
"""The same weights for other programs, by the names that exporters give them; left out where the repository
has them in safetensors."""


SAFE_WEIGHTS = (".safetensors", ".gguf", ".onnx", ".bin")
"""Endings of weights that hold numbers alone (``.bin``: CTranslate2's; PyTorch's are told by their name)."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository. Of a large one the hub tells the SHA-256, of a small one git's own hash."""

    path: str
    size: int
    sha256: str | None
    git: str

    @property
    def key(self) -> str:
        """What it is called until it is in place."""
        return self.sha256 or self.git


@dataclass(frozen=True, slots=True)
class Found:
    """A repository at one commit."""

    card: ModelCard
    revision: str
    files: tuple[HubFile, ...]


def fetch(cards: Sequence[ModelCard], store: Store, progress: Reporter) -> list[OndamError]:
    """Bring every model of ``cards`` into the store. Returns what went wrong, at most one error a model.

    Hold ``store.changing()``. Room on the disk is looked at before the first file. A model that was there
    before stays whole until the new one is.
    """
    failures: list[OndamError] = []
    found: list[tuple[Found, list[HubFile]]] = []
    for card in cards:
        try:
            held = look_up(card)
            found.append((held, _lacking(held, store)))
        except OndamError as error:
            failures.append(error)
    try:
        store.need_room(
            sum(_left(store.folder(held.card.id), file) for held, lacks in found for file in lacks)
        )
    except OndamError as error:
        return [*failures, error]
    for held, lacks in found:
        try:
            _tell(held, lacks, progress)
            _bring(held, lacks, store, progress)
            _put_in_place(held, store)
        except OSError as error:
            failures.append(disk_error(error, store.folder(held.card.id)))
        except OndamError as error:
            failures.append(error)
    return failures


def look_up(card: ModelCard) -> Found:
    """What the card's repository holds and we want. Raises ModelError, within seconds without a network."""
    import httpx2
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    assert card.repository is not None
    no_long_waits()
    try:
        info = HfApi(endpoint=endpoint(), library_name="ondam").model_info(
            card.repository, revision=card.revision, files_metadata=True, timeout=LOOKUP_S
        )
    except (httpx2.HTTPError, OfflineModeIsEnabled, OSError, ValueError) as error:
        raise explained(error, card) from error
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        # What it sent is JSON, and nothing that a hub says of a repository.
        raise explained(ValueError("it tells of no repository"), card) from error
    everything = [
        HubFile(
            sibling.rfilename,
            (sibling.lfs.size if sibling.lfs else sibling.size) or 0,
            sibling.lfs.sha256 if sibling.lfs else None,
            sibling.blob_id or "",
        )
        for sibling in info.siblings or ()
    ]
    if not all(isinstance(f.path, str) and type(f.size) is int and f.size >= 0 for f in everything):
        raise explained(ValueError("it tells no names and sizes"), card)
    names = without_pickles(card, wanted(card, [file.path for file in everything]))
    if not names or not info.sha:
        patterns = ", ".join(card.repository_files) or "*"
        raise ModelError("hub_no_files", id=card.id, repository=card.repository, patterns=patterns)
    files = tuple(file for file in everything if file.path in names)
    if not all(HASH.fullmatch(str(value)) for value in (info.sha, *(file.key for file in files))):
        # The names of files that are fetched come of these: whatever answers there, it writes nowhere else.
        raise explained(ValueError("it tells no hashes"), card)
    return Found(card, info.sha, files)


def wanted(card: ModelCard, paths: Iterable[str]) -> list[str]:
    """Which of a repository's files belong to the model. Never one that is hidden or leaves its folder."""
    safe = [path for path in paths if _safe(path)]
    if card.repository_files:
        return [path for path in safe if _matches(path, card.repository_files)]
    never: tuple[str, ...] = NEVER
    if any(path.endswith(".safetensors") for path in safe):
        never += SAME_WEIGHTS
    return [path for path in safe if not _matches(path, never)]


def without_pickles(card: ModelCard, names: Sequence[str]) -> set[str]:
    """``names`` less those of weights that would run a program when they are loaded.

    Raises ModelError where the card asks for one by name, or nothing else holds the weights.
    """
    pickled = {name for name in names if named_as_pickle(name)}
    left = set(names) - pickled
    if pickled and (card.repository_files or not any(name.endswith(SAFE_WEIGHTS) for name in left)):
        found = ", ".join(sorted(pickled))
        raise ModelError("hub_only_pickles", id=card.id, repository=card.repository, files=found)
    return left


def endpoint() -> str:
    """The hub's address, without a slash at its end."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or PUBLIC


def explained(error: Exception, card: ModelCard) -> ModelError:
    """What the hub's refusal, or its silence, means for a person."""
    import httpx2
    from huggingface_hub import errors

    facts: Mapping[str, object] = {
        "id": card.id,
        "repository": card.repository,
        "revision": card.revision or "main",
        "hub": endpoint(),
    }
    match error:
        case errors.OfflineModeIsEnabled():
            return ModelError("hub_offline", **facts)
        case errors.GatedRepoError():
            return ModelError("hub_gated", token=_token_file(), **facts)
        case errors.RevisionNotFoundError():
            return ModelError("hub_no_revision", **facts)
        case errors.RepositoryNotFoundError() | errors.DisabledRepoError():
            return ModelError("hub_no_repository", token=_token_file(), **facts)
        case errors.HfHubHTTPError() if error.response.status_code in (401, 403):
            # 403 without a word on acceptance: a token that is not made for reading it.
            return ModelError(
                "hub_token_refused", status=error.response.status_code, token=_token_file(), **facts
            )
        case errors.HfHubHTTPError():
            return ModelError("hub_refused", reason=f"HTTP {error.response.status_code}", **facts)
        case httpx2.TimeoutException():
            return ModelError("hub_unreachable", reason="no answer in time", **facts)
        case httpx2.TransportError():
            return ModelError("hub_unreachable", reason=str(error) or type(error).__name__, **facts)
        case _:
            return ModelError("hub_refused", reason=str(error) or type(error).__name__, **facts)


def _safe(path: str) -> bool:
    parts = PurePosixPath(path).parts
    hidden = any(part.startswith(".") for part in parts)
    # "./config.json" and "a//b" are other names of a file that has one already.
    written = path.isprintable() and "/".join(parts) == path
    # Names under which the store keeps its own notes.
    return bool(parts) and written and not (hidden or path in (CARD, SNAPSHOT))


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _token_file() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_TOKEN_PATH)


def _lacking(found: Found, store: Store) -> list[HubFile]:
    """What is neither in place nor waiting to be put there."""
    arrivals = store.folder(found.card.id) / ARRIVALS
    ready = _in_place(found, store)
    lacks = (file for file in found.files if file.path not in ready and not (arrivals / file.key).exists())
    # The same contents under two names come once.
    return list({file.key: file for file in lacks}.values())


def _in_place(found: Found, store: Store) -> dict[str, str]:
    """Paths of files that are what the repository holds, with their SHA-256."""
    known = store.known(found.card)
    faulty = {fault.path for fault in store.check(known).faults}
    folder = store.folder(found.card.id)
    whole = {file.path: file.sha256 for file in known.files if folder / file.path not in faulty}
    return {
        file.path: whole[file.path]
        for file in found.files
        if file.path in whole and _is(file, folder / file.path, whole[file.path])
    }


def _left(folder: Path, file: HubFile) -> int:
    part = folder / ARRIVALS / f"{file.key}.part"
    return max(0, file.size - (part.stat().st_size if part.exists() else 0))


def _tell(found: Found, lacks: Sequence[HubFile], progress: Reporter) -> None:
    if lacks:
        size = sum(file.size for file in lacks)
        progress.say(
            text(
                "hub_begins",
                reader_language(),
                id=found.card.id,
                count=len(lacks),
                size=f"{size / 1e9:,.2f} GB",
                repository=found.card.repository,
                revision=found.revision[:12],
                hub=endpoint(),
            )
        )


def _bring(found: Found, lacks: Sequence[HubFile], store: Store, progress: Reporter) -> None:
    arrivals = store.folder(found.card.id) / ARRIVALS
    arrivals.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    with ThreadPoolExecutor(AT_ONCE, "hub") as pool:
        jobs = [
            pool.submit(_obtain, file, found, arrivals, progress.task(f"{found.card.id} ({file.path})"), stop)
            for file in lacks
        ]
        try:
            for job in jobs:
                job.result()
        finally:
            # Ctrl-C lands here, and the first failure: the others end at their next piece, and keep it.
            stop.set()
            pool.shutdown(cancel_futures=True)


class _TooLong(Exception):
    """More comes than was announced; it might never end."""


class _Stopped(Exception):
    """Somebody asked for the downloads to end; what has come stays for the next time."""


def _obtain(file: HubFile, found: Found, arrivals: Path, task: Task, stop: threading.Event) -> None:
    part = arrivals / f"{file.key}.part"
    resumed = part.exists() and part.stat().st_size > 0
    if resumed and part.stat().st_size > file.size:
        part.unlink()
    _download(file, found, part, task, stop)
    if not _is(file, part):
        if resumed:
            # What lay there from last time was not the beginning of this file: once more, from nothing.
            part.unlink()
            _download(file, found, part, task, stop)
        if not _is(file, part):
            size = part.stat().st_size
            part.unlink()
            raise ModelError(
                "hub_file_differs",
                id=found.card.id,
                path=file.path,
                hub=endpoint(),
                expected_size=file.size,
                expected=file.key,
                found_size=size,
            )
    part.replace(arrivals / file.key)
    task.finish()


def no_long_waits() -> None:
    """Let ``huggingface_hub`` raise where the hub asks it to wait for longer than ``LONGEST_WAIT_S``."""
    import httpx2
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    def look(response: Any) -> None:
        asked = response.headers.get("Retry-After", "")
        limit = re.search(r";\s*t=([0-9]{1,9})", response.headers.get("RateLimit", ""))
        seconds = max(int(asked) if re.fullmatch(r"[0-9]{1,9}", asked) else 0, int(limit[1]) if limit else 0)
        if response.status_code in WAITED_FOR and seconds > LONGEST_WAIT_S:
            told = f"HTTP {response.status_code}, and asks to wait {seconds} s"
            raise httpx2.HTTPStatusError(told, request=response.request, response=response)

    def client() -> Any:
        made = default_client_factory()
        made.event_hooks = {**made.event_hooks, "response": [*made.event_hooks.get("response", ()), look]}
        return made

    set_client_factory(client)


def _download(file: HubFile, found: Found, part: Path, task: Task, stop: threading.Event) -> None:
    import httpx2
    from huggingface_hub import constants, hf_hub_url
    from huggingface_hub.errors import OfflineModeIsEnabled
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import (  # type: ignore[attr-defined]  # it exports them, in a way mypy cannot see
        build_hf_headers,
        disable_progress_bars,
    )

    # What it would show and say is told by our own bars and errors.
    disable_progress_bars()
    constants.DOWNLOAD_CHUNK_SIZE = PIECE
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    assert found.card.repository is not None
    url = hf_hub_url(found.card.repository, file.path, revision=found.revision, endpoint=endpoint())
    # Plain, so that a part of it is a part of the file.
    headers = build_hf_headers(library_name="ondam", headers={"Accept-Encoding": "identity"})
    failures = 0
    while True:
        with part.open("r+b" if part.exists() else "w+b", buffering=0) as out:
            have = out.seek(0, io.SEEK_END)
            task.size(file.size, have)
            watched = cast(BinaryIO, _Watched(out, task, file.size, stop))
            try:
                http_get(url, watched, resume_size=have, headers=headers, expected_size=file.size)
                os.fsync(out.fileno())
                return
            except httpx2.TransportError as error:
                failures = 1 if out.seek(0, io.SEEK_END) > have else failures + 1
                if failures >= ATTEMPTS:
                    raise _broken_off(error, found.card) from error
            except (httpx2.HTTPError, OfflineModeIsEnabled, ValueError) as error:
                raise explained(error, found.card) from error
            except _TooLong:
                return  # told by its size
            except OSError as error:
                if error.errno is not None:
                    raise disk_error(error, part) from error
                return  # it ended at another length than was announced; the hash will tell
        if stop.wait(0.5):
            raise _Stopped


def _broken_off(error: Exception, card: ModelCard) -> ModelError:
    reason = str(error) or type(error).__name__
    return ModelError("hub_broke_off", id=card.id, hub=endpoint(), reason=reason)


class _Watched:
    """The file that a download is written to: tells how far it is, and ends it when asked to."""

    def __init__(self, out: Any, task: Task, size: int, stop: threading.Event) -> None:
        # Any: a raw file, which typeshed knows under another name than the one that open gives.
        self._out, self._task, self._size, self._stop = out, task, size, stop

    def write(self, piece: bytes) -> int:
        if self._stop.is_set():
            raise _Stopped
        room = self._size - self.tell()
        if room < len(piece):
            piece = piece[: room + 1]  # one byte more shows whoever looks that it was too long
        done = 0
        while done < len(piece):  # a raw file may take less than it is given
            done += self._out.write(piece[done:])
        self._task.advance(done)
        if done > room:
            raise _TooLong
        return done

    def tell(self) -> int:
        return int(self._out.tell())

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return int(self._out.seek(place, whence))

    def truncate(self, size: int | None = None) -> int:
        """The hub sent the whole file although the rest of it was asked for."""
        kept = int(self._out.truncate(size))
        self._task.size(self._size, kept)
        return kept


def _is(file: HubFile, path: Path, sha256: str | None = None) -> bool:
    """Whether the file at ``path`` is what the hub announced. ``sha256``: its hash, where known already."""
    if path.stat().st_size != file.size:
        return False
    if file.sha256:
        return (sha256 or sha256_of(path)) == file.sha256
    # git's name of a blob (git-hash-object): no proof against forgery, but nothing was lost on the way.
    digest = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    with path.open("rb") as opened:
        while piece := opened.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest() == file.git


def _put_in_place(found: Found, store: Store) -> None:
    """All files at once under their names, then the snapshot, which makes the model whole."""
    card, folder = found.card, store.folder(found.card.id)
    arrivals = folder / ARRIVALS
    before = Snapshot.read(folder)
    in_place = _in_place(found, store)
    files = []
    for file in found.files:
        target, arrived = folder / file.path, arrivals / file.key
        sha256 = in_place.get(file.path) or file.sha256 or sha256_of(arrived)
        files.append(ModelFile(path=file.path, size=file.size, sha256=sha256))
        if file.path not in in_place:
            target.parent.mkdir(parents=True, exist_ok=True)
            if sum(other.key == file.key for other in found.files) > 1:
                with store.writing(target) as out, arrived.open("rb") as opened:
                    shutil.copyfileobj(opened, out, CHUNK)
            else:
                arrived.replace(target)
    snapshot = Snapshot(
        repository=card.repository or "", asked=card.revision, revision=found.revision, files=files
    )
    with store.writing(folder / SNAPSHOT) as out:
        out.write(snapshot.as_bytes())
    store.record_whole(card.model_copy(update={"files": files}))
    # An engine that loads whatever lies in the folder must not find shards of what was there before.
    for old in before.files if before else ():
        if old.path not in {file.path for file in files}:
            (folder / old.path).unlink(missing_ok=True)
    for left in arrivals.iterdir() if arrivals.exists() else ():
        left.unlink()
    if arrivals.exists():
        arrivals.rmdir()
    flush_folder(folder)
