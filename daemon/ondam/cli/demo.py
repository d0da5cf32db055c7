"""``ondam demo``: one whole turn from a WAV on the resident engines, no sound card needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.own_daemon import asked_in, own_daemon, until_ready
from ondam.messages import reader_language, text
from ondam.places import Places, places

if TYPE_CHECKING:
    from ondam.types import Language


@click.command("demo")
@click.option("--ask", type=click.Path(path_type=Path), help="A WAV with a spoken question, instead of ours.")
@click.option("--turns", default=1, show_default=True, type=click.IntRange(1, 1000), help="How many turns.")
@click.option(
    "--language",
    type=click.Choice(["ko", "en"]),
    help="Of question and answer; else as the daemon that runs, or as configured.",
)
@click.option(
    "--out",
    default=Path("answer.wav"),
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the answer goes; further turns get a number.",
)
@click.option("--quiet", is_flag=True, help="Do not play the answer.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object on stdout, progress on stderr.")
def command(
    ask: Path | None, turns: int, language: Language | None, out: Path, quiet: bool, json_wanted: bool
) -> None:
    """Ask a spoken question and answer it aloud, with the embedded models.

    Fetches engines and models that are missing, starts the daemon when none runs (and ends it again), asks
    the question in real time, plays the answer where there is a speaker, and writes it to answer.wav.
    """
    from ondam.config import load
    from ondam.deploy.prepare import prepare
    from ondam.models.progress import Bars

    here = places()
    language = asked_in(here, language)
    config = load(here.config_file, {"language": language} if language else None)
    questions = _questions(ask, config.spoken_language)
    with Bars() as bars:
        prepare(config, here, bars)
    result = asyncio.run(_demo(here, config.spoken_language, questions, turns, out))
    if json_wanted:
        click.echo(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        _draw(result)
    if not quiet and not json_wanted:
        _play([Path(turn["audio"]["path"]) for turn in result["turns"] if turn["audio"]["path"]])


def _questions(ask: Path | None, language: Any) -> list[bytes]:
    if ask is None:
        from ondam.measure.clips import clips

        return [clip.wav for clip in clips(language)]
    from ondam.audio.wav import read_wav

    read_wav(ask)  # tells what is wrong with it before anything is started
    return [ask.read_bytes()]


async def _demo(
    here: Places, language: str, questions: Sequence[bytes], turns: int, out: Path
) -> dict[str, Any]:
    from ondam.control.client import Client

    async with (
        own_daemon(here, {"language": language}),
        Client(here.control_socket, reader_language()) as client,
    ):
        await until_ready(client)
        made = []
        for number in range(turns):
            # Another question each time: the same one would measure the prompt cache.
            question = questions[number % len(questions)]
            turn, wav = await client.wav_turn(question, language, reset_history=number == 0)
            shown: dict[str, Any] = dict(turn)
            path = out if number == 0 else out.with_stem(f"{out.stem}-{number + 1}")
            if turn["audio"]["seconds"]:
                path.write_bytes(wav)
            shown["audio"] = {"path": str(path) if turn["audio"]["seconds"] else None, **turn["audio"]}
            made.append(shown)
            _say(
                text("demo_turn", reader_language(), number=number + 1, turns=turns, said=turn["transcript"])
            )
        status = await client.status()
        return {"turns": made, "engines": status["engines"], "conditions": status["conditions"]}


def _draw(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.text import Text

    from ondam.measure.waterfall import waterfall

    console = Console()
    language = reader_language()
    width = max(24, min(60, console.width - 40))
    for turn in result["turns"]:
        console.print(Text(text("demo_question", language, text=turn["transcript"] or "—"), style="bold"))
        console.print(Text(text("demo_answer", language, text=turn["reply"] or "—"), style="bold"))
        if turn["fault"]:
            console.print(Text(text(turn["fault"], language), style="red"))
        for bar in waterfall(turn, language, width):
            label = Text(bar.label)
            label.truncate(18, overflow="ellipsis", pad=True)
            figure = f"{bar.ms:8.0f} ms" if bar.ms is not None else "       — ms"
            style = "dim" if bar.stage == "ipc" else "cyan"
            console.print(Text.assemble(" ", label, " ", (bar.bar, style), figure))
        if turn["first_audio_ms"] is not None:
            facts = {"first": turn["first_audio_ms"], "whole": turn["answer_ms"] or 0.0}
            console.print(Text(text("demo_figures", language, **facts)))
            if not turn["settled"]:
                console.print(Text(text("demo_unsettled", language), style="dim"))
        if turn["audio"]["path"]:
            console.print(Text(text("demo_written", language, path=turn["audio"]["path"])))


def _play(paths: Sequence[Path]) -> None:
    from ondam.audio import open_speaker, read_wav, resampled

    missing: list[str] = []

    def fault(code: str | None, /, **facts: object) -> None:
        if code:
            missing.append(code)

    async def play() -> None:
        speaker = open_speaker("default", latency_ms=60, on_fault=fault)
        try:
            await asyncio.sleep(0.3)  # a missing device is told within this time, or later on a busy machine
            for path in () if missing else paths:
                await speaker.write(resampled(read_wav(path), speaker.rate_hz).samples)
                await speaker.drained()
            if missing:
                _say(text("demo_no_speaker", reader_language()))
        finally:
            await speaker.close()

    asyncio.run(play())


def _say(line: str) -> None:
    click.echo(line, err=True)
