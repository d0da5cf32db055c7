"""``ondam bench``: many turns through the real daemon, as a distribution with its conditions."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.bench.mode_options import chosen, mode_options
from ondam.cli.frame import FAILED, INTERRUPTED, Entry, LazyGroup
from ondam.places import places

if TYPE_CHECKING:
    from ondam.types import Language

PARTS = {
    "compare": Entry("ondam.cli.bench.compare", "Hold a stored run against an older one."),
}


@click.group("bench", cls=LazyGroup, entries=PARTS, invoke_without_command=True)
@click.option(
    "--turns", default=24, show_default=True, type=click.IntRange(1, 100_000), help="Counted turns."
)
@click.option("--clips", "folder", type=click.Path(path_type=Path, file_okay=False), help="WAVs to ask.")
@click.option(
    "--language", type=click.Choice(["ko", "en"]), help="Else the daemon's that runs, or as configured."
)
@click.option(
    "--prompt",
    "prompt_file",
    type=click.Path(path_type=Path),
    help="A system prompt as production sends it: text, or JSON with system or messages, and tools.",
)
@click.option(
    "--settle", type=click.IntRange(0), help="Turns before, not counted; else until the engines have settled."
)
@click.option("--seed", default=0, show_default=True, type=int, help="Orders the clips, and the two sides.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of config.toml, for a daemon of its own.",
)
@click.option(
    "--ab",
    nargs=2,
    metavar="A B",
    help="Two profiles, turn by turn in one run, and whether one is quicker. Each a TOML file laid over the "
    "configuration, KEY=VALUE[,KEY=VALUE], or shipped.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="KEY=VALUE[,KEY=VALUE]",
    help="Short for --ab shipped KEY=VALUE, for keys of [detect], [endpoint] and [drafts]: the same engines.",
)
@click.option(
    "--stub", metavar="stt=MS,ttft=MS,clause=MS,tts=MS", help="Engines that only wait: the daemon alone."
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw it, as SVG, into this file."
)
@mode_options
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object on stdout, progress on stderr.")
@click.pass_context
def command(
    context: click.Context,
    turns: int,
    folder: Path | None,
    language: Language | None,
    prompt_file: Path | None,
    settle: int | None,
    seed: int,
    settings: Sequence[str],
    ab: tuple[str, str] | None,
    against: Sequence[str],
    stub: str | None,
    plot: Path | None,
    json_wanted: bool,
) -> int:
    """Ask questions in real time, one after another, and say how long the first audio took.

    Between the turns the engines are asked the same questions without the daemon, each after the other: the
    raw sum. Before every turn other prompts displace what the language engine has cached of the last ones.
    """
    if context.invoked_subcommand is not None:
        return 0
    if (done := chosen(context)) is not None:
        return done
    from ondam.cli.bench.profile import flattened, one_way, read_profile, toml, two_ways
    from ondam.cli.bench.questions import questions
    from ondam.cli.bench.run import Bench
    from ondam.cli.bench.table import draw
    from ondam.cli.own_daemon import asked_in
    from ondam.cli.terminal import print_json, say
    from ondam.cli.up import laid_over
    from ondam.config import load
    from ondam.config.conversation import for_conversation
    from ondam.deploy.prepare import prepare
    from ondam.measure.prompt import read_prompt
    from ondam.measure.stubs import delays, stub_settings
    from ondam.models.progress import Bars

    if ab and against:
        raise click.UsageError(say("bench_ab_or_against"), context)
    if plot is not None and not plot.absolute().parent.is_dir():
        raise click.UsageError(say("bench_plot_nowhere", path=plot), context)
    here = places()
    stub_ms = delays(stub) if stub is not None else None
    prompt = read_prompt(prompt_file) if prompt_file is not None else None
    with tempfile.TemporaryDirectory(prefix="ondam-stub-") as folder_of_sockets:
        sockets = Path(folder_of_sockets)
        language = asked_in(here, language)
        changed = [*settings, *([f"language={language}"] if language else [])]
        if stub_ms:
            changed += [f"{key}={value}" for key, value in stub_settings(sockets).items()]
        spoken = load(here.config_file, laid_over(changed)).spoken_language
        changed.append(f"language={spoken}")
        if prompt is not None:
            told = prompt.settings(spoken, "field", sockets)
            changed += [f"{key}={toml(value)}" for key, value in told.items()]
        base = laid_over(changed)
        if ab:
            one, other = ((given, read_profile(given)) for given in ab)
            sides = two_ways(here.config_file, base, one, other)
        elif against:
            given = ",".join(against)
            tables = read_profile(given)
            for_conversation(load(here.config_file, base), tables)  # no other keys than those
            sides = two_ways(here.config_file, base, ("shipped", {}), (given, tables))
        else:
            sides = one_way(here.config_file, base)
        asked = questions(folder, spoken)
        with Bars() as bars:
            for profile in (sides.a, *([sides.b] if sides.b is not None else [])):
                prepare(profile.config, here, bars)
        bench = Bench(
            here,
            sides,
            spoken,
            asked,
            turns,
            settle,
            seed,
            {key: toml(value) for key, value in flattened(base)},
            alone=bool(settings or stub_ms or prompt),
            folder=sockets,
            prompt=prompt,
            stub_ms=stub_ms,
        )
        interrupted = False
        try:
            asyncio.run(bench.run())
        except (KeyboardInterrupt, click.Abort):
            if bench.result is None:
                raise
            interrupted = True
    result: Mapping[str, Any] = bench.result or {}
    if json_wanted:
        print_json(result)
    else:
        draw(result)
    drawn = plot is None or _plotted(plot, result, spoken)
    if interrupted:
        return INTERRUPTED
    if "stopped" in result:
        return int(result["stopped"]["exit_code"])
    heard = all(_heard(side) for side in (result, *([result["against"]] if "against" in result else [])))
    return 0 if drawn and heard else FAILED


def _plotted(path: Path, result: Mapping[str, Any], language: Language) -> bool:
    """Whether it could be written. The figures have been printed: no run of an hour is lost with its plot."""
    from ondam.cli.terminal import say
    from ondam.measure.plot import svg

    try:
        path.write_text(svg(result, language), "utf-8")
    except OSError as error:
        click.echo(say("bench_plot_unwritable", path=path, reason=error.strerror or error), err=True)
        return False
    return True


def _heard(side: Mapping[str, Any]) -> bool:
    return bool(side["first_audio_ms"]["n"])
