"""Spoken questions that come with Ondam, with what is said in them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources

from ondam.types import Language


@dataclass(frozen=True, slots=True)
class Clip:
    """A WAV file's bytes and the words in it."""

    name: str
    wav: bytes
    words: str


def clips(language: Language) -> list[Clip]:
    """The shipped questions in ``language``; the first is the demo's."""
    here = resources.files(__name__)
    words = tomllib.loads(here.joinpath("clips.toml").read_text("utf-8"))[language]
    return [Clip(name, here.joinpath(language, name).read_bytes(), text) for name, text in words.items()]
