"""The options that choose another way to measure, and what they have in common with the plain one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from ondam.cli.bench.concurrency import sessions
from ondam.cli.terminal import say

Command = TypeVar("Command", bound=Callable[..., Any])

MODES = ("cold", "concurrency", "quality")

KEY = "ondam.bench"

UNFIT = {
    "cold": ("ab", "against", "plot", "prompt_file", "stub"),
    "concurrency": ("ab", "against", "plot"),
    "quality": ("ab", "against", "plot", "prompt_file", "stub"),
}
"""What does not go together with each. Parameters of the command."""

BELONGS = {"names": "quality", "sentences": "quality"}


def mode_options(command: Command) -> Command:
    """``command`` with these options; ``chosen`` tells what came of them."""

    def keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
        context.meta.setdefault(KEY, {})[parameter.name] = value

    def listed(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        keep(context, parameter, sessions(context, parameter, value))

    for option in (
        click.option(
            "--sentences",
            type=click.Path(path_type=Path, dir_okay=False),
            expose_value=False,
            callback=keep,
            help="With --quality: a text file, what the voice says line by line; else the transcripts.",
        ),
        click.option(
            "--names",
            metavar="NAME[,NAME…]",
            expose_value=False,
            callback=keep,
            help="With --quality: names to listen for; else those of the configuration.",
        ),
        click.option(
            "--quality",
            is_flag=True,
            expose_value=False,
            callback=keep,
            help="Errors of recognition (WER, CER) and of the voice heard again, beside what they took. "
            "--clips: NAME.wav with NAME.txt, or one .tsv or .jsonl.",
        ),
        click.option(
            "--concurrency",
            metavar="N[,N…]",
            expose_value=False,
            callback=listed,
            help="So many conversations at once on the same engines, and where it stops scaling.",
        ),
        click.option(
            "--cold",
            is_flag=True,
            expose_value=False,
            callback=keep,
            help="A process per utterance against the resident engines, pair by pair.",
        ),
    ):
        command = option(command)
    return command


def chosen(context: click.Context) -> int | None:
    """Measure in the chosen way and return the exit code; None where none was chosen.

    Raises a usage error for what does not go together.
    """
    given = context.params
    options: Mapping[str, Any] = context.meta.get(KEY, {})
    modes = [name for name in MODES if options.get(name)]
    if len(modes) > 1:
        raise click.UsageError(say("bench_one_mode"), context)
    mode = modes[0] if modes else None
    for name, owner in BELONGS.items():
        if options.get(name) is not None and owner != mode:
            raise click.UsageError(say("bench_only_with", option=f"--{name}", mode=f"--{owner}"), context)
    if mode is None:
        return None
    for name in UNFIT[mode]:
        if given.get(name):
            option = f"--{name.removesuffix('_file')}"
            raise click.UsageError(say("bench_mode_without", mode=f"--{mode}", option=option), context)
    from ondam.cli.bench.modes import Asked, measure
    from ondam.measure.stubs import delays

    names = options.get("names")
    asked = Asked(
        turns=given["turns"],
        settle=given["settle"],
        seed=given["seed"],
        folder=given["folder"],
        settings=given["settings"],
        language=given["language"],
        prompt=given["prompt_file"],
        stub_ms=delays(given["stub"]) if given["stub"] is not None else None,
        steps=options.get("concurrency") or (),
        names=None if names is None else tuple(n.strip() for n in names.split(",") if n.strip()),
        sentences=options.get("sentences"),
    )
    return measure(mode, _mode(mode), asked, json_wanted=given["json_wanted"])


def _mode(name: str) -> Any:
    """Any: a ``modes.Mode``, whose module is loaded only when it is wanted."""
    if name == "cold":
        from ondam.cli.bench.cold import Cold

        return Cold()
    if name == "concurrency":
        from ondam.cli.bench.concurrency import Concurrency

        return Concurrency()
    from ondam.cli.bench.quality import Quality

    return Quality()
