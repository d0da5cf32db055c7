"""What commands share: the way to the daemon, ``--json``, and columns that line up in Korean too."""

from __future__ import annotations

import json
import math
import sys
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ondam.messages import catalog, reader_language, text

if TYPE_CHECKING:
    from ondam.control.client import Client
    from ondam.errors import OndamError

T = TypeVar("T")

as_json = click.option("--json", "json_wanted", is_flag=True, help="JSON alone on stdout.")

language_option = click.option(
    "--language", type=click.Choice(["ko", "en"]), help="Of the words; by default as configured."
)


class Seconds(click.FloatRange):
    """A length of time within bounds. ``nan`` is within none: comparisons with it are all false."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """As a float; a usage error where it is out of bounds. Any: what click hands over."""
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(say("cli_not_finite", given=value), param, ctx)
        return seconds


def written(text: str) -> str:
    """TEXT of the command line, or all of stdin for ``-``. A usage error where there is nothing in it."""
    # Python has no stdin where it was closed (`<&-`).
    found = text if text != "-" else sys.stdin.read() if sys.stdin else ""
    if not found.strip():
        raise click.UsageError(say("cli_text_blank"), click.get_current_context())
    return found


def daemon(work: Callable[[Client], Awaitable[T]]) -> T:
    """``work`` with the running daemon. Raises ControlError, with what to type, when there is none."""
    # Late: --help is quick because it does not load an HTTP library.
    from ondam.control.client import call
    from ondam.places import answering

    return call(answering(), work, reader_language())


def lost(error: OndamError) -> bool:
    """Whether ``error`` is of the daemon or of who may use it, and not of the one thing that was asked."""
    return error.code in {
        "daemon_not_running",
        "daemon_gone",
        "daemon_silent",
        "control_socket_closed_to_you",
        "control_not_permitted",
        "control_directory_silent",
    }


def print_json(value: object) -> None:
    """One JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def say(code: str, /, **facts: object) -> str:
    """A text in the reader's language."""
    return text(code, reader_language(), **facts)


def named(prefix: str, value: str) -> str:
    """The words for one of a set (``cli_state_`` + ``listening``), or the value where there are none."""
    return say(prefix + value) if prefix + value in catalog() else value


def width(shown: str) -> int:
    """Columns on a terminal: Hangul takes two, a combining mark none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown
    )


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines whose columns line up; those in ``right`` to the right.

    Not a rich table: that costs every ``ondam status`` 0.1 s, and cuts what a narrow terminal cannot show.
    """
    if not rows:
        return []
    widths = [max(width(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(_padded(cell, widths[n], n in right) for n, cell in enumerate(row)).rstrip() for row in rows
    ]


def _padded(cell: str, wanted: int, right: bool) -> str:
    space = " " * (wanted - width(cell))
    return space + cell if right else cell + space


def milliseconds(value: float | None) -> str:
    """Whole milliseconds, or a dash."""
    return "–" if value is None else f"{value:.0f}"


def duration(seconds: float) -> str:
    """A length of time in the reader's words."""
    whole = int(seconds)
    if whole < 60:
        return say("cli_seconds", seconds=whole)
    if whole < 3600:
        return say("cli_minutes", minutes=whole // 60)
    return say("cli_hours", hours=whole // 3600, minutes=whole % 3600 // 60)


def print_turn(turn: Any) -> None:
    """A turn for a person: what was said, what was answered. Any: both ``wire.Turn`` and its JSON."""
    if turn["transcript"]:
        click.echo(f"{say('cli_you')}: {turn['transcript']}")
    if turn["reply"]:
        click.echo(f"{say('cli_ondam')}: {turn['reply']}")
    if turn["fault"]:
        click.echo(named("", turn["fault"]), err=True)
    elif not turn["reply"]:
        click.echo(named("cli_outcome_", turn["outcome"]), err=True)
    if turn["first_audio_ms"] is not None:
        click.echo(f"({say('cli_first_audio', ms=turn['first_audio_ms'])})", err=True)
