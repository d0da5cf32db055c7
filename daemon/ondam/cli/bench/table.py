"""A run as a table for a person, and what keeps its figures from meaning what they seem to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ondam.measure.compare import FEWEST
from ondam.measure.distribution import is_answered
from ondam.messages import reader_language, text

if TYPE_CHECKING:
    from ondam.types import Language

PERCENTILES = ("p50", "p90", "p95", "p99", "max", "n")


def draw(result: Mapping[str, Any]) -> None:
    """On stdout."""
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

    other = result.get("against")
    if other is not None:
        table.add_row(text("bench_side", language, side="A", settings=result["profile"] or "shipped"))
    side(result)
    row(text("bench_raw", language), result["engine_sum_ms"])
    if other is not None:
        table.add_section()
        table.add_row(text("bench_side", language, side="B", settings=other["profile"] or "shipped"))
        side(other)
        if other["engine_sum_ms"]["n"]:
            row(text("bench_raw", language), other["engine_sum_ms"])
        row(text("bench_difference", language), result["difference_ms"])
    console = Console()
    console.print(table)
    facts = {**result["conditions"], **result["conditions"]["run"]}
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
            load=facts["load_average_after"],
        )
    )
    memory = facts.get("memory_mib") or {}
    if len(memory) > 1:
        sums = {side: round(sum(mib or 0.0 for mib in of.values())) for side, of in memory.items()}
        console.print(text("bench_both_resident", language, **sums))
    for figure, told in result.get("comparison", {}).items():
        console.print(verdict(figure, told), style="bold" if told["verdict"] != "none" else "")
    if (stopped := result.get("stopped")) is not None:
        console.print(text("bench_stopped", language, reason=stopped["text"]), style="red")
    for name, figures in (("A: ", result), ("B: ", other)):
        for line in _doubts(figures, language) if figures is not None else ():
            console.print((name if other is not None else "") + line, style="yellow", markup=False)
    if result["raw_failed"]:
        console.print(text("bench_raw_failed", language, count=result["raw_failed"]), style="red")


def _doubts(figures: Mapping[str, Any], language: Language) -> list[str]:
    """What keeps a figure from meaning what it seems to, and every turn that failed."""
    doubts = [
        text("bench_turn_failed", language, clip=turn["clip"], reason=_reason(turn, language))
        for turn in figures["turns"]
        if turn["outcome"] != "answered" or turn["first_audio_ms"] is None
    ]
    unsettled = sum(1 for turn in figures["turns"] if is_answered(turn) and not turn.get("settled"))
    for code, count in (
        ("bench_unsettled", unsettled),
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


def verdict(figure: str, told: Mapping[str, Any]) -> str:
    """What a comparison of A and B comes to, in a sentence."""
    language = reader_language()
    name = text("stage_first_audio" if figure == "first_audio_ms" else "bench_answer", language)
    if told["reason"] == "too_few":
        return text("bench_too_few", language, figure=name, count=told["count"], fewest=FEWEST)
    low, high = (f"{100 * (bound - 1):+.1f}" for bound in told["interval"])
    return text(
        f"bench_verdict_{told['verdict'] if told['verdict'] != 'none' else told['reason']}",
        language,
        figure=name,
        percent=f"{100 * (told['ratio'] - 1):+.1f}",
        low=low,
        high=high,
        count=told["count"],
    )
