"""``ondam say``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.terminal import as_json, daemon, language_option, lost, print_json, say, written
from ondam.errors import OndamError
from ondam.messages import reader_language

if TYPE_CHECKING:
    from ondam.cli.spec import Item
    from ondam.control.client import Client


@click.command("say")
@click.argument("text", required=False)
@language_option
@click.option("--spec", type=click.Path(path_type=Path), help="A list of texts: .json, .jsonl or .toml.")
@click.option("--outdir", type=click.Path(path_type=Path), help="Where the WAV files of --spec go.")
@as_json
def command(
    text: str | None, language: str | None, spec: Path | None, outdir: Path | None, json_wanted: bool
) -> int:
    """Speak TEXT aloud (- reads it from stdin), or a list of texts into WAV files.

    A list is a JSON array of {"text", "file"?, "language"?}, the same objects one a line (.jsonl), or TOML
    tables [[say]]; "file" is a path inside --outdir, by default 001.wav, 002.wav, and so on. With --json
    each gives a line {"file", "status": "ok"|"error", "text", "seconds", "error"?}. Exit code 1 when any
    failed.
    """
    if (text is None) == (spec is None) or (spec is None) != (outdir is None):
        raise click.UsageError(say("cli_say_usage"))
    if spec is not None and outdir is not None:
        return _files(spec, outdir, language, json_wanted)
    wanted = written(text or "")
    said = daemon(lambda client: client.say(wanted, language))
    if json_wanted:
        print_json(said)
    else:
        click.echo(say("cli_said", seconds=said["audio"]["seconds"]), err=True)
    return 0


def _files(spec: Path, outdir: Path, language: str | None, json_wanted: bool) -> int:
    from ondam.cli.spec import read_spec

    items = read_spec(spec)

    async def all_of_them(client: Client) -> int:
        failed = 0
        for item in items:
            answer = await _one(client, item, outdir, language)
            failed += answer["status"] != "ok"
            _show(answer, json_wanted)
        return failed

    return 1 if daemon(all_of_them) else 0


async def _one(client: Client, item: Item, outdir: Path, language: str | None) -> dict[str, Any]:
    """The answer for one text; Any: JSON."""
    import numpy as np

    from ondam.audio.wav import write_wav
    from ondam.types import Audio

    path = outdir / item.file
    answer: dict[str, Any] = {"file": str(path), "status": "error", "text": item.text, "seconds": None}
    try:
        spoken = await client.synthesize(item.text, item.language or language)
        write_wav(path, Audio(np.frombuffer(spoken.pcm, "<i2").astype(np.int16), spoken.rate_hz))
    except OndamError as error:
        if lost(error):
            raise
        told = error.message(reader_language())
        return answer | {"error": {"code": told.code, "text": told.text, "next": told.next}}
    return answer | {"status": "ok", "seconds": round(spoken.seconds, 3)}


def _show(answer: dict[str, Any], json_wanted: bool) -> None:
    if json_wanted:
        print_json(answer)
    elif answer["status"] == "ok":
        click.echo(say("cli_written", path=answer["file"], seconds=answer["seconds"]))
    else:
        click.echo(f"{answer['file']}: {answer['error']['text']}", err=True)
        if answer["error"]["next"]:
            click.echo(f"→ {answer['error']['next']}", err=True)
