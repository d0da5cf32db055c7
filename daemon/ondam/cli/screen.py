"""What is watched, as a full screen of a terminal. Words and marks say all that colours do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast, get_type_hints

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ondam.cli.status import engine_row, one_line, switching
from ondam.cli.terminal import milliseconds, named, say
from ondam.cli.watched import Watched
from ondam.control import wire
from ondam.measure.waterfall import ROWS

STAGES = tuple(get_type_hints(wire.StagesMs))

LEVEL_WIDTH = 20
QUIETEST_DB = -60.0
"""Where a level's bar begins: a quiet room."""

BAR_WIDTH = 40
LONGEST = "◀"
"""Beside the stage that took the most of a turn."""

ORDER = ("settled", "after_idle", "cold")
"""Populations; the first that has answers is shown."""

WIDE_ENGINES, WIDE_TURNS = 90, 132
"""Columns from which a terminal has room for everything, and beside that for words."""

SIGNS = {
    "starting": "…",
    "listening": "○",
    "hearing": "●",
    "recognizing": "◐",
    "thinking": "◓",
    "speaking": "♪",
    "switching": "⇄",
    "fault": "!",
}


def screen(watched: Watched, width: int, height: int) -> RenderableType:
    """All of it that fits, the most important first: the last turns get the lines that are left."""
    status = watched.status
    if status is None:
        return Text(say("watch_waiting"))
    lines: list[RenderableType] = [_head(watched, status), _devices(watched, status)]
    lines += _faults(status)
    lines += _running(watched)
    lines += _engines(status, width)
    left = height - 1 - sum(map(_height, lines))
    for part in (_figures(status), _last(watched.turns) if width < WIDE_TURNS else ()):
        more = list(part)
        if (rows := sum(map(_height, more))) <= left:
            lines += more
            left -= rows
    lines += _turns(watched.turns, left, width)
    return Group(*lines)


def _height(one: RenderableType) -> int:
    return one.row_count + bool(one.show_header) if isinstance(one, Table) else 1


def _cut(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _head(watched: Watched, status: wire.Status) -> Text:
    if not watched.here:
        return _cut(f"✕ {say('watch_away')}", "bold red")
    style = "bold red" if status["state"] == "fault" else "bold"
    return _cut(f"{SIGNS.get(status['state'], ' ')} {one_line(status)}", style)


def _grid(*columns: str) -> Table:
    """A table without lines; ``columns`` are left, right, or rest (whatever is left over)."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(
            justify="right" if column == "right" else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if column == "rest" else None,
        )
    grid.expand = "rest" in columns
    return grid


def _devices(watched: Watched, status: wire.Status) -> Table:
    grid = _grid("left", "left", "right", "rest")
    for title, device, level in (
        ("cli_microphone", status["microphone"], watched.microphone_db),
        ("cli_speaker", status["speaker"], watched.speaker_db),
    ):
        state = named("cli_device_", device["state"])
        sound = "–" if level is None else f"{level:.0f} dB"
        grid.add_row(say(title), level_bar(level), sound, f"{device['name']} ({state})")
    return grid


def level_bar(level_db: float | None, width: int = LEVEL_WIDTH) -> str:
    """A bar of ``width``: empty at -60 dBFS, full at 0; dashes where nothing comes."""
    if level_db is None:
        return "╌" * width
    full = round((1 - max(QUIETEST_DB, min(0.0, level_db)) / QUIETEST_DB) * width)
    return "█" * full + "░" * (width - full)


def _faults(status: wire.Status) -> Iterator[Text]:
    faults = [*status["faults"], *(fault for engine in status["engines"] for fault in engine["faults"])]
    for text, after in dict.fromkeys((" ".join(f["text"].split()), f["next"]) for f in faults):
        yield _cut(f"! {text}" + (f"  → {after}" if after else ""), "red")
    if (switch := status["switch"]) and switch["state"] not in ("done", "failed"):
        for line in switching(switch):
            yield _cut(line)


def _running(watched: Watched) -> Iterator[RenderableType]:
    """The turn that is under way: its words, and a bar for each stage as far as it has come."""
    yield _cut("")
    if watched.turn is None and watched.transcript is None:
        yield _cut(say("watch_no_turn"), "dim")
        return
    yield _cut(f"{say('cli_you')}: {watched.transcript or '…'}")
    yield _cut(f"{say('cli_ondam')}: {watched.reply or '…'}")
    if bars := growing(watched.marks_ms):
        grid = _grid("left", "left", "right")
        for stage, bar, ms in bars:
            grid.add_row(named("stage_", stage), bar, f"{ms:.0f} ms")
        yield grid


def growing(marks_ms: dict[str, float | None], width: int = BAR_WIDTH) -> list[tuple[str, str, float]]:
    """Stage, bar, and milliseconds of each stage that has ended; all on the clock of the latest of them."""
    at = {name: ms for name, ms in marks_ms.items() if ms is not None}
    over = [(stage, at[begin], at[end]) for stage, begin, end in ROWS if begin in at and end in at]
    if not over:
        return []
    first = min(0.0, *(begin for _, begin, _ in over))
    whole = max(end for _, _, end in over) - first or 1.0
    bars = []
    for stage, begin, end in over:
        left, right = (round((ms - first) / whole * width) for ms in (begin, end))
        right = min(width, max(right, left + 1))
        bars.append((stage, " " * min(left, width - 1) + "█" * (right - min(left, width - 1)), end - begin))
    return bars


def _engines(status: wire.Status, width: int) -> Iterator[RenderableType]:
    yield _cut("")
    # Stage, name, state, model, device, process, memory, remarks; a narrow terminal does without some.
    shown = range(8) if width >= WIDE_ENGINES else (1, 2, 4, 6, 7)
    grid = _grid(*("right" if column == 6 else "left" for column in shown))
    for engine in status["engines"]:
        row = engine_row(engine)
        grid.add_row(*(row[column] for column in shown))
    yield grid


def _figures(status: wire.Status) -> Iterator[Text]:
    """What this daemon's turns came to: the settled ones, or while there are none those that there are."""
    populations = cast(Mapping[str, Any], status["report"]["populations"])
    for name in ORDER:
        first = populations[name]["first_audio_ms"] if name in populations else {"n": 0}
        if first["n"]:
            yield _cut("")
            yield _cut(
                say(
                    "watch_figures",
                    **{key: milliseconds(first[key]) for key in ("p50", "p95")},
                    budget=milliseconds(cast(float, status["conditions"]["budget_ms"])),
                    over=first["over_budget"],
                    n=first["n"],
                    kind=named("panel_population_", name),
                )
            )
            return


def _last(turns: Sequence[wire.Turn]) -> Iterator[RenderableType]:
    """The stages of the newest turn, where the lines of the others have no room for theirs."""
    if not turns:
        return
    yield _cut("")
    yield _cut(say("watch_last", ms=milliseconds(turns[0]["first_audio_ms"])))
    longest = _longest(turns[0])
    grid = _grid("left", "right", "left")
    for stage, took in _stages(turns[0]).items():
        mark = say("watch_longest") if stage == longest else ""
        grid.add_row(f"  {named('stage_', stage)}", f"{milliseconds(took)} ms", mark)
    yield grid


def _stages(turn: wire.Turn) -> dict[str, float | None]:
    return dict[str, float | None](**turn["stages_ms"])


def _longest(turn: wire.Turn) -> str | None:
    known = {stage: ms for stage, ms in _stages(turn).items() if ms is not None}
    return max(known, key=lambda stage: known[stage], default=None)


def _turns(turns: Sequence[wire.Turn], rows: int, width: int) -> Iterator[RenderableType]:
    if rows < 3 or not turns:
        return
    yield _cut("")
    stages = [named("stage_", stage) for stage in STAGES] if width >= WIDE_TURNS else []
    grid = _grid("left", "right", *("right" for _ in stages), "rest")
    grid.add_row(
        *(
            Text(word, style="dim")
            for word in [say("cli_column_time"), say("cli_column_first_audio"), *stages]
        ),
        Text(say("cli_column_transcript"), style="dim"),
    )
    for turn in list(turns)[: rows - 2]:
        began = datetime.fromisoformat(turn["started_at"]).astimezone()
        over = "!" if turn["over_budget"] else " "
        took, longest = _stages(turn), _longest(turn)
        grid.add_row(
            f"{began:%H:%M:%S}{' ' if turn['settled'] else '*'}",
            f"{milliseconds(turn['first_audio_ms'])}{over}",
            *(
                f"{milliseconds(took.get(stage))}{LONGEST if stage == longest else ' '}"
                for stage in STAGES
                if stages
            ),
            " ".join((turn["transcript"] or named("cli_outcome_", turn["outcome"])).split()),
        )
    yield grid
