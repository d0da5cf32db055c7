"""What is known of a model before it is on the disk: the schema of ``[[models]]`` in a manifest."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

import pydantic

from ondam.schema import Table

Sha256 = Annotated[str, pydantic.Field(pattern=r"^[0-9a-f]{64}$")]


class WheelMember(Table):
    """A file inside a wheel of the package registry."""

    package: str
    version: str
    """Exact; never a range."""
    sha256: Sha256
    """Of the wheel."""
    member: str
    """Path inside the wheel."""


class ModelFile(Table):
    """One file of a model: its place in the model's folder, and the pieces it is joined from, in order."""

    path: str
    size: int
    """Bytes, joined."""
    sha256: Sha256
    """Of the joined file."""
    parts: list[WheelMember] = pydantic.Field(default=[])
    """Empty where the file comes from nowhere: it was imported."""

    @pydantic.field_validator("path")
    @classmethod
    def _inside_the_folder(cls, path: str) -> str:
        if not path or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError("must be a path inside the model's folder")
        return path


class ModelCard(Table):
    """A model that a manifest declares."""

    id: Annotated[str, pydantic.Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    stage: Literal["stt", "llm", "tts", "vad", "turn"]
    """``vad`` and ``turn`` (end of turn) run inside the daemon."""
    languages: list[str]
    """BCP 47 primary tags; empty where the model hears no words (VAD)."""
    licence: str
    """SPDX identifier."""
    note_en: str = ""
    note_ko: str = ""
    """What a person should know before choosing it."""
    quantization: str = ""
    """As its format names it (``Q4_K_M``, ``int8``); empty where it is not known or there is none."""
    context_length: int | None = None
    """Tokens that a language model was trained for."""
    entry: str = "."
    """What an engine is given: this path inside the model's folder (``.`` = the folder)."""
    files: list[ModelFile] = pydantic.Field(min_length=1)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)

    @property
    def fetchable(self) -> bool:
        """Whether a package registry has it; an imported model exists only here."""
        return all(file.parts for file in self.files)
