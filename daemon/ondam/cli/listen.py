"""``ondam listen``."""

from __future__ import annotations

import click

from ondam.cli.terminal import Seconds, as_json, daemon, print_json, print_turn, say
from ondam.errors import AudioError, ControlError


@click.command("listen")
@click.option(
    "--timeout",
    "timeout_s",
    default=30.0,
    show_default=True,
    type=Seconds(0.1, 600),
    help="Seconds.",
)
@click.option("--toggle", is_flag=True, help="Press the talk button, or let it go when it is down.")
@as_json
def command(timeout_s: float, toggle: bool, json_wanted: bool) -> None:
    """Push to talk: one question from the daemon's microphone, answered aloud.

    With --toggle it returns at once: the first call begins to listen, the second ends it and the answer
    follows. Made for a hotkey; works in every mode but muted.
    """
    if toggle:
        pressed = daemon(lambda client: client.toggle())
        if json_wanted:
            print_json({"pressed": pressed})
        else:
            click.echo(say("cli_pressed" if pressed else "cli_released"))
        return
    if not json_wanted:
        # No invitation to speak to a daemon that is not there, or into a microphone that is not.
        microphone = daemon(lambda client: client.status())["microphone"]
        if microphone["state"] == "muted":
            raise ControlError("listen_muted")
        if microphone["state"] != "ok":
            raise AudioError("no_microphone_now", name=microphone["name"])
        click.echo(say("cli_listening"), err=True)
    turn = daemon(lambda client: client.listen(timeout_s))
    if json_wanted:
        print_json(turn)
    else:
        print_turn(turn)
