"""Recordings with what is said in them: a folder of WAVs, with the words beside each or in one list.

``NAME.wav`` and ``NAME.txt``, or one ``*.tsv`` (file, tab, words) or ``*.jsonl`` (``{"file", "text"}`` a
line) in the folder, whose files are relative to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ondam.audio.resample import resampled
from ondam.audio.wav import read_wav
from ondam.control.sound import decode
from ondam.errors import AudioError
from ondam.measure.clips import clips
from ondam.measure.word_errors import plain
from ondam.messages import Phrase
from ondam.types import HEARING_RATE_HZ, Audio, Language

LONGEST_CLIP = 10_000_000
"""Samples of a shipped clip; they have a hundredth."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Somebody says ``words``."""

    name: str
    words: str
    seconds: float
    audio: Callable[[], Audio]
    """At 16 kHz, read anew: a folder of recordings need not fit into memory. Raises AudioError."""


def recordings(folder: Path | None, language: Language) -> list[Recording]:
    """Those in ``folder``, else those that come with Ondam. At least one; AudioError names the file that is
    wrong."""
    if folder is None:
        return [_recording(clip.name, clip.words, partial(_shipped, clip.wav)) for clip in clips(language)]
    lists = sorted([*folder.glob("*.tsv"), *folder.glob("*.jsonl")])
    if len(lists) > 1:
        raise AudioError("quality_lists", path=folder, names=", ".join(path.name for path in lists))
    told = list(_listed(lists[0], language)) if lists else list(_beside(folder, language))
    if not told:
        raise AudioError("bench_no_clips", path=lists[0] if lists else folder)
    return [_recording(str(path.relative_to(folder)), words, partial(_file, path)) for path, words in told]


def wavs(folder: Path) -> list[Path]:
    """Of a folder, by name; recorders for Windows write ``.WAV``."""
    return sorted(path for path in folder.glob("*") if path.suffix.lower() == ".wav" and not path.is_dir())


def sentences(path: Path, language: Language) -> list[str]:
    """One a line; empty lines do not count. Raises AudioError."""
    found = [line.strip() for line in _text(path).splitlines() if plain(line, language)]
    if not found:
        raise AudioError("quality_no_words", path=path)
    return found


def _recording(name: str, words: str, audio: Callable[[], Audio]) -> Recording:
    # Read once now: what is wrong with one is told before anything is measured.
    return Recording(name, words, audio().seconds, audio)


def _shipped(wav: bytes) -> Audio:
    return resampled(decode(wav, LONGEST_CLIP), HEARING_RATE_HZ)


def _file(path: Path) -> Audio:
    return resampled(read_wav(path), HEARING_RATE_HZ)


def _beside(folder: Path, language: Language) -> Iterator[tuple[Path, str]]:
    for wav in wavs(folder):
        transcript = wav.with_suffix(".txt")
        if not transcript.exists():
            raise AudioError("quality_no_transcript", path=wav, wanted=transcript.name)
        words = " ".join(_text(transcript).split())
        if not plain(words, language):
            raise AudioError("quality_no_words", path=transcript)
        yield wav, words


def _listed(path: Path, language: Language) -> Iterator[tuple[Path, str]]:
    row = _json_row if path.suffix == ".jsonl" else _tab_row
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip() or (number == 1 and line.lower().startswith("file\t")):
            continue
        found = row(line)
        if found is None:
            raise AudioError(
                "quality_list_line", path=path, number=number, reason=Phrase("reason_no_file_and_text")
            )
        name, words = found
        if not plain(words, language):
            raise AudioError(
                "quality_list_line", path=path, number=number, reason=Phrase("reason_no_words", name=name)
            )
        if not (path.parent / name).resolve().is_relative_to(path.parent.resolve()):
            raise AudioError(
                "quality_list_line", path=path, number=number, reason=Phrase("reason_outside", name=name)
            )
        yield path.parent / name, words


def _tab_row(line: str) -> tuple[str, str] | None:
    name, tab, words = line.partition("\t")
    return (name.strip(), " ".join(words.split())) if tab and name.strip() else None


def _json_row(line: str) -> tuple[str, str] | None:
    try:
        told = json.loads(line)
    except ValueError:
        return None
    if not isinstance(told, dict) or not told.get("file"):
        return None
    name, words = told["file"], told.get("text")
    return (name, " ".join(words.split())) if isinstance(name, str) and isinstance(words, str) else None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AudioError("quality_text_unreadable", path=path, reason=Phrase("reason_not_utf8")) from error
    except OSError as error:
        reason = error.strerror or error
        raise AudioError("quality_text_unreadable", path=path, reason=reason) from error
