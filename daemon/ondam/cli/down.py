"""``ondam down``."""

from __future__ import annotations

import time

import click

from ondam.cli.terminal import as_json, daemon, print_json, say
from ondam.places import answering

ENDS_S = 6.0
"""The daemon promises to end within 5 s."""


@click.command("down")
@as_json
def command(json_wanted: bool) -> None:
    """Ask the daemon to end, and wait until it has."""
    daemon(lambda client: client.shutdown())
    socket = answering()
    deadline = time.monotonic() + ENDS_S
    while (there := socket.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    if json_wanted:
        print_json({"ended": not there})
    else:
        click.echo(say("cli_ending" if there else "cli_ended"))
