"""``ondam stop``."""

from __future__ import annotations

import click

from ondam.cli.terminal import as_json, daemon, print_json, say


@click.command("stop")
@as_json
def command(json_wanted: bool) -> None:
    """Make the daemon fall silent. It goes on listening."""
    daemon(lambda client: client.stop_speaking())
    if json_wanted:
        print_json({})
    else:
        click.echo(say("cli_silent"))
