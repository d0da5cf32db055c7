"""Bring a model by hand: a GGUF file, a folder with a CTranslate2 Whisper model, or a Piper voice."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ondam.errors import ModelError
from ondam.models import gguf
from ondam.models.card import ModelCard, ModelFile
from ondam.models.pickles import refuse_pickles
from ondam.models.progress import Reporter
from ondam.models.store import CARD, CHUNK, LFS, Store, disk_error, flush_folder, sha256_of

UNKNOWN_LICENCE = "LicenseRef-unknown"
"""An SPDX reference for what the file does not say."""

WHISPER_ENGLISH_VOCABULARY = 51_864
"""Tokens of Whisper's English-only models; the multilingual ones have 51,865 or more (openai/whisper)."""

WHISPER_FILES = (
    "model.bin",
    "config.json",
    "tokenizer.json",
    "vocabulary.txt",
    "vocabulary.json",
    "preprocessor_config.json",
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a path turned out to be."""

    stage: Literal["stt", "llm", "tts"]
    name: str
    sources: dict[str, Path]
    """Place in the model's folder → file to take."""
    entry: str
    languages: list[str] = field(default_factory=list)
    licence: str = UNKNOWN_LICENCE
    quantization: str = ""
    context_length: int | None = None


def recognise(path: Path) -> Found:
    """What ``path`` is, without copying anything.

    Raises ModelError that says what is missing, cut off, or not known.
    """
    if not path.exists():
        raise ModelError("import_missing", path=path)
    refuse_pickles(path)
    if path.is_dir():
        return _folder(path)
    with _readable(path) as file:
        head = file.read(256)
    if head.startswith(gguf.MAGIC):
        return _gguf(path)
    if path.name.endswith((".onnx", ".onnx.json")):
        return _voice(path if path.suffix == ".onnx" else path.with_suffix(""))
    if head.startswith(LFS):
        raise ModelError("import_pointer", path=path)
    if path.name == "model.bin":
        return _whisper(path.parent)
    raise ModelError("import_unknown", path=path)


def bring(
    found: Found,
    store: Store,
    taken: set[str],
    progress: Reporter,
    *,
    model_id: str | None = None,
    link: bool = False,
) -> ModelCard:
    """Put ``found`` into the store and return its new card. ``link`` refers to the files instead of copying.

    Raises ModelError when the id is in ``taken`` or has the wrong form, or the disk is too small.
    """
    model_id = model_id or _id_of(found)
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", model_id):
        raise ModelError("id_malformed", id=model_id)
    with store.changing():
        if model_id in taken or store.folder(model_id).exists():
            raise ModelError("id_taken", id=model_id)
        store.need_room(0 if link else sum(path.stat().st_size for path in found.sources.values()))
        incoming = store.root / ".incoming"
        shutil.rmtree(incoming, ignore_errors=True)
        try:
            files = [
                _take(source, incoming / place, place, store, progress, link=link)
                for place, source in found.sources.items()
            ]
            card = ModelCard(
                id=model_id,
                stage=found.stage,
                languages=found.languages,
                licence=found.licence,
                note_en=found.name,
                note_ko=found.name,
                quantization=found.quantization,
                context_length=found.context_length,
                entry=found.entry,
                files=files,
            )
            with store.writing(incoming / CARD) as out:
                out.write(card.model_dump_json(indent=2).encode())
            incoming.replace(store.folder(model_id))
            flush_folder(store.root)
        except OSError as error:
            raise disk_error(error, incoming) from error
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
        store.record_whole(card)
    return card


def _take(
    source: Path, target: Path, place: str, store: Store, progress: Reporter, *, link: bool
) -> ModelFile:
    source = source.resolve()
    task = progress.task(place)
    task.size(source.stat().st_size)
    if link:
        digest = sha256_of(source, task.advance)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
    else:
        hashed = hashlib.sha256()
        with source.open("rb") as file, store.writing(target) as out:
            while piece := file.read(CHUNK):
                hashed.update(piece)
                out.write(piece)
                task.advance(len(piece))
        digest = hashed.hexdigest()
    task.finish()
    return ModelFile(path=place, size=target.stat().st_size, sha256=digest)


def _folder(path: Path) -> Found:
    if (path / "model.bin").is_file():
        return _whisper(path)
    ggufs = [file for file in sorted(path.glob("*.gguf")) if not re.search(r"-0*[2-9]\d*-of-", file.name)]
    voices = sorted(path.glob("*.onnx"))
    if len(ggufs) == 1 and not voices:
        return _gguf(ggufs[0])
    if len(voices) == 1 and not ggufs:
        return _voice(voices[0])
    raise ModelError("import_folder_ambiguous" if ggufs or voices else "import_unknown", path=path)


def _gguf(path: Path) -> Found:
    pieces = _pieces(path)
    for piece in pieces[1:]:
        gguf.read_header(piece)
    header = gguf.read_header(pieces[0])
    return Found(
        stage="llm",
        name=header.name or path.stem,
        sources={piece.name: piece for piece in pieces},
        entry=pieces[0].name,
        languages=list(header.languages),
        licence=header.licence or UNKNOWN_LICENCE,
        quantization=header.quantization,
        context_length=header.context_length,
    )


def _pieces(path: Path) -> list[Path]:
    """A model that llama.cpp split into ``NAME-00001-of-00003.gguf`` and so on, whichever piece was given."""
    match = re.fullmatch(r"(.+)-(\d{5})-of-(\d{5})\.gguf", path.name)
    if not match:
        return [path]
    stem, _, count = match.groups()
    pieces = [path.with_name(f"{stem}-{n:05}-of-{count}.gguf") for n in range(1, int(count) + 1)]
    for piece in pieces:
        if not piece.exists():
            raise ModelError("import_missing", path=piece)
    return pieces


def _voice(path: Path) -> Found:
    settings_path = path.with_name(f"{path.name}.json")
    if not path.exists() or not settings_path.exists():
        raise ModelError("import_missing", path=settings_path if path.exists() else path)
    settings = _json(settings_path)
    language = settings.get("language", {}).get("family") or settings.get("espeak", {}).get("voice", "")
    if "audio" not in settings:
        raise ModelError("import_unknown", path=settings_path)
    return Found(
        stage="tts",
        name=path.stem,
        sources={path.name: path, settings_path.name: settings_path},
        entry=path.name,
        languages=[language.split("-")[0]] if language else [],
    )


def _whisper(path: Path) -> Found:
    with _readable(path / "model.bin") as file:
        head = file.read(64)
    # u32 version, u16 length, then the name of the architecture (CTranslate2, python/ctranslate2/specs).
    length = struct.unpack_from("<H", head, 4)[0] if len(head) == 64 else 0
    if head[6 : 6 + length].rstrip(b"\0") != b"WhisperSpec":
        raise ModelError("import_not_whisper", path=path / "model.bin")
    vocabulary = next(
        (file for file in (path / "vocabulary.json", path / "vocabulary.txt") if file.exists()), None
    )
    for name in ("config.json", "tokenizer.json"):
        # faster-whisper would fetch a missing tokenizer from a hub.
        if not (path / name).exists():
            raise ModelError("import_missing", path=path / name)
    if vocabulary is None:
        raise ModelError("import_missing", path=path / "vocabulary.json")
    tokens = len(_json(vocabulary)) if vocabulary.suffix == ".json" else vocabulary.read_bytes().count(b"\n")
    return Found(
        stage="stt",
        name=path.resolve().name,
        sources={name: path / name for name in WHISPER_FILES if (path / name).exists()},
        entry=".",
        # Of the 99 languages of the multilingual models, those that Ondam speaks.
        languages=["en"] if tokens <= WHISPER_ENGLISH_VOCABULARY else ["en", "ko"],
    )


def _readable(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise ModelError("import_unreadable", path=path, reason=error.strerror or error) from error


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError("import_unreadable", path=path, reason=error) from error


def _id_of(found: Found) -> str:
    for name in (Path(found.entry).stem if found.entry != "." else found.name, found.name):
        whole_name = re.sub(r"-\d{5}-of-\d{5}$", "", name)
        if model_id := re.sub(r"[^a-z0-9._]+", "-", whole_name.lower()).strip("-._"):
            return model_id
    raise ModelError("id_needed", name=found.name)
