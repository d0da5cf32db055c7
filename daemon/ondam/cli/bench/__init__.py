"""``ondam bench``: many turns through the real daemon, as a distribution with its conditions."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from ondam.places import places


@click.command("bench")
@click.option(
    "--turns", default=24, show_default=True, type=click.IntRange(1, 100_000), help="Counted turns."
)
@click.option("--clips", "folder", type=click.Path(path_type=Path, file_okay=False), help="WAVs to ask.")
@click.option("--language", type=click.Choice(["ko", "en"]), help="Else as configured.")
@click.option(
    "--settle", default=4, show_default=True, type=click.IntRange(0), help="Turns before, not counted."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of config.toml, for a daemon of its own.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="KEY=VALUE[,KEY=VALUE]",
    help="Keys of [detect], [endpoint] and [drafts]: every question is asked a second time with these, "
    "on the same engines, in turn.",
)
@click.option(
    "--stub", metavar="stt=MS,ttft=MS,clause=MS,tts=MS", help="Engines that only wait: the daemon alone."
)
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object on stdout, progress on stderr.")
def command(
    turns: int,
    folder: Path | None,
    language: str | None,
    settle: int,
    settings: Sequence[str],
    against: Sequence[str],
    stub: str | None,
    json_wanted: bool,
) -> None:
    """Ask questions in real time, one after another, and say how long the first audio took.

    Between the turns the engines are asked the same questions without the daemon, each after the other: the
    raw sum. Before every turn other prompts displace what the language engine has cached of the last ones.
    """
    from ondam.cli.bench.questions import questions
    from ondam.cli.bench.run import Bench
    from ondam.cli.bench.table import draw
    from ondam.cli.up import laid_over
    from ondam.config import load
    from ondam.conversation import for_conversation
    from ondam.deploy.prepare import prepare
    from ondam.measure.stubs import delays, stub_settings
    from ondam.models.progress import Bars

    here = places()
    stub_ms = delays(stub) if stub is not None else None
    other = laid_over([part for given in against for part in given.split(",")]) if against else None
    with tempfile.TemporaryDirectory(prefix="ondam-stub-") as sockets:
        changed = [*settings, *([f"language={language}"] if language else [])]
        if stub_ms:
            changed += [f"{key}={value}" for key, value in stub_settings(Path(sockets)).items()]
        config = load(here.config_file, laid_over(changed))
        for_conversation(config, other or {})  # tells what is wrong with them before anything is started
        asked = questions(folder, config.spoken_language)
        with Bars() as bars:
            prepare(config, here, bars)
        changed.append(f"language={config.spoken_language}")
        bench = Bench(here, config, asked, turns, settle, dict(s.split("=", 1) for s in changed), other)
        result = asyncio.run(bench.run(stub_ms, Path(sockets), alone=bool(settings or stub_ms)))
    if json_wanted:
        click.echo(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        draw(result)
