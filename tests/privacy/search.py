"""Looks for words and sounds in files, in every form in which programs write them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import soundfile

from ondam.types import Samples

WINDOW = 48
"""Samples of a sound that are looked for: 3 ms at 16 kHz, 96 bytes that nothing else holds."""


def forms(word: str) -> dict[str, bytes]:
    """``word`` as files may hold it."""
    utf8 = word.encode()
    escaped = json.dumps(word)[1:-1].encode()
    found = {
        "utf-8": utf8,
        "utf-16": word.encode("utf-16-le"),
        "utf-16 the other way": word.encode("utf-16-be"),
        "json": escaped,
        "json in capitals": escaped.upper().replace(b"\\U", b"\\u"),
        "bytes as python shows them": repr(utf8)[2:-1].encode(),
        "in a url": quote(word).encode(),
        "hex": utf8.hex().encode(),
    }
    for shift in range(3):
        # What of the coded text does not depend on its neighbours.
        coded = base64.b64encode(b"\0" * shift + utf8)
        found[f"base64 at {shift}"] = coded[4 if shift else 0 : len(coded) // 4 * 4 - 4]
    return {name: form for name, form in found.items() if len(form) >= 6}


def sound_forms(samples: Samples) -> dict[str, bytes]:
    """Its loudest moment as files may hold it."""
    loudest = int(np.argmax(np.abs(samples[WINDOW:-WINDOW].astype(np.int32)))) + WINDOW
    moment = samples[loudest - WINDOW // 2 : loudest + WINDOW // 2]
    little = moment.astype("<i2").tobytes()
    found = {
        "pcm": little,
        "pcm the other way": moment.astype(">i2").tobytes(),
        "float": (moment / 32768).astype("<f4").tobytes(),
        "hex": little.hex().encode(),
    }
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + little)
        found[f"base64 at {shift}"] = coded[4 if shift else 0 : -4]
    return found


def written(*roots: Path) -> Iterator[Path]:
    """Every file below ``roots``, links not followed."""
    for root in roots:
        for path in root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                yield path


def search(words: list[str], sounds: list[Samples], *roots: Path) -> set[tuple[str, str]]:
    """Names of files that hold any of them, each with how. Sound files are also listened to."""
    wanted = [form for word in words for form in forms(word).items()]
    wanted += [form for sound in sounds for form in sound_forms(sound).items()]
    found = set()
    for path in written(*roots):
        held = path.read_bytes()
        parts = [held]
        if held[:4] in {b"fLaC", b"RIFF", b"OggS"}:
            parts.append(soundfile.read(io.BytesIO(held), dtype="int16")[0].astype("<i2").tobytes())
        found |= {(path.name, how) for how, form in wanted for part in parts if form in part}
    return found
