"""``ondam bench``: many turns through the real daemon, as a distribution with its conditions."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.own_daemon import own_daemon, until_ready
from ondam.errors import AudioError
from ondam.messages import reader_language, text
from ondam.places import Places, places

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.measure.bench import Question
    from ondam.types import Language

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
        questions = _questions(folder, config.spoken_language)
        with Bars() as bars:
            prepare(config, here, bars)
        changed.append(f"language={config.spoken_language}")
        bench = _Bench(here, config, questions, turns, settle, dict(s.split("=", 1) for s in changed), other)
        result = asyncio.run(bench.run(stub_ms, Path(sockets), alone=bool(settings or stub_ms)))
    if json_wanted:
        click.echo(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        _draw(result)


def _questions(folder: Path | None, language: Language) -> list[Question]:
    from ondam.audio.resample import resampled
    from ondam.audio.wav import read_wav
    from ondam.control.sound import decode
    from ondam.measure.bench import Question
    from ondam.measure.clips import clips
    from ondam.types import HEARING_RATE_HZ

    if folder is None:
        return [
            Question(
                clip.name, clip.wav, resampled(decode(clip.wav, LONGEST_CLIP), HEARING_RATE_HZ), clip.words
            )
            for clip in clips(language)
        ]
    found = sorted(folder.glob("*.wav"))
    if not found:
        raise AudioError("bench_no_clips", path=folder)
    return [
        Question(path.name, path.read_bytes(), resampled(read_wav(path), HEARING_RATE_HZ)) for path in found
    ]


LONGEST_CLIP = 10_000_000
"""Samples; those that come with Ondam have a hundredth."""


class _Bench:
    """One run, from the daemon's start to its end."""

    def __init__(
        self,
        here: Places,
        config: Config,
        questions: Sequence[Question],
        turns: int,
        settle: int,
        settings: Mapping[str, str],
        against: Mapping[str, object] | None,
    ) -> None:
        self._here = here
        self._config = config
        self._questions = questions
        self._turns = turns
        self._settle = settle
        self._settings = settings
        self._against = against

    async def run(self, stub_ms: Mapping[str, float] | None, sockets: Path, *, alone: bool) -> dict[str, Any]:
        """Everything that ``--json`` prints. ``alone``: only a daemon of our own will do."""
        from ondam.control.client import Client
        from ondam.measure.stubs import heard_short, stub_engines

        async with AsyncExitStack() as running:
            if stub_ms:
                await running.enter_async_context(stub_engines(sockets, stub_ms))
            await running.enter_async_context(own_daemon(self._here, self._settings, alone=alone))
            client = await running.enter_async_context(Client(self._here.control_socket, reader_language()))
            await until_ready(client)
            return await self._measured(client, stub_ms, heard_short if stub_ms else lambda turn: False)

    async def _measured(
        self, client: Any, stub_ms: Mapping[str, float] | None, early: Callable[[Mapping[str, Any]], bool]
    ) -> dict[str, Any]:
        from rich.console import Console
        from rich.progress import Progress

        from ondam.measure.bench import measure
        from ondam.measure.raw import RawEngines

        language = self._config.spoken_language
        engines = RawEngines.of(await client.status(), self._here, self._config, language)
        load_before = os.getloadavg()[0]
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(
                text("bench_progress", reader_language()), total=self._settle + self._turns
            )
            run = await measure(
                client,
                engines,
                self._questions if not stub_ms else [_without_words(q) for q in self._questions],
                language=language,
                turns=self._turns,
                settle=self._settle,
                against=self._against,
                displace=not stub_ms,
                early=early,
                tick=lambda: progress.advance(task),
            )
        status = await client.status()
        conditions = {
            **status["conditions"],
            "clips": len(self._questions),
            "turns_before": self._settle,
            "settled_turns": sum(1 for turn in run.turns if turn.get("settled")),
            "budget_ms": FIRST_AUDIO_BUDGET_MS,
            "load_average_before": round(load_before, 2),
            "load_average_1min": round(os.getloadavg()[0], 2),
            "interleaved": ["turn", *(["against"] if self._against is not None else []), "raw"],
            "raw": "engines in turn over their own sockets, without the daemon",
        }
        if stub_ms:
            conditions["stub_ms"] = dict(stub_ms)
        return {
            "conditions": conditions,
            **run.as_json(budget_ms=FIRST_AUDIO_BUDGET_MS, against=self._against),
        }


def _without_words(question: Question) -> Question:
    from dataclasses import replace

    return replace(question, words=None)  # a stub hears only how long it was


PERCENTILES = ("p50", "p90", "p95", "p99", "max", "n")


def _draw(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    language = reader_language()
    table = Table(box=None, pad_edge=False)
    for title in ("ms", *PERCENTILES):
        table.add_column(title, justify="left" if title == "ms" else "right")

    def row(name: str, figures: Mapping[str, Any]) -> None:
        table.add_row(name, *("–" if figures[key] is None else str(figures[key]) for key in PERCENTILES))

    def side(figures: Mapping[str, Any]) -> None:
        row(text("stage_first_audio", language), figures["first_audio_ms"])
        for stage, told in figures["stages_ms"].items():
            row("  " + text(f"stage_{stage}", language), told)
        row(text("bench_engines", language), figures["engines_own_ms"])
        row(text("bench_answer", language), figures["answer_ms"])

    side(result)
    row(text("bench_raw", language), result["engine_sum_ms"])
    if (other := result.get("against")) is not None:
        table.add_section()
        table.add_row(text("bench_against", language, settings=_written(other["settings"])))
        side(other)
        row(text("bench_difference", language), result["difference_ms"])
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
    for figures in (result, other):
        for line in _doubts(figures, language) if figures is not None else ():
            console.print(line, style="yellow")
    if result["raw_failed"]:
        console.print(text("bench_raw_failed", language, count=result["raw_failed"]), style="red")


def _doubts(figures: Mapping[str, Any], language: Language) -> list[str]:
    """What keeps a figure from meaning what it seems to, and every turn that failed."""
    doubts = [
        text("bench_turn_failed", language, clip=turn["clip"], reason=_reason(turn, language))
        for turn in figures["turns"]
        if turn["outcome"] != "answered" or turn["first_audio_ms"] is None
    ]
    for code, count in (
        ("bench_from_cache", figures["prompts"]["whole_from_cache"]),
        ("bench_cut_short", figures["cut_short"]),
        ("bench_misheard", figures["misheard"]),
        ("bench_taken_back", figures["taken_back"]),
    ):
        if count:
            doubts.append(text(code, language, count=count))
    return doubts


def _reason(turn: Mapping[str, Any], language: Language) -> str:
    if "error" in turn:
        return str(turn["error"]["text"])
    from ondam.messages import catalog

    outcome = f"cli_outcome_{turn['outcome']}"
    return text(turn["fault"] or (outcome if outcome in catalog() else "bench_unheard"), language)


def _written(settings: Mapping[str, Any], prefix: str = "") -> str:
    """Nested tables as ``KEY=VALUE,KEY=VALUE``."""
    return ",".join(
        _written(value, f"{prefix}{key}.") if isinstance(value, Mapping) else f"{prefix}{key}={value}"
        for key, value in settings.items()
    )
