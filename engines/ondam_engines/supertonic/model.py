"""A Supertonic model's folder, read with the package's own pieces: alphabet, voices, and what its frames
are."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

from supertonic.core import UnicodeProcessor
from supertonic.loader import (
    list_available_voice_style_names,
    load_configs,
    load_text_processor,
    load_voice_style_from_name,
)

from ondam_engines.supertonic.alphabet import Alphabet
from ondam_engines.supertonic.networks import NAMES, Ids, Sound, Style

LANGUAGES = ("ko", "en")
"""That are spoken here. The model knows 31, and is told by a tag which one it reads."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The model on disk; nothing of it is ever fetched."""

    path: Path
    """Holds ``onnx/`` and ``voice_styles/``."""

    def graph(self, name: str) -> Path:
        """The file of one network."""
        return self.path / "onnx" / f"{name}.onnx"

    def graphs(self) -> dict[str, Path]:
        """All four. Raises FileNotFoundError naming what is missing."""
        found = {name: self.graph(name) for name in NAMES}
        for file in found.values():
            if not file.is_file():
                raise FileNotFoundError(f"{file} is missing")
        return found

    def sound(self) -> Sound:
        """Of ``tts.json``. Raises ValueError where a number is missing."""
        config = load_configs(self.path)
        try:
            own, latent = config["ae"], config["ttl"]
            factor = int(latent["chunk_compress_factor"])
            return Sound(
                rate_hz=int(own["sample_rate"]),
                frame=int(own["base_chunk_size"]) * factor,
                width=int(latent["latent_dim"]) * factor,
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"{self.path / 'onnx' / 'tts.json'} lacks {error}") from error

    def voices(self) -> dict[str, Style]:
        """By name, sorted. Raises ValueError where there is none."""
        names = list_available_voice_style_names(self.path)
        if not names:
            raise ValueError(f"{self.path / 'voice_styles'} holds no voice")
        found = {}
        for name in names:
            style = load_voice_style_from_name(self.path, name)
            found[name] = Style(ttl=style.ttl, dp=style.dp)
        return found

    def reader(self) -> Reader:
        """What turns text into numbers."""
        return Reader(load_text_processor(self.path))


class Reader:
    """Text to what the networks are given."""

    def __init__(self, processor: UnicodeProcessor) -> None:
        self._processor = processor
        self._alphabet = Alphabet(self._knows)

    def fit(self, text: str) -> str:
        """``text`` without what the model has no number for; empty where nothing can be said."""
        return self._alphabet.fit(text)

    def ids(self, text: str, language: str) -> Ids:
        """(1, n): the text that ``fit`` gave, with the tags of its language and a stop at its end."""
        ids: Ids = self._processor([text], language)[0]
        return ids

    def _knows(self, sign: str) -> bool:
        if sign in self._processor.supported_character_set:
            return True
        # Its preparation writes some signs otherwise (a dash); pictures it takes out without a gap.
        return unicodedata.category(sign) != "So" and bool(self._processor.validate_text(sign)[0])
