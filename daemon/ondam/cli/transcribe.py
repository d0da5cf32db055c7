"""``ondam transcribe``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.terminal import as_json, daemon, language_option, lost, print_json
from ondam.errors import AudioError, OndamError
from ondam.messages import reader_language

if TYPE_CHECKING:
    from ondam.control.client import Client


@click.command("transcribe")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@language_option
@click.option("--context", default="", metavar="'NAME, NAME'", help="Names and words to expect, with commas.")
@as_json
def command(files: Sequence[Path], language: str | None, context: str, json_wanted: bool) -> int:
    """Write down what is said in sound files, on the resident engine.

    With --json: one object per file and line, {"file", "status": "ok"|"error", "engine", "language", "text",
    "timings": {"audio_s", "engine_ms", "queued_ms", "total_ms"}, "error"?: {"code", "text", "next"}}.
    Exit code 1 when any file failed.
    """
    names = [name.strip() for name in context.split(",") if name.strip()]

    async def all_of_them(client: Client) -> int:
        failed = 0
        for file in files:
            answer = await _one(client, file, language, names)
            failed += answer["status"] != "ok"
            _show(answer, json_wanted, several=len(files) > 1)
        return failed

    return 1 if daemon(all_of_them) else 0


async def _one(client: Client, file: Path, language: str | None, names: Sequence[str]) -> dict[str, Any]:
    """The fixed answer for one file; Any: JSON."""
    timings: dict[str, float | None] = dict.fromkeys(("audio_s", "engine_ms", "queued_ms", "total_ms"))
    answer: dict[str, Any] = {"file": str(file), "status": "error", "engine": None, "language": None}
    answer |= {"text": None, "timings": timings}
    try:
        heard = await client.transcribe(_bytes(file), language, names)
    except OndamError as error:
        if lost(error):
            raise
        told = error.message(reader_language())
        return answer | {"error": {"code": told.code, "text": told.text, "next": told.next}}
    return answer | {
        "status": "ok",
        "engine": heard["engine"],
        "language": heard["language"] or language,
        "text": heard["text"],
        "timings": {
            "audio_s": heard["audio_s"],
            "engine_ms": heard["engine_ms"],
            "queued_ms": heard["queued_ms"],
            "total_ms": heard["total_ms"],
        },
    }


def _bytes(file: Path) -> bytes:
    from ondam.audio.wav import regular

    try:
        if file.exists():
            regular(file)
        return file.read_bytes()
    except FileNotFoundError as error:
        raise AudioError("cli_file_missing", path=file) from error
    except OSError as error:
        raise AudioError("cli_file_unreadable", path=file, reason=error.strerror or error) from error


def _show(answer: dict[str, Any], json_wanted: bool, *, several: bool) -> None:
    if json_wanted:
        print_json(answer)
        return
    if answer["status"] == "ok":
        click.echo((f"{answer['file']}: " if several else "") + answer["text"])
        return
    told = answer["error"]["text"]  # where it is the daemon's, it does not know the file's name
    click.echo(told if answer["file"] in told else f"{answer['file']}: {told}", err=True)
    if answer["error"]["next"]:
        click.echo(f"→ {answer['error']['next']}", err=True)
