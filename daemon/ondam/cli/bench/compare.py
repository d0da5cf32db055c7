"""``ondam bench compare OLD NEW``: whether a run is slower than an older one, beyond noise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from ondam.cli.bench.stored import FORMAT
from ondam.cli.differences import differences
from ondam.cli.terminal import as_json, columns, print_json, say
from ondam.errors import JournalError
from ondam.messages import Phrase

REGRESSION = 8
"""The exit code; documented in ``ondam --help``."""

LARGEST = 512 * 1024 * 1024
"""Bytes; a turn is about two kilobytes."""

DECISIVE = ("name", "model", "sha256", "quantization", "device", "outside")
"""Of an engine: where one of these differs, it is the engines that were measured."""


@click.command("compare")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--anyway", is_flag=True, help="Also where engines, models or prompts are not the same.")
@as_json
def command(old: Path, new: Path, anyway: bool, json_wanted: bool) -> int:
    """Hold a run stored by ondam bench --json against an older one.

    Ends with 8 where NEW is slower, or fails more often, than chance explains. What differs in the conditions
    is told before any figure.
    """
    made = compared(_stored(old), _stored(new))
    if made["decisive"] and not anyway:
        raise JournalError("bench_differ_too_much", keys=", ".join(made["decisive"]))
    if json_wanted:
        print_json(made)
    else:
        for line in lines(made, str(old), str(new)):
            click.echo(line)
    return REGRESSION if made["regression"] else 0


def compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that ``--json`` prints. A is the older one."""
    from ondam.journal.report import differing
    from ondam.measure.compare import FIGURES, between, fails_more
    from ondam.measure.distribution import distribution, is_answered

    differs = differing(_facts(old), _facts(new))
    by_clip = bool(_clips(old)) and _clips(old) == _clips(new)
    compared = {
        figure: between(old["turns"], new["turns"], figure, by_clip=by_clip).as_json() for figure in FIGURES
    }
    figures = {
        figure: {
            side: distribution(turn.get(figure) for turn in run["turns"] if _counts(turn))
            for side, run in (("a", old), ("b", new))
        }
        for figure in FIGURES
    }
    failed = {
        side: (sum(1 for turn in run["turns"] if not is_answered(turn)), len(run["turns"]))
        for side, run in (("a", old), ("b", new))
    }
    more = fails_more(failed["a"], failed["b"])
    return {
        "differs": differs,
        "decisive": [one["key"] for one in differs if _is_decisive(one["key"])],
        "paired_by": "clip" if by_clip else None,
        "figures": figures,
        "comparison": compared,
        "failed": {side: {"failed": bad, "turns": count} for side, (bad, count) in failed.items()},
        "fails_more": more,
        "stopped": {"a": "stopped" in old, "b": "stopped" in new},
        "regression": more or any(told["verdict"] == "a" for told in compared.values()),
    }


def lines(made: Mapping[str, Any], old: str, new: str) -> Iterator[str]:
    """For a person: what differs first."""
    from ondam.cli.bench.table import PERCENTILES, verdict

    if made["differs"]:
        yield say("bench_compared_differs", old=old, new=new)
        yield from differences(made["differs"])
    else:
        yield say("bench_compared_same", old=old, new=new)
    yield say("bench_compared_pairs" if made["paired_by"] else "bench_compared_runs")
    yield ""
    rows = [["ms", *PERCENTILES]]
    for figure, name in (("first_audio_ms", "stage_first_audio"), ("answer_ms", "bench_answer")):
        for side in ("a", "b"):
            told = made["figures"][figure][side]
            shown = ("–" if told[key] is None else str(told[key]) for key in PERCENTILES)
            rows.append([f"{say(name)}, {side.upper()}", *shown])
    yield from columns(rows, right=range(1, len(rows[0])))
    yield ""
    for figure, told in made["comparison"].items():
        yield verdict(figure, told)
    for side, name in (("a", old), ("b", new)):
        if made["stopped"][side]:
            yield say("bench_compared_stopped", run=name)
    if made["fails_more"]:
        a, b = made["failed"]["a"], made["failed"]["b"]
        yield say(
            "bench_fails_more",
            old=a["failed"],
            old_count=a["turns"],
            new=b["failed"],
            new_count=b["turns"],
        )
    yield say("bench_regression" if made["regression"] else "bench_no_regression")


def _stored(path: Path) -> dict[str, Any]:
    """A run. Raises JournalError: what is wrong with the file."""
    try:
        if path.stat().st_size > LARGEST:
            raise JournalError("bench_run_broken", path=path, reason=f"> {LARGEST // 2**20} MiB")
        run = json.loads(path.read_text("utf-8"), parse_constant=_no_such_number)
    except FileNotFoundError as error:
        raise JournalError("journal_absent", path=path) from error
    except OSError as error:
        raise JournalError("journal_unreadable", path=path, reason=error.strerror or error) from error
    except (ValueError, RecursionError) as error:
        raise JournalError(
            "bench_run_broken", path=path, reason=Phrase("bench_run_no_json", reason=error)
        ) from error
    if not isinstance(run, dict):
        raise _lacking(path, "turns")
    if isinstance(mode := run.get("mode"), str):
        reason = Phrase("bench_run_of_mode", mode=f"--{mode}")
        raise JournalError("bench_run_broken", path=path, reason=reason)
    if (version := run.get("bench", FORMAT)) != FORMAT:
        reason = Phrase("bench_run_version", version=version, known=FORMAT)
        raise JournalError("bench_run_broken", path=path, reason=reason)
    if not isinstance(run.get("conditions"), dict):
        raise _lacking(path, "conditions")
    turns = run.get("turns")
    if not isinstance(turns, list) or not turns or not all(_is_turn(turn) for turn in turns):
        raise _lacking(path, "turns")
    return run


def _no_such_number(name: str) -> NoReturn:
    raise ValueError(name)


def _lacking(path: Path, what: str) -> JournalError:
    return JournalError("bench_run_broken", path=path, reason=Phrase("bench_run_lacks", what=f'"{what}"'))


def _is_turn(turn: object) -> bool:
    return (
        isinstance(turn, dict)
        and isinstance(turn.get("outcome"), str)
        and all(
            turn.get(key, 0) is None or (isinstance(turn.get(key, 0), int | float))
            for key in ("first_audio_ms", "answer_ms")
        )
        and "first_audio_ms" in turn
    )


def _counts(turn: Mapping[str, Any]) -> bool:
    from ondam.measure.distribution import is_answered

    return is_answered(turn) and bool(turn.get("settled"))


RUN = ("seed", "stub_ms", "turns_before")
"""What of ``conditions.run`` says what was asked, and not how it went."""


def _facts(run: Mapping[str, Any]) -> dict[str, Any]:
    from ondam.journal.reading import OF_THE_MOMENT

    told = run["conditions"]
    asked = told.get("run") if isinstance(told.get("run"), dict) else {}
    facts = {key: value for key, value in told.items() if key not in OF_THE_MOMENT}
    if asked.get("stub_ms"):
        facts.pop("engines", None)  # named after sockets of that run; the delays say who they are
    prompt = asked.get("prompt")
    made = {key: asked.get(key) for key in RUN} | {"clips": _clips(run)}
    return {**facts, "run": {**made, "prompt": prompt.get("sha256") if isinstance(prompt, dict) else None}}


def _clips(run: Mapping[str, Any]) -> dict[str, Any]:
    """Name to what is in it; empty where nobody wrote it down."""
    asked = run["conditions"].get("run")
    told = asked.get("clips") if isinstance(asked, dict) else None
    if not isinstance(told, list):
        return {}
    return {str(one["name"]): one.get("sha256") for one in told if isinstance(one, dict) and "name" in one}


def _is_decisive(key: str) -> bool:
    parts = key.split(".")
    if parts[0] == "engines":
        return len(parts) < 3 or parts[-1] in DECISIVE
    return key == "language" or (parts[0] == "run" and parts[1] in ("prompt", "stub_ms"))
