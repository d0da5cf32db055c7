"""``ondam report``: what the turns come to, with their conditions and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.differences import differences, short
from ondam.cli.terminal import as_json, columns, daemon, duration, named, print_json, say
from ondam.errors import ControlError, JournalError
from ondam.messages import message, reader_language

if TYPE_CHECKING:
    from ondam.journal.reading import Selection

PERCENTILES = ("n", "p50", "p90", "p95", "p99", "max")

SHOWN = 3
"""Sets of conditions in the terminal; all are in the JSON."""

RATIOS = (
    "ttft_ms",
    "token_ms",
    "tokens_per_s",
    "stt_rtf",
    "tts_rtf",
    "llm_calls",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "context_tokens",
    "answer_s",
)


@click.command("report")
@click.option("--since", metavar="WHEN", help="From then on: 2h, 7d, an ISO date, or a date and time.")
@click.option("--until", metavar="WHEN", help="Before then; a date alone is that whole day.")
@click.option("--session", metavar="NAME", help="One conversation, or all of one run of the daemon.")
@click.option("--plan", metavar="NAME", help="One set of conditions, by the beginning of its name.")
@click.option("--most", type=click.IntRange(1, 1_000_000), help="The newest so many turns; else 20000.")
@click.option(
    "--journal", type=click.Path(path_type=Path), help="Another journal: SQLite, JSON or JSON lines."
)
@click.option("--run", type=click.Path(path_type=Path), help="A stored run of ondam bench --json.")
@click.option("--against", metavar="FILE|NAME", help="Hold it against another file, or other conditions.")
@as_json
def command(
    since: str | None,
    until: str | None,
    session: str | None,
    plan: str | None,
    most: int | None,
    journal: Path | None,
    run: Path | None,
    against: str | None,
    json_wanted: bool,
) -> None:
    """Percentiles of first audio, its seven stages and the whole answer, for settled, rested and cold turns
    apart, with the conditions they were made under and what should be looked at.

    From the running daemon's journal, or its file when none runs. Turns under different conditions are never
    mixed.
    """
    if journal and run:
        raise click.UsageError(say("report_one_source"), click.get_current_context())
    wanted = {"since": since, "until": until, "session": session, "plan": plan, "most": most}
    _checked(wanted)
    file = journal or run
    made = _report(wanted, file)
    if against is None:
        if json_wanted:
            print_json(made)
            return
        for line in lines(made, whole=not any((since, until, session, plan))):
            click.echo(line)
        return
    if not made["groups"]:
        raise JournalError("report_no_turns")
    first = made["groups"][0]
    other = _other(wanted, file, against, first["conditions"])
    from ondam.journal.report import beside

    held = beside(first, other)
    if json_wanted:
        print_json({"report": made, "against": other, "beside": held})
        return
    for line in side_by_side(held):
        click.echo(line)


def _checked(wanted: Mapping[str, Any]) -> Selection:
    """A usage error before anybody is asked."""
    from ondam.journal.reading import MOST, Selection, moment

    now = datetime.now(UTC)
    bounds: dict[str, datetime | None] = {"since": None, "until": None}
    for name in bounds:
        if wanted[name]:
            try:
                bounds[name] = moment(wanted[name], now, end=name == "until")
            except (ValueError, OverflowError):
                raise click.UsageError(
                    say("reason_moment", name=f"--{name}", given=repr(wanted[name])[:80]),
                    click.get_current_context(),
                ) from None
    if bounds["since"] and bounds["until"] and bounds["since"] >= bounds["until"]:
        raise click.UsageError(
            say("reason_period", since=wanted["since"], until=wanted["until"]), click.get_current_context()
        )
    return Selection(**bounds, session=wanted["session"], plan=wanted["plan"], most=wanted["most"] or MOST)


def _report(wanted: Mapping[str, Any], file: Path | None) -> Mapping[str, Any]:
    """From ``file``, else from the daemon, else from its journal."""
    from ondam.places import places

    if file is not None:
        return _from_file(file, _checked(wanted))
    try:
        return daemon(lambda client: client.report(**wanted))
    except ControlError as error:
        if error.code != "daemon_not_running":
            raise
    kept = places().journal
    if not kept.exists():
        return {"turns": 0, "more": False, "skipped": 0, "groups": []}
    return _from_file(kept, _checked(wanted))


def _from_file(file: Path, selection: Selection) -> Mapping[str, Any]:
    from ondam.config import load
    from ondam.journal.reading import read
    from ondam.journal.report import report
    from ondam.journal.steady import Steadiness

    measure = load(None).measure  # for rows whose conditions do not say themselves what settled means
    found = read(file, selection)
    made = report(found.turns, found.facts, Steadiness(measure.steady_turns, measure.steady_within))
    return {**made.as_json(reader_language()), "more": found.more, "skipped": found.skipped}


def _other(wanted: Mapping[str, Any], file: Path | None, against: str, mine: str | None) -> Mapping[str, Any]:
    """The group that is held against: the newest of another file, or of the conditions of that name."""
    from ondam.journal.reading import MOST, Selection

    if Path(against).exists() or Path(against).suffix:
        groups = _from_file(Path(against), Selection(most=wanted["most"] or MOST))["groups"]
    else:
        found = _report({**wanted, "plan": against}, file)["groups"]
        groups = [group for group in found if group["conditions"] != mine]
        if found and not groups:
            raise JournalError("report_against_itself", against=against)
    if not groups:
        raise JournalError("report_no_turns_against", against=against)
    return dict(groups[0])


def lines(made: Mapping[str, Any], *, whole: bool = False) -> Iterator[str]:
    """A report for a person; ``whole``: of everything that the journal holds."""
    if not made["groups"] and whole:
        empty = message("report_nothing_yet", reader_language())
        yield empty.text
        yield f"→ {empty.next}"
    elif not made["groups"]:
        yield say("report_no_turns")
    for place, group in enumerate(made["groups"][:SHOWN]):
        if place:
            yield ""
        yield from _group(group, first=not place)
    if (left := len(made["groups"]) - SHOWN) > 0:
        yield ""
        yield say("report_groups_left", count=left)
    if made["more"]:
        yield say("report_more", count=made["turns"])
    if made["skipped"]:
        yield say("report_skipped", count=made["skipped"])


def _group(group: Mapping[str, Any], *, first: bool) -> Iterator[str]:
    yield say(
        "report_group",
        name=group["conditions"] or say("report_unknown"),
        turns=group["turns"],
        oldest=_local(group["oldest"]),
        newest=_local(group["newest"]),
    )
    yield from ("  " + line for line in _conditions(group))
    if not first and group["differs"]:
        yield "  " + say("report_differs")
        yield from ("  " + line for line in differences(group["differs"]))
    for name, figures in group["populations"].items():
        if figures["turns"] or name == "settled":
            yield ""
            yield from _population(name, figures, group["drifting"])
    yield ""
    if not group["findings"]:
        yield say("report_no_findings")
        return
    yield say("report_findings")
    for finding in group["findings"]:
        yield f"  {named('report_severity_', finding['severity'])}: {finding['text']}"
        if finding["next"]:
            yield f"    → {finding['next']}"


def _conditions(group: Mapping[str, Any]) -> Iterator[str]:
    facts, moment = group["facts"] or {}, group["moment"]
    load = moment["load_average_1min"]
    if not facts and not load["n"]:
        yield say("report_no_facts")
        return
    power = ", ".join(named("report_power_", name) for name in moment["power"])
    yield say(
        "report_machine",
        version=facts.get("version", "–"),
        cores=facts.get("cores", "–"),
        system=facts.get("system", "–"),
        load=_figure(load["p50"]),
        load_max=_figure(load["max"]),
        power=power or "–",
        ready=_ready(moment["engines_ready_s"]),
    )
    engines = facts.get("engines")
    for stage in ("stt", "llm", "tts"):
        engine = engines.get(stage) if isinstance(engines, dict) else None
        if not isinstance(engine, dict):
            continue
        yield f"{stage}: " + ", ".join(_engine(engine))
    if "endpoint" in facts:
        endpoint, drafts = (
            told if isinstance(told := facts.get(key), dict) else {} for key in ("endpoint", "drafts")
        )
        yield say(
            "report_settings",
            endpoint=endpoint.get("mode", "–"),
            drafts=say("report_on" if drafts.get("most_per_turn") else "report_off"),
            thinking=say("report_on" if facts.get("thinking") else "report_off"),
            max_tokens=facts.get("max_tokens", "–"),
            budget=_figure(budget) if isinstance(budget := facts.get("budget_ms"), (int, float)) else "–",
        )


def _ready(seconds: Mapping[str, float | None]) -> str:
    """How long the engines had been warm, at the median."""
    return "–" if seconds["p50"] is None else duration(seconds["p50"])


def _engine(engine: Mapping[str, Any]) -> Iterator[str]:
    """What it is and what it got: a figure without its provider and its graphs is half a figure."""
    for key in ("name", "model", "quantization", "dtype", "device"):
        if engine.get(key) is not None:
            yield str(engine[key])
    providers = engine.get("providers")
    for session, got in providers.items() if isinstance(providers, dict) else ():
        yield f"{session} {'+'.join(map(str, got)) if isinstance(got, list) else got}"
    if isinstance(engine.get("cuda_graphs"), bool):
        yield say("report_graphs", graphs=say("report_on" if engine["cuda_graphs"] else "report_off"))
    if engine.get("threads") is not None:
        yield say("report_threads", count=engine["threads"])
    if engine.get("sha256") is not None:
        yield short(engine["sha256"])
    if engine.get("outside") and engine.get("model") is None:
        yield say("report_outside")


def _population(name: str, figures: Mapping[str, Any], drifting: int) -> Iterator[str]:
    yield say(
        "report_population",
        name=say(f"report_population_{name}"),
        turns=figures["turns"],
        answered=figures["answered"],
    )
    if name == "cold" and drifting:
        yield "  " + say("report_drifting", count=drifting)
    if figures["interrupted"]:
        yield "  " + say("report_interrupted", count=figures["interrupted"])
    if figures["written"]:
        yield "  " + say("report_written", count=figures["written"])
    if figures["unanswered"]:
        told = (f"{named('cli_outcome_', what)} {count}" for what, count in figures["unanswered"].items())
        yield "  " + say("report_unanswered", outcomes=", ".join(told))
    if not figures["answered"]:
        return
    head = ["  ms", *PERCENTILES, say("report_column_over")]
    rows = [head, _row(say("stage_first_audio"), figures["first_audio_ms"])]
    rows += [
        _row("  " + say(f"stage_{stage}"), told) for stage, told in figures["stages_ms"].items() if told["n"]
    ]
    rows.append(_row(say("report_whole"), figures["answer_ms"]))
    if figures["typed"]:
        rows.append(_row(say("report_typed"), figures["typed_first_audio_ms"]))
    yield from columns(rows, right=range(1, len(head)))
    if figures["first_audio_ms"]["over_budget"]:
        yield "  " + say("report_over")
    if figures["modes"]:
        yield from ("  " + line for line in _modes(figures))
    ratios = [_row(say(f"report_{key}"), figures[key])[:-1] for key in RATIOS if figures[key]["n"]]
    if ratios:
        yield ""
        yield from columns([["  ", *PERCENTILES], *ratios], right=range(1, len(head) - 1))
    drafts = figures["drafts"]
    yield "  " + say(
        "report_shares",
        hits=_percent(figures["cache_hit_share"]),
        made=drafts["made"],
        dropped=drafts["dropped"],
        kept=drafts["kept"],
        tokens=drafts["dropped_tokens"],
        share=_percent(drafts["dropped_tokens_share"]),
    )


def _modes(figures: Mapping[str, Any]) -> Iterator[str]:
    told: dict[str, object] = {}
    for place, mode in zip(("first", "second"), figures["modes"], strict=True):
        told |= {place: f"{mode['p50']:.0f}", f"{place}_percent": f"{100 * mode['share']:.0f}"}
        told |= {f"{place}_from": f"{mode['from']:.0f}", f"{place}_to": f"{mode['to']:.0f}"}
    yield say("report_modes", **told)
    if split := figures["split_by"]:
        code = {"true": "report_split_so", "false": "report_split_not_so"}.get(split["slow"], "report_split")
        yield say(
            code,
            what=named("report_split_", split["what"]),
            slow=named("report_power_", split["slow"]),
            percent=f"{100 * split['explains']:.0f}",
        )


def side_by_side(held: Mapping[str, Any]) -> Iterator[str]:
    """What differs comes before any figure."""
    unknown = say("report_unknown")
    if not held["facts_known"]:
        yield say("report_facts_unknown")
    if held["differs"]:
        yield f"{say('report_differs')} A = {held['a'] or unknown}, B = {held['b'] or unknown}"
        yield from differences(held["differs"])
    elif held["facts_known"]:
        yield say("report_same")
    loads = [held["load_average_1min"][side] for side in ("a", "b")]
    yield f"{say('report_split_load')} (p50): A {_figure(loads[0]['p50'])}, B {_figure(loads[1]['p50'])}"
    ready = [_ready(held["engines_ready_s"][side]) for side in ("a", "b")]
    yield f"{say('report_ready')} (p50): A {ready[0]}, B {ready[1]}"
    power = [", ".join(named("report_power_", name) for name in held["power"][side]) for side in ("a", "b")]
    yield f"{say('report_split_power')}: A {power[0] or '–'}, B {power[1] or '–'}"
    for name, figures in held["populations"].items():
        first = figures["first_audio_ms"]
        if not first["a"]["n"] or not first["b"]["n"]:
            continue
        yield ""
        yield say(f"report_population_{name}")
        head = ["  ms", *(f"{side} {key}" for key in ("n", "p50", "p95") for side in ("A", "B"))]
        told = [(say("stage_first_audio"), first)]
        told += [("  " + say(f"stage_{stage}"), sides) for stage, sides in figures["stages_ms"].items()]
        told.append((say("report_whole"), figures["answer_ms"]))
        told += [
            (say(f"report_{key}"), figures[key]) for key in ("ttft_ms", "tokens_per_s", "stt_rtf", "tts_rtf")
        ]
        rows = [
            [f"  {label}", *(_figure(sides[side][key]) for key in ("n", "p50", "p95") for side in ("a", "b"))]
            for label, sides in told
            if sides["a"]["n"] or sides["b"]["n"]
        ]
        yield from columns([head, *rows], right=range(1, len(head)))


def _row(label: str, figures: Mapping[str, Any]) -> list[str]:
    return [
        f"  {label}",
        *(_figure(figures[key]) for key in (*PERCENTILES, "over_budget") if key in figures),
    ] + ([""] if "over_budget" not in figures else [])


def _figure(value: float | None) -> str:
    """Three digits, and no more decimals than that takes."""
    if value is None:
        return "–"
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _local(moment: str) -> str:
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return moment or "–"
