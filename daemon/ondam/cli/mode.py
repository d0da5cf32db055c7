"""``ondam mode``."""

from __future__ import annotations

import difflib

import click

from ondam.cli.terminal import as_json, daemon, named, print_json, say
from ondam.control import wire


@click.command("mode")
@click.argument("mode", required=False, metavar="[open|name|push|muted|unmuted]")
@as_json
def command(mode: str | None, json_wanted: bool) -> None:
    """Show when it listens, or change that until the daemon ends.

    open: always. name: when it is called by its name (listen.name_ko, listen.name_en). push: while the talk
    button is held, as with `ondam listen --toggle`. muted: never; the microphone is closed. unmuted: as
    before it was muted. How it starts is listen.mode in config.toml.
    """
    if mode is None:
        now = daemon(lambda client: client.status())["mode"]
    else:
        wanted = _known(mode)
        now = daemon(lambda client: client.set_mode(wanted))
    if json_wanted:
        print_json({"mode": now})
    else:
        click.echo(named("cli_mode_", now))


def _known(mode: str) -> wire.WantedMode:
    """A usage error with the nearest name where there is no such mode."""
    written = mode.strip().lower()
    for known_mode in wire.WANTED_MODES:
        if known_mode == written:
            return known_mode
    near = difflib.get_close_matches(written, wire.WANTED_MODES, n=1)
    known = ", ".join(wire.WANTED_MODES)
    code = "cli_no_mode_near" if near else "cli_no_mode"
    problem = say(code, given=mode, known=known, near="".join(near))
    raise click.UsageError(problem, click.get_current_context())
