"""``ondam listen``."""

from __future__ import annotations

import click

from ondam.cli.terminal import as_json, daemon, print_json, print_turn, say


@click.command("listen")
@click.option(
    "--timeout",
    "timeout_s",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0.1, 600),
    help="Seconds.",
)
@as_json
def command(timeout_s: float, json_wanted: bool) -> None:
    """Push to talk: one question from the daemon's microphone, answered aloud."""
    if not json_wanted:
        daemon(lambda client: client.status())  # no invitation to speak to a daemon that is not there
        click.echo(say("cli_listening"), err=True)
    turn = daemon(lambda client: client.listen(timeout_s))
    if json_wanted:
        print_json(turn)
    else:
        print_turn(turn)
