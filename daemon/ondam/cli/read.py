"""``ondam read``."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ondam.cli.terminal import as_json, print_json, say

if TYPE_CHECKING:
    from ondam.types import Language


@click.command("read")
@click.argument("text")
@click.option(
    "--lang", "--language", "language", type=click.Choice(["ko", "en"]), help="By default as configured."
)
@as_json
def command(text: str, language: Language | None, json_wanted: bool) -> None:
    """Show what a voice would be given for TEXT, clause by clause (- reads a stream from stdin).

    Needs no daemon. Markup, code and links are left out, numbers and signs are written as they are read.
    """
    from ondam.config import load
    from ondam.places import places
    from ondam.speech import ClauseStream

    language = language or load(places().config_file).spoken_language
    stream = ClauseStream(language)
    written, clauses = "", list[str]()
    for chunk in (text,) if text != "-" else _stdin():
        written += chunk
        for clause in stream.feed(chunk):
            clauses.append(clause.spoken)
            if not json_wanted:
                click.echo(clause.spoken)
    for clause in stream.finish():
        clauses.append(clause.spoken)
        if not json_wanted:
            click.echo(clause.spoken)
    if json_wanted:
        print_json({"language": language, "text": written, "spoken": " ".join(clauses), "clauses": clauses})
    elif not clauses:
        click.echo(say("cli_nothing_to_say"), err=True)


def _stdin() -> Iterator[str]:
    """What arrives as it arrives; a character cut in two waits for its other half."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := sys.stdin.buffer.read1(4096):  # type: ignore[union-attr]  # a real stdin is buffered
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)
