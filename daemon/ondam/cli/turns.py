"""``ondam turns``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import get_type_hints

import click

from ondam.cli.terminal import as_json, columns, daemon, milliseconds, named, print_json, say
from ondam.control import wire

STAGES = tuple(get_type_hints(wire.StagesMs))

LONGEST_TEXT = 40


@click.command("turns")
@click.option("-n", "count", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@as_json
def command(count: int, json_wanted: bool) -> None:
    """Show the last turns and their timings in milliseconds, newest first."""
    turns = daemon(lambda client: client.turns(count))
    if json_wanted:
        print_json({"turns": turns})
        return
    for line in table(turns):
        click.echo(line)


def table(turns: Sequence[wire.Turn]) -> Iterator[str]:
    """First audio and the whole answer stand apart from the seven stages; what is not settled has a star."""
    if not turns:
        yield say("cli_no_turns")
        return
    head = [
        *(say(f"cli_column_{name}") for name in ("time", "outcome", "first_audio", "answer")),
        *(named("stage_", stage) for stage in STAGES),
        say("cli_column_transcript"),
    ]
    numbers = range(2, 4 + len(STAGES))
    yield from columns([head, *map(_row, turns)], right=numbers)
    if not all(turn["settled"] for turn in turns):
        yield say("cli_unsettled")


def _row(turn: wire.Turn) -> list[str]:
    began = datetime.fromisoformat(turn["started_at"]).astimezone()
    stages = dict[str, float | None](**turn["stages_ms"])
    heard = " ".join((turn["transcript"] or "").split())
    return [
        f"{began:%m-%d %H:%M:%S}{' ' if turn['settled'] else '*'}",
        named("cli_outcome_", turn["outcome"]),
        milliseconds(turn["first_audio_ms"]),
        milliseconds(turn["answer_ms"]),
        *(milliseconds(stages.get(stage)) for stage in STAGES),
        heard if len(heard) <= LONGEST_TEXT else f"{heard[: LONGEST_TEXT - 1]}…",
    ]
