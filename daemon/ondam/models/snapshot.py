"""What a hub's repository held when a model was fetched from it. Lies beside the files, as ``hub.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import pydantic

from ondam.config.schema import Table, check
from ondam.errors import ConfigError
from ondam.models.card import ModelCard, ModelFile

SNAPSHOT = "hub.json"


class Snapshot(Table):
    """The truth about a model whose card names a repository and no files."""

    repository: str
    asked: str | None
    """The revision of the card; None where it left that open."""
    revision: Annotated[str, pydantic.Field(pattern=r"^[0-9a-f]{40}$")]
    """The commit that was fetched."""
    files: list[ModelFile] = pydantic.Field(min_length=1)

    @classmethod
    def read(cls, folder: Path) -> Snapshot | None:
        """That of the model in ``folder``; None where there is none that can be read: it is fetched anew."""
        try:
            return check(cls, json.loads((folder / SNAPSHOT).read_bytes()), folder / SNAPSHOT)
        except (OSError, ValueError, RecursionError, ConfigError):
            return None

    def answers(self, card: ModelCard) -> bool:
        """Whether this is what ``card`` asks for now."""
        return self.repository == card.repository and card.revision in (None, self.revision, self.asked)

    def as_bytes(self) -> bytes:
        """As ``read`` reads it."""
        return self.model_dump_json(indent=1).encode()
