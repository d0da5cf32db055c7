"""``ondam panel``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import click

from ondam.cli.terminal import say


@click.command("panel")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Of 127.0.0.1; else any that is free.")
@click.option(
    "--open/--no-open", "browser", default=None, help="In a browser; else where there is a display."
)
@click.option("--until-stdin-ends", is_flag=True, hidden=True)  # by the tray, which may be killed
def command(port: int, browser: bool | None, until_stdin_ends: bool) -> int:
    """The Ondam window, in a browser: what happens now, turns, numbers, engines, budget, settings.

    A page on 127.0.0.1 for as long as this runs (Ctrl-C ends it). The address that it prints lets in whoever
    has it; it is another one each time. The daemon may start, end and start again meanwhile.
    """
    import asyncio

    from ondam.places import answering
    from ondam_ui.panel.server import serve

    def ready(address: str) -> None:
        click.echo(address)
        sys.stdout.flush()
        wanted = has_display(os.environ, sys.platform) if browser is None else browser
        if wanted and not _opened(address):
            click.echo(say("panel_no_browser"), err=True)
        elif not wanted and browser is None:
            click.echo(say("panel_tunnel", port=address.split(":")[2].split("/", maxsplit=1)[0]), err=True)
        click.echo(say("panel_how_to_end"), err=True)

    asyncio.run(serve(answering(), port, ready, until_stdin_ends=until_stdin_ends))
    return 0


def has_display(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a browser could show anything to whoever is at this terminal."""
    if platform in {"darwin", "win32"}:
        return "SSH_CONNECTION" not in environ
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def _opened(address: str) -> bool:
    import webbrowser

    return webbrowser.open(address)
