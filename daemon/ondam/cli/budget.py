"""``ondam budget``: what the wait is made of, what it could be, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from ondam.cli.terminal import as_json, columns, milliseconds, print_json
from ondam.errors import ControlError
from ondam.messages import reader_language, text

if TYPE_CHECKING:
    from ondam.measure.budget_answer import Wanted
    from ondam.types import Language

BARS = 44
"""Columns of the timeline."""


@click.command("budget")
@click.option("--preset", metavar="NAME", help="Else this machine, or embedded-cpu while it has no turns.")
@click.option("--against", metavar="NAME", help="A second preset beside it.")
@click.option("--set", "settings", multiple=True, metavar="STAGE=MS", help="Another figure for a stage.")
@click.option("--target", metavar="MS", help="For first audio; else measure.budget_ms.")
@click.option("--drafts/--no-drafts", default=None, help="Answers begun in the pause, or not.")
@click.option("--streaming/--no-streaming", default=None, help="Spoken clause by clause, or as a whole.")
@click.option("--load", "speakers", metavar="N", help="So many people speak at the same time (M/M/c).")
@click.option("--every", metavar="S", help="Each of them asks so often; else 15 seconds.")
@click.option("--sources", is_flag=True, help="Where each figure is from, in words.")
@click.option("--language", type=click.Choice(["ko", "en"]), help="Of the texts; else the reader's.")
@as_json
def command(
    preset: str | None,
    against: str | None,
    settings: Sequence[str],
    target: str | None,
    drafts: bool | None,
    streaming: bool | None,
    speakers: str | None,
    every: str | None,
    sources: bool,
    language: str | None,
    json_wanted: bool,
) -> None:
    """The seven stages between the user's last word and the first sound: what each takes, what it usually
    takes, which is waited for longest, and what would help most.

    STAGE is endpoint, ipc, stt, llm_first_token, first_clause, tts_first_audio or playback_buffer; draft_at,
    answer_rest and voice_rest can be set too (docs/budget.md). NAME is this-machine, embedded-cpu, h100,
    h200, laptop, managed-apis or process-per-utterance.
    """
    from ondam.measure.budget_answer import BudgetError, wanted
    from ondam.measure.budget_data import knowledge

    reader = cast("Language", language or reader_language())
    try:
        asked = wanted(
            knowledge(),
            preset=preset,
            against=against,
            settings=settings,
            target=target,
            drafts=drafts,
            streaming=streaming,
            speakers=speakers,
            every=every,
        )
        made = _answer(asked, reader)
    except BudgetError as error:
        raise click.UsageError(error.phrase.in_language(reader), click.get_current_context()) from error
    if json_wanted:
        print_json(made)
        return
    for line in lines(made, reader, sources=sources):
        click.echo(line)


def _answer(asked: Wanted, language: Language) -> Mapping[str, Any]:
    """From the daemon where its journal is wanted and it runs, else from here."""
    from ondam.config import load
    from ondam.control.client import call
    from ondam.measure.budget_answer import answer
    from ondam.measure.budget_data import knowledge
    from ondam.measure.budget_reading import own_of
    from ondam.places import answering, places

    if asked.own:
        try:
            return call(answering(), lambda client: client.budget(asked.query()), language)
        except ControlError as error:
            if error.code == "control_bad_request":
                raise click.UsageError(error.message(language).text, click.get_current_context()) from error
            if error.code != "daemon_not_running":
                raise
    measure = load(places().config_file).measure
    own = own_of(places().journal, measure) if asked.own else None
    return answer(asked, knowledge(), own, measure.budget_ms, language)


def lines(made: Mapping[str, Any], language: Language, *, sources: bool = False) -> Iterator[str]:
    """A budget for a person: timeline, table, what would help, and with ``sources`` where it is all from."""
    other = made["against"]
    scale = max(side["total_ms"] for side in (made, other) if side)
    scale = 1.05 * max(scale, made["target_ms"], made["zones"]["conversational_ms"])
    for note in made["notes"]:
        yield note["text"]
        yield f"→ {note['next']}"
        yield ""
    yield from _side(made, scale, language)
    if other:
        yield ""
        yield from _side(other, scale, language)
        yield ""
        yield from _beside(made, other, language)
    yield ""
    if not sources:
        yield text("budget_sources_hint", language)
        return
    yield from _sources(made, language, usual=True)
    if other:
        yield ""
        yield from _sources(other, language, usual=False)


def _side(side: Mapping[str, Any], scale: float, language: Language) -> Iterator[str]:
    def say(code: str, /, **facts: object) -> str:
        return text(code, language, **facts)

    zones = side["zones"]
    marks = (zones["natural_ms"], zones["conversational_ms"], side["target_ms"])
    yield side["title"]
    head = [
        "  ms",
        "",
        "p50",
        "p95",
        say("budget_column_waited"),
        "Σ",
        say("budget_column_usual"),
        say("budget_column_target"),
        say("budget_column_source"),
    ]
    rows = [
        [
            "  " + say(f"stage_{stage['stage']}"),
            _bar(stage, marks, scale),
            milliseconds(stage["ms"]),
            milliseconds(stage["p95_ms"]),
            milliseconds(stage["waited_ms"]),
            milliseconds(stage["cumulative_ms"]),
            "{low:.0f}–{high:.0f}".format(**stage["usual_ms"]) + ("!" if stage["over_usual"] else ""),
            milliseconds(stage["target_ms"]),
            _dated(stage, language),
        ]
        for stage in side["stages"]
    ]
    yield from columns([head, *rows], right=range(2, 8))
    yield "  " + say("budget_legend")
    if measured := side["measured"]:
        first, reached = measured["first_audio_ms"], measured["zone"]
        yield say(
            "budget_measured",
            turns=first["n"],
            p50=first["p50"],
            p95=first["p95"],
            zone=say(f"budget_zone_{reached['p50']}"),
            zone_p95=say(f"budget_zone_{reached['p95']}"),
        )
    yield say(
        "budget_total_modelled" if measured else "budget_total",
        total=side["total_ms"],
        zone=say(f"budget_zone_{side['zone']}"),
        natural=zones["natural_ms"],
        conversational=zones["conversational_ms"],
        target=side["target_ms"],
        sum=side["sum_ms"],
    )
    yield side["overlap"]["assumption"]
    if side["load"]:
        yield f"{side['load']['assumption']}: {side['load']['text']}"
    yield say("budget_bottleneck", stage=say(f"stage_{side['bottleneck']}"))
    if not side["remedies"]:
        if not side["over_target"] and not (measured and measured["over_target"]):
            yield say("budget_no_remedies")
        return
    yield say("budget_remedies")
    for remedy in side["remedies"]:
        stage = say(f"stage_{remedy['stage']}")
        yield "  " + say("budget_gain", gain=remedy["gain_ms"], stage=stage, text=remedy["text"])
        yield f"    → {remedy['next']}"


def _dated(stage: Mapping[str, Any], language: Language) -> str:
    """Kind and date: the words before the first colon of the source."""
    return " ".join(
        filter(None, (text(f"budget_kind_{stage['source_kind']}", language), stage["source_date"]))
    ).replace("read ", "")


def _sources(side: Mapping[str, Any], language: Language, *, usual: bool) -> Iterator[str]:
    """Of every figure; the usual ranges and the zones are the same for both sides."""

    def say(code: str, /, **facts: object) -> str:
        return text(code, language, **facts)

    def line(label: str, source: str, url: str | None = None) -> str:
        return f"  {label}: {source}" + (f" {url}" if url else "")

    yield say("budget_sources", title=side["title"])
    for stage in side["stages"]:
        yield line(say(f"stage_{stage['stage']}"), stage["source"], stage["source_url"])
    yield line(say("budget_source_of_draft"), side["overlap"]["draft_source"])
    yield line(say("budget_source_of_rest"), side["overlap"]["rest_source"])
    if not usual:
        return
    yield ""
    yield say("budget_sources_usual")
    for stage in side["stages"]:
        yield line(say(f"stage_{stage['stage']}"), stage["usual_source"], stage["usual_url"])
    for zone in ("natural", "conversational"):
        yield line(say(f"budget_zone_{zone}"), side["zones"][f"{zone}_source"])


def _bar(stage: Mapping[str, Any], marks: Sequence[float], scale: float) -> str:
    """From where it begins to where it ends; what is waited for lies at the end of that."""

    def column(at_ms: float) -> int:
        return min(BARS, round(BARS * at_ms / scale))

    cells = [" "] * (BARS + 1)
    for mark in marks:
        cells[column(mark)] = "│"
    waited_from = stage["cumulative_ms"] - stage["waited_ms"]
    for cell in range(column(stage["begins_ms"]), column(stage["ends_ms"])):
        cells[cell] = "░"
    for cell in range(column(waited_from), column(stage["cumulative_ms"])):
        cells[cell] = "█"
    return "".join(cells)


def _beside(one: Mapping[str, Any], other: Mapping[str, Any], language: Language) -> Iterator[str]:
    def say(code: str, /, **facts: object) -> str:
        return text(code, language, **facts)

    yield say("budget_side", a=one["title"], b=other["title"])
    waited = say("budget_column_waited")
    head = ["  ms", "A", "B", "B − A", f"{waited} A", f"{waited} B", "B − A"]

    def row(label: str, *pairs: tuple[float, float]) -> list[str]:
        return [label, *(cell for a, b in pairs for cell in (f"{a:.0f}", f"{b:.0f}", f"{b - a:+.0f}"))]

    rows = [
        row("  " + say(f"stage_{a['stage']}"), (a["ms"], b["ms"]), (a["waited_ms"], b["waited_ms"]))
        for a, b in zip(one["stages"], other["stages"], strict=True)
    ]
    sums = row(
        "  " + say("stage_first_audio"),
        (one["sum_ms"], other["sum_ms"]),
        (one["total_ms"], other["total_ms"]),
    )
    yield from columns([head, *rows, sums], right=range(1, 7))
    yield "  A " + say(f"budget_zone_{one['zone']}") + ", B " + say(f"budget_zone_{other['zone']}")
