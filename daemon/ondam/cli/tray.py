"""``ondam tray``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from ondam.cli.terminal import as_json, print_json


@click.command("tray")
@click.option("--install", is_flag=True, help="Make the environment that the icon runs in, and end.")
@click.option(
    "--python",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --install: the Python that sees the system's PyGObject (/usr/bin/python3).",
)
@click.option("--wait", is_flag=True, help="Where a display or a panel is missing, wait for it quietly.")
@click.option(
    "--icons",
    type=click.Choice(["auto", "light", "dark"]),
    default="auto",
    help="The icons' ink: light for a dark panel, dark for a light one; auto looks at the desktop.",
)
@as_json
def command(install: bool, python: Path | None, wait: bool, icons: str, json_wanted: bool) -> None:
    """Show what the daemon is doing as an icon in the panel, with its last turn, faults and controls.

    A process of its own: it may start before the daemon or after it, and its end changes nothing. Exit codes
    beside the usual: 11 where the desktop lacks something, and then it says what and which package has it.
    See docs/tray.md.
    """
    # Late: --help is quick.
    from ondam.deploy import tray
    from ondam.errors import DesktopError
    from ondam.messages import message, reader_language
    from ondam.places import answering, places

    if sys.platform != "linux":
        raise DesktopError("tray_only_linux")
    language = reader_language()
    here = places()
    if install:
        from ondam.models.registry import Registry

        if not json_wanted:
            click.echo(message("tray_makes", language).text, err=True)
        made = tray.install(here, python or tray.SYSTEM_PYTHON, Registry.from_pip().uv_environment())
        if json_wanted:
            print_json({"path": str(made.root)})
        else:
            told = message("tray_installed", language, path=made.root)
            click.echo(f"{told.text}\n→ {told.next}", err=True)
        return
    home = tray.ready(here)
    arguments = [str(home.python), "-I", "-m", "ondam_ui.tray", "--socket", str(answering())]
    arguments += ["--entry", str(home.entry), "--ondam", json.dumps(_ourselves()), "--language", language]
    arguments += ["--icons", icons, *(["--wait"] if wait else [])]
    os.execv(home.python, arguments)


def _ourselves() -> list[str]:
    """The command that started us, for the panel and for the next login."""
    script = Path(sys.argv[0])
    if script.name == "ondam" and script.exists():
        return [str(script.absolute())]
    return [sys.executable, "-m", "ondam"]
