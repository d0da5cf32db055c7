"""``ondam plan``: what this machine, or one that is not here, should run, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.terminal import as_json, columns, print_json
from ondam.cli.up import laid_over
from ondam.errors import ConfigError
from ondam.messages import reader_language, text, without_password

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.messages import Phrase
    from ondam.models.card import ModelCard
    from ondam.models.lookup import WantedModels
    from ondam.planner.facts import Facts
    from ondam.planner.plan import Plan, PlannedEngine, Refusal
    from ondam.types import Language

LANGUAGES: tuple[Language, ...] = ("en", "ko")


@click.command("plan")
@click.option(
    "--for", "machine", metavar="FILE", help="A machine that is not here, as JSON (docs/plan.md); - is stdin."
)
@click.option("--facts", "facts_wanted", is_flag=True, help="The machine alone, as JSON that --for takes.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of config.toml.")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Another config.toml.")
@as_json
def command(
    machine: str | None, facts_wanted: bool, settings: Sequence[str], file: Path | None, json_wanted: bool
) -> int:
    """Which engines and models fit this machine: each with its sum, and why larger ones do not.

    Models that have to be fetched first are planned too, and named; nothing is downloaded, nothing started.
    Exit code 3 when what the configuration asks for cannot run. What is known of this machine can be carried
    to another one: ondam plan --facts > facts.json here, ondam plan --for facts.json there.
    """
    if facts_wanted:
        print_json(_facts(machine).as_json())
        return 0
    from ondam.config import load
    from ondam.places import places
    from ondam.planner.choose import missing

    if file is not None and not file.exists():
        raise ConfigError("cli_file_missing", path=file)
    here = places()
    config = load(file or here.config_file, laid_over(settings))
    facts, plan, now = _made(config, machine)
    lacking = missing(plan)
    if json_wanted:
        print_json(_as_json(facts, config, plan, now))
    else:
        for line in _lines(facts, config, plan, now):
            click.echo(line)
        for stage in lacking:
            click.echo(text("plan_stage_missing", reader_language(), stage=stage), err=True)
    return ConfigError.exit_code if lacking else 0


def _made(config: Config, machine: str | None) -> tuple[Facts, Plan, Plan | None]:
    """The facts, the plan, and for this machine what would run now, without fetching anything."""
    from ondam.models.catalog import Catalog
    from ondam.models.lookup import WantedModels
    from ondam.models.store import Store
    from ondam.places import places
    from ondam.planner import measured
    from ondam.planner.choose import consider
    from ondam.planner.facts import Facts
    from ondam.planner.probe import probe
    from ondam.supervisor.manifest import engine_roots, find_engines

    here = places()
    engines = find_engines(engine_roots(here.user_engines))
    store = Store(here.models)
    wanted = WantedModels(Catalog.union(engines, store.imported()), store)
    if machine is None:
        facts, known = probe(), measured.load(here)
        plan = consider(facts, config, engines, wanted, ahead=True, measured=known)
        return facts, plan, consider(facts, config, engines, wanted, measured=known)
    facts = Facts.from_json(_json(machine), "stdin" if machine == "-" else machine)
    return facts, consider(facts, config, engines, _Elsewhere(wanted), ahead=True), None


def _facts(machine: str | None) -> Facts:
    """Of the machine alone; why a GPU is missing goes to stderr."""
    from ondam.planner.facts import Facts
    from ondam.planner.gpus import look
    from ondam.planner.probe import probe

    if machine is not None:
        return Facts.from_json(_json(machine), "stdin" if machine == "-" else machine)
    sight = look()
    if sight.trouble and not sight.absent:
        click.echo(sight.trouble.in_language(reader_language()), err=True)
    return probe(sight)


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """Models as another machine finds them: none is there but those that come with Ondam."""

    here: WantedModels

    def find(self, model_id: str) -> tuple[Path, str | None]:
        return self.here.find(model_id)

    def ready(self, model_id: str) -> bool:
        from ondam.models.catalog import EMBEDDED

        return model_id in EMBEDDED

    def card(self, model_id: str) -> ModelCard | None:
        return self.here.card(model_id)

    def weights(self, path: Path) -> Mapping[str, int]:
        return {}  # a file of that name here is another one


def _json(machine: str) -> object:
    try:
        written = sys.stdin.read() if machine == "-" else Path(machine).read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError("cli_file_missing", path=machine) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError("cli_file_unreadable", path=machine, reason=reason) from error
    from ondam.messages import Phrase

    try:
        return json.loads(written)
    except (ValueError, RecursionError) as error:
        # Of what Python cannot hold (endless nesting, numbers of thousands of digits) its words say nothing.
        broken = isinstance(error, json.JSONDecodeError)
        told = error if broken else Phrase("plan_facts_too_large")
        raise ConfigError("plan_facts_broken", path=machine, reason=told) from error


def _as_json(facts: Facts, config: Config, plan: Plan, now: Plan | None) -> dict[str, Any]:
    from ondam.planner.rooms import unused

    spare = next((engine for engine in plan.launched if engine.spare), None)
    return {
        **{stage: _stage(plan, stage) for stage in ("stt", "llm", "tts")},
        "spare": None if spare is None else _engine(spare),
        "refused": [_refusal(refusal) for refusal in plan.refused],
        "unused": [why.in_language(reader_language()) for why in unused(facts, config.plan)],
        "now": None
        if now is None
        else {engine.stage: engine.model for engine in now.launched if not engine.spare},
        "facts": facts.as_json(),
    }


def _stage(plan: Plan, stage: str) -> dict[str, Any] | None:
    for engine in plan.launched:
        if engine.stage == stage and not engine.spare:
            return _engine(engine)
    for outside in plan.outside:
        if outside.stage == stage:
            return {
                "engine": None,
                "address": without_password(outside.address),
                "model": outside.model or None,
                "quantization": None,
                "device": None,
                "memory_gib": 0.0,
                "reasons": [text("plan_outside", reader_language(), address=outside.address)],
            }
    return None


def _engine(engine: PlannedEngine) -> dict[str, Any]:
    return {
        "engine": engine.engine,
        "model": engine.model,
        "quantization": engine.quantization or None,
        "device": engine.device,
        "memory_gib": engine.memory_gib,
        "reasons": [reason.in_language(reader_language()) for reason in engine.reasons],
        "reasons_in": _in_both(engine.reasons),
        "sum": engine.need.as_json() if engine.need else None,
        "variant": engine.variant,
        "threads": engine.threads,
        "policy": engine.policy,
        "expected_ms": round(engine.expected.ms, 1) if engine.expected else None,
        "expected_source": engine.expected.source.in_language(reader_language()) if engine.expected else None,
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "stage": refusal.stage,
        "engine": refusal.engine,
        "model": refusal.model or None,
        "quantization": refusal.quantization or None,
        "device": refusal.device,
        "memory_gib": refusal.need.gib if refusal.need else None,
        "budget_gib": refusal.budget_gib,
        "reasons": [refusal.reason.in_language(reader_language())],
        "reasons_in": _in_both([refusal.reason]),
        "code": refusal.reason.code,
        "sum": refusal.need.as_json() if refusal.need else None,
        "fixed": refusal.fixed,
    }


def _in_both(reasons: Sequence[Phrase]) -> Mapping[str, list[str]]:
    return {language: [reason.in_language(language) for reason in reasons] for language in LANGUAGES}


def _lines(facts: Facts, config: Config, plan: Plan, now: Plan | None) -> Iterator[str]:
    from ondam.planner.rooms import cards, main_memory, unused

    language = reader_language()
    for room in (*cards(facts, config.plan), main_memory(facts, config.plan)):
        name = f"{room.device} {room.gpu.name}" if room.gpu else room.device
        yield text("plan_room", language, name=name, budget=room.budget.told.in_language(language))
    for why in unused(facts, config.plan):
        yield why.in_language(language)
    yield ""
    yield from columns([_row(engine) for engine in plan.launched], right=(5,))
    for outside in plan.outside:
        yield f"{outside.stage}  {text('plan_outside', language, address=outside.address)}"
    for engine in plan.launched:
        yield ""
        yield text("plan_why", language, stage=engine.stage, model=engine.model)
        for reason in engine.reasons:
            yield f"  {reason.in_language(language)}"
        if engine.expected:
            source = engine.expected.source.in_language(language)
            yield "  " + text("plan_expected", language, ms=f"{engine.expected.ms:.0f}", source=source)
    if plan.refused:
        yield ""
        yield text("plan_not_chosen", language)
    for no in plan.refused:
        name = " ".join(part for part in (no.stage, no.engine, no.model) if part)
        yield f"  {name}: {no.reason.in_language(language)}"
    if now is not None and (until := _until_then(plan, now)):
        yield ""
        yield text("plan_until_then", language, models=", ".join(until))


def _row(engine: PlannedEngine) -> list[str]:
    stage = "spare" if engine.spare else engine.stage
    gib = f"{engine.memory_gib:.2f} GiB"
    return [stage, engine.engine, engine.model, engine.quantization or "–", engine.device, gib]


def _until_then(plan: Plan, now: Plan) -> list[str]:
    """What would run now, where that is not what is planned."""
    planned = {(engine.stage, engine.engine, engine.model, engine.device) for engine in plan.launched}
    return [
        f"{engine.stage} {engine.model} ({engine.device})"
        for engine in now.launched
        if (engine.stage, engine.engine, engine.model, engine.device) not in planned
    ]
