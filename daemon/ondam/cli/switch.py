"""``ondam switch``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ondam.cli.status import switching
from ondam.cli.terminal import as_json, daemon, print_json, say
from ondam.errors import ConfigError

if TYPE_CHECKING:
    from ondam.control import wire
    from ondam.control.client import Client

STAGES = ("stt", "llm", "tts")
KEYS = tuple(f"{stage}.{name}" for stage in STAGES for name in ("model", "engine"))


@click.command("switch")
@click.argument("wanted", nargs=-1, required=True, metavar="llm=MODEL|KEY=VALUE...")
@click.option("--keep", is_flag=True, help="Write it into config.toml too, once it is done.")
@as_json
def command(wanted: Sequence[str], keep: bool, json_wanted: bool) -> int:
    """Change the language model, the recognizer or the voice while the conversation goes on.

    llm=MODEL is short for llm.model=MODEL; the other keys are stt, tts and their .engine. Where there is room
    for both, the new one takes over between two turns; else the old one is stopped first. When the new one
    does not come up, the old one serves on.

    Exit code 3: it cannot be planned, or config.toml cannot be written. 4: no daemon, or another change is
    under way. 5: weights are missing. 6: the new engine failed, the old one serves.
    """
    asked = _asked(wanted)
    done = daemon(lambda client: _with_progress(client, asked, keep=keep, shown=not json_wanted))
    if json_wanted:
        print_json(done)
    elif not done["stages"]:
        click.echo(say("cli_switch_same"))
    if done["fault"]:
        click.echo(done["fault"]["text"], err=True)
        return ConfigError.exit_code
    if not json_wanted:
        click.echo(say("cli_switch_kept" if done["kept"] else "cli_switch_until"))
    return 0


def _asked(wanted: Sequence[str]) -> dict[str, str]:
    asked = {}
    for given in wanted:
        key, equals, value = (part.strip() for part in given.partition("="))
        key = f"{key}.model" if key in STAGES else key
        if not (equals and value) or key not in KEYS:
            problem = say("cli_switch_wanted", known=", ".join(KEYS), given=given)
            raise click.UsageError(problem, click.get_current_context())
        if key in asked:
            raise click.UsageError(say("cli_switch_twice", key=key), click.get_current_context())
        asked[key] = _from_here(value) if key.endswith(".model") else value
    return asked


def _from_here(model: str) -> str:
    """A file is meant as seen from here, and not from where the daemon was started."""
    return str(Path(model).expanduser().absolute()) if "/" in model or model.endswith(".gguf") else model


async def _with_progress(client: Client, asked: Mapping[str, str], *, keep: bool, shown: bool) -> wire.Switch:
    """Each step on stderr as it comes."""
    following = asyncio.create_task(_follow(client)) if shown else None
    try:
        return await client.switch(asked, keep=keep)
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _follow(client: Client) -> None:
    last: list[str] = []
    async with aclosing(client.events()) as events:
        async for event in events:
            # How it ended is told by the answer itself.
            if event["type"] != "switch" or event["switch"]["state"] == "failed":
                continue
            lines = list(switching(event["switch"]))
            if lines != last:
                click.echo("\n".join(lines), err=True)
            last = lines
