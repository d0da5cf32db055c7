"""``ondam bench``: many turns through the real daemon, as a distribution with its conditions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ondam.cli.own_daemon import own_daemon, until_ready
from ondam.errors import AudioError
from ondam.messages import reader_language, text
from ondam.places import Places, places

FIRST_AUDIO_BUDGET_MS = 800.0
"""The usual target for first audio (the natural gap between people is about 200 ms)."""


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
    "--stub", metavar="stt=MS,ttft=MS,clause=MS,tts=MS", help="Engines that only wait: the daemon alone."
)
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object on stdout, progress on stderr.")
def command(
    turns: int,
    folder: Path | None,
    language: str | None,
    settle: int,
    settings: Sequence[str],
    stub: str | None,
    json_wanted: bool,
) -> None:
    """Ask questions in real time, one after another, and say how long the first audio took.

    Another question each turn, so that no prompt is served whole from a cache.
    """
    from ondam.cli.up import laid_over
    from ondam.config import load
    from ondam.deploy.prepare import prepare
    from ondam.models.progress import Bars

    here = places()
    overrides = laid_over(settings)
    if language:
        overrides["language"] = language
    config = load(here.config_file, overrides)
    questions = _questions(folder, config.spoken_language)
    given = dict(setting.split("=", 1) for setting in settings) | {"language": config.spoken_language}
    if stub is None:
        with Bars() as bars:
            prepare(config, here, bars)
        result = asyncio.run(_bench(here, given, questions, turns, settle, alone=bool(settings)))
    else:
        result = asyncio.run(_bench_stubs(here, given, questions, turns, settle, stub))
    if json_wanted:
        click.echo(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        _draw(result)


def _questions(folder: Path | None, language: Any) -> list[bytes]:
    if folder is None:
        from ondam.measure.clips import clips

        return [clip.wav for clip in clips(language)]
    found = sorted(folder.glob("*.wav"))
    if not found:
        raise AudioError("bench_no_clips", path=folder)
    return [path.read_bytes() for path in found]


async def _bench(
    here: Places,
    settings: dict[str, str],
    questions: Sequence[bytes],
    turns: int,
    settle: int,
    *,
    alone: bool = False,
) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import Progress

    from ondam.control.client import Client
    from ondam.measure.distribution import summary

    async with (
        own_daemon(here, settings, alone=alone),
        Client(here.control_socket, reader_language()) as client,
    ):
        await until_ready(client)
        made = []
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(text("bench_progress", reader_language()), total=settle + turns)
            for number in range(settle + turns):
                question = questions[number % len(questions)]
                turn, _ = await client.wav_turn(question, settings["language"], reset_history=True)
                if number >= settle:
                    made.append(dict(turn))
                progress.advance(task)
        status = await client.status()
    conditions = {
        **status["conditions"],
        "clips": len(questions),
        "turns_before": settle,
        "settled_turns": sum(1 for turn in made if turn["settled"]),
        "budget_ms": FIRST_AUDIO_BUDGET_MS,
    }
    return {"conditions": conditions, "turns": made, **summary(made, budget_ms=FIRST_AUDIO_BUDGET_MS)}


async def _bench_stubs(
    here: Places, settings: dict[str, str], questions: Sequence[bytes], turns: int, settle: int, stub: str
) -> dict[str, Any]:
    import tempfile

    from ondam.measure.stubs import delays, stub_engines

    ms = delays(stub)
    with tempfile.TemporaryDirectory(prefix="ondam-stub-") as folder:
        async with stub_engines(Path(folder), ms) as addresses:
            result = await _bench(here, settings | addresses, questions, turns, settle, alone=True)
    result["conditions"]["stub_ms"] = ms
    return result


def _draw(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    language = reader_language()
    table = Table(box=None, pad_edge=False)
    for title in ("ms", "p50", "p90", "p95", "p99", "max", "n"):
        table.add_column(title, justify="left" if title == "ms" else "right")

    def row(name: str, figures: dict[str, Any]) -> None:
        table.add_row(name, *(str(figures[key]) for key in ("p50", "p90", "p95", "p99", "max", "n")))

    row(text("stage_first_audio", language), result["first_audio_ms"])
    for stage, figures in result["stages_ms"].items():
        row("  " + text(f"stage_{stage}", language), figures)
    row(text("bench_engines", language), result["engine_sum_ms"])
    row(text("bench_answer", language), result["answer_ms"])
    console = Console()
    console.print(table)
    facts = result["conditions"]
    console.print(
        text(
            "bench_conditions",
            language,
            over=result["over_budget"],
            budget=facts["budget_ms"],
            failed=result["failed"],
            settled=facts["settled_turns"],
            turns=len(result["turns"]),
            cores=facts["cores"],
            load=facts["load_average_1min"],
        )
    )
