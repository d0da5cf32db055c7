"""What an engine is told when it is launched: the placeholders of ``launch.command`` as arguments."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of one engine."""

    socket: Path
    """The Unix socket to listen on."""
    report: Path
    """Where to write what the engine got."""
    model: Path | None
    """File or folder of the weights; None where the engine carries its own."""
    model_id: str
    device: str
    """``cpu``, ``cuda:0``, …"""
    threads: int
    language: str
    """``ko`` or ``en``: what the warm-up and requests without a language use."""
    options: dict[str, Any] = field(default_factory=dict)
    """The manifest's options with the user's on top."""
    cache: Path | None = None
    """A folder of the engine's own that is kept: what it computes once for this machine. May not exist
    yet."""
    quantization: str = ""
    """What the plan counts with, as the model's card names it; empty where it does not say."""


def parse(argv: Sequence[str] | None = None) -> Launch:
    """The launch that ``argv`` (default: the process's own) describes.

    A wrong argument ends the process with status 2 and a line on stderr, as argparse does.
    """
    # No abbreviations: "--mod" must not quietly become "--model".
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--model", type=_path_or_none, default=None)
    parser.add_argument("--model-id", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=_at_least_one, default=1)
    parser.add_argument("--language", default="en")
    parser.add_argument("--options", type=_table, default={})
    parser.add_argument("--cache", type=_path_or_none, default=None)
    parser.add_argument("--quantization", default="")
    return Launch(**vars(parser.parse_args(argv)))


def _path_or_none(text: str) -> Path | None:
    """``{model}`` is empty where the engine needs no weights."""
    return Path(text) if text else None


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number


def _table(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("must be a JSON object")
    return value
