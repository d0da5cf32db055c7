"""``ondam bench --concurrency 1,2,4,8``: several conversations at once on the same engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from ondam.cli.bench.modes import Asked, Running, Table, Told, progress
from ondam.cli.terminal import say

if TYPE_CHECKING:
    from ondam.config import Config

SETTLE = 4
"""Turns before the first step, one after another, that do not count."""

DOORS = ("stt", "llm", "tts")


def sessions(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """``1,2,4``: numbers of sessions, in rising order, each once. A usage error for anything else."""
    if value is None:
        return None
    from ondam.control.wire import WAV_TURNS

    parts = [part.strip() for part in value.split(",")]
    numbers = {int(part) if part.isascii() and part.isdigit() and len(part) < 6 else 0 for part in parts}
    if not all(1 <= number <= WAV_TURNS for number in numbers):
        raise click.BadParameter(say("concurrency_list", given=value, most=WAV_TURNS), context, parameter)
    return tuple(sorted(numbers))


class Concurrency:
    """Implements ``modes.Mode``; ``turns`` are counted in each step."""

    def check(self, config: Config, asked: Asked) -> None:
        """The clips are read."""
        from ondam.cli.bench.questions import questions

        questions(asked.folder, config.spoken_language)

    async def run(self, running: Running) -> Told:
        """All steps."""
        from ondam.cli.bench.questions import questions, without_words
        from ondam.measure.concurrency import as_json, measure
        from ondam.measure.stubs import heard_short

        asked, budget_ms = running.asked, running.config.measure.budget_ms
        clips = questions(asked.folder, running.language)
        settle = SETTLE if asked.settle is None else asked.settle
        status = await running.client.status()
        early: Callable[[Mapping[str, object]], bool] = heard_short if asked.stub_ms else lambda turn: False
        with progress(settle + asked.turns * len(asked.steps)) as tick:
            steps = await measure(
                running.client,
                [without_words(clip) for clip in clips] if asked.stub_ms else clips,
                asked.steps,
                language=running.language,
                turns=asked.turns,
                settle=settle,
                seed=asked.seed,
                early=early,
                resident_mib=_resident(status["pid"]),
                tick=tick,
            )
        run = {
            "turns_each": asked.turns,
            "turns_before": settle,
            "clips": [clip.name for clip in clips],
            "prompts": {
                "answered": sum(step.answered for step in steps),
                "whole_from_cache": sum(step.whole_from_cache for step in steps),
            },
            "seed": asked.seed,
            "budget_ms": budget_ms,
        }
        return {"run": run, **as_json(steps, budget_ms=budget_ms)}

    def draw(self, result: Told) -> None:
        """A line a step: what users get, and then what waits where."""
        heard = Table([say(f"concurrency_{title}") for title in HEARD])
        waits = Table([say(f"concurrency_{title}") for title in WAITS])
        for step in result["steps"]:
            first, drafts = step["first_audio_ms"], step["drafts"]
            heard.rows.append(
                (
                    step["sessions"],
                    step["answered"],
                    step["failed"],
                    *(first[key] for key in ("p50", "p90", "p95")),
                    step["answer_ms"]["p50"],
                    step["turns_per_min"],
                    f"{drafts['made']}/{drafts['dropped']}",
                )
            )
            memory = step["memory_mib"]["daemon"]
            waits.rows.append(
                (
                    step["sessions"],
                    step["stages_ms"]["endpoint"]["p50"],
                    *(_both(step["waited_ms"][door]) for door in DOORS),
                    step["engine_ms"]["llm_first_token"]["p50"],
                    *(memory[key] for key in ("before", "after", "max")),
                )
            )
        heard.print()
        click.echo("")
        waits.print()
        for line in _doubts(result):
            click.echo(line)


HEARD = ("sessions", "answered", "failed", "p50", "p90", "p95", "answer", "per_min", "drafts")

WAITS = ("sessions", "endpoint", "wait_stt", "wait_llm", "wait_tts", "token", "before", "after", "max")


def _both(figures: Mapping[str, float | None]) -> str | None:
    return None if figures["p50"] is None else f"{figures['p50']:.0f}, {figures['p90']:.0f}"


def _doubts(result: Told) -> list[str]:
    stops, run = result["stops_at"], result["conditions"]["run"]
    lines = []
    if stops is None:
        lines.append(say("concurrency_no_end", serves=result["serves"]))
    else:
        reason = say(f"concurrency_why_{stops['reason']}", budget=round(run["budget_ms"]))
        lines.append(say("concurrency_stops", sessions=stops["sessions"], reason=reason))
    for step in result["steps"]:
        failed = [turn for turn in step["turns"] if "error" in turn]
        lines += [
            say("bench_turn_failed", clip=turn["clip"], reason=turn["error"]["text"]) for turn in failed
        ]
    if cached := run["prompts"]["whole_from_cache"]:
        lines.append(say("bench_from_cache", count=cached))
    lines.append(say("concurrency_conditions", turns=run["turns_each"], load=run["load_average_after"]))
    return lines


def _resident(pid: int) -> Callable[[], float | None]:
    """MiB that the process holds now; None where it is not ours to look at, or gone."""
    import psutil

    try:
        process = psutil.Process(pid)
    except psutil.Error:
        return lambda: None

    def resident() -> float | None:
        try:
            return round(process.memory_info().rss / 2**20, 1)
        except psutil.Error:
            return None

    return resident
