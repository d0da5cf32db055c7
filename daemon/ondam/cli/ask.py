"""``ondam ask``."""

from __future__ import annotations

import click

from ondam.cli.terminal import as_json, daemon, named, print_json, written


@click.command("ask")
@click.argument("text")
@click.option("--speak", is_flag=True, help="Say the answer aloud too.")
@as_json
def command(text: str, speak: bool, json_wanted: bool) -> int:
    """Ask TEXT (- reads it from stdin) and print the answer."""
    question = written(text)
    turn = daemon(lambda client: client.ask(question, speak=speak))
    if json_wanted:
        print_json(turn)
    elif turn["reply"]:
        click.echo(turn["reply"])
    else:
        click.echo(
            named("", turn["fault"]) if turn["fault"] else named("cli_outcome_", turn["outcome"]), err=True
        )
    return 1 if turn["outcome"] == "failed" else 0
