"""``ondam engines``: list, build, remove, restart, logs. Answers on stdout, progress on stderr."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.terminal import as_json, print_json
from ondam.errors import EngineError, OndamError
from ondam.messages import reader_language, text
from ondam.places import Places, places

if TYPE_CHECKING:
    from rich.progress import TaskID

    from ondam.planner.gpus import Sight
    from ondam.planner.plan import PlannedEngine
    from ondam.supervisor.environment import Outcome
    from ondam.supervisor.manifest import EngineFolder


SIDE_BY_SIDE = 4
"""Builds at once. Most of each is waiting for the network."""


@click.group("engines")
def command() -> None:
    """Model servers: which exist, whether their environments are built, what they say."""


@command.command("list")
@as_json
def list_engines(json_wanted: bool) -> None:
    """Every engine that can be found, and the state of its environment."""
    from ondam.planner.gpus import look

    here = places()
    found = _engines(here)
    planned = _planned(found, here, cache(look))
    rows = [_row(engine, here, planned.get(engine.name)) for engine in found.values()]
    if json_wanted:
        print_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    language = reader_language()
    table = Table(box=None, pad_edge=False)
    for title in ("name", "stage", "environment", "languages", "licence"):
        table.add_column(title, no_wrap=title == "name")
    for row in rows:
        built, wanted = row["variant"], row["planned_variant"]
        state = text(f"environment_{row['environment']}", language, built=built, wanted=wanted)
        languages = " ".join(row["languages"][:4]) + (" …" if len(row["languages"]) > 4 else "")
        table.add_row(row["name"], row["stage"], state, languages, row["licence"])
    Console().print(table)
    for row in rows:
        click.echo(f"{row['name']}: {row['summary'][language]}")


@command.command("build")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--variant", metavar="VARIANT", help="Which lock: cpu, cu13, …; else the plan's.")
@click.option("--any-driver", is_flag=True, help="Even if this machine's NVIDIA driver cannot run it.")
@as_json
def build_engines(names: Sequence[str], variant: str | None, any_driver: bool, json_wanted: bool) -> None:
    """Make or update the environments of engines.

    Without a NAME: of those that your configuration needs. Packages come from where pip would get them. A
    variant that NVIDIA's driver here cannot run is refused before anything is downloaded; --any-driver builds
    it all the same, for an image that runs elsewhere.
    """
    from ondam.models.registry import Registry
    from ondam.planner.gpus import look
    from ondam.supervisor import toolchain
    from ondam.supervisor.driver import gate
    from ondam.supervisor.environment import build
    from ondam.supervisor.stamp import locks

    here = places()
    found = _engines(here)
    sight = cache(look)
    planned = {} if variant and names else _planned(found, here, sight, needed=not names)
    chosen = [_engine(name, found) for name in dict.fromkeys(names)] or [found[name] for name in planned]
    variants = {e.name: variant or planned.get(e.name) or _variant(e, sight) for e in chosen}
    for engine in chosen:
        locks(engine, variants[engine.name])
        if not any_driver:
            gate(engine, variants[engine.name], sight)
        toolchain.gate(engine, variants[engine.name], here)
    registry = Registry.from_pip()

    with _Display() as display:

        def one(engine: EngineFolder) -> Outcome:
            progress = display.line(engine.name)
            outcome = build(
                engine,
                variants[engine.name],
                here,
                registry=registry,
                progress=progress,
                log=_build_log(here, engine.name),
            )
            progress.done(text(f"build_{outcome}", reader_language(), engine=engine.name))
            return outcome

        with ThreadPoolExecutor(SIDE_BY_SIDE, "build") as pool:
            outcomes = list(pool.map(one, chosen))
    if json_wanted:
        pairs = zip(chosen, outcomes, strict=True)
        print_json(
            [{**_row(engine, here, variants[engine.name]), "outcome": outcome} for engine, outcome in pairs]
        )
        return
    for engine, outcome in zip(chosen, outcomes, strict=True):
        click.echo(text(f"build_{outcome}", reader_language(), engine=engine.name))


@command.command("warm")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@as_json
def warm_engines(names: Sequence[str], json_wanted: bool) -> None:
    """Let engines compute what they keep for this machine: minutes, once, so that no turn waits for it.

    Without a NAME: those of your plan that have something to prepare. Anew after another model, card, driver
    or version; otherwise there is nothing to do. Best while the daemon is down: both need the card's memory.
    """
    from ondam.config import load
    from ondam.supervisor.warm import warm

    here = places()
    isolation = load(here.config_file).supervisor.isolation
    found = _engines(here)
    wanted = [_engine(name, found).name for name in dict.fromkeys(names)]
    planned = {plan.engine: plan for plan in _launched(found, here)}
    if outside := [name for name in wanted if name not in planned]:
        raise EngineError("engine_not_planned", engine=outside[0], stage=found[outside[0]].manifest.stage)
    chosen = [name for name in wanted or planned if found[name].manifest.launch.warm]
    with _Display() as display:
        for name in chosen:
            progress, log = display.line(name), here.logs / f"warm-{name}.log"
            warm(
                found[name],
                planned[name],
                here,
                isolated=isolation != "off",
                required=isolation == "require",
                progress=progress,
                log=log,
            )
            progress.done(text("engine_warm", reader_language(), engine=name))
    if json_wanted:
        print_json([{"name": name, "device": planned[name].device} for name in chosen])
        return
    for name in chosen:
        click.echo(text("engine_warm", reader_language(), engine=name))
    for name in wanted or ([] if chosen else planned):
        if name not in chosen:
            click.echo(text("engine_warms_itself", reader_language(), engine=name))


@command.command()
@click.argument("name")
@as_json
def remove(name: str, json_wanted: bool) -> None:
    """Delete an engine's environment. The engine itself stays known; build makes it anew."""
    from ondam.supervisor.environment import built
    from ondam.supervisor.environment import remove as remove_environment

    here = places()
    # An environment may have outlived its engine's folder.
    if name not in built(here):
        _engine(name, _engines(here))
    removed = remove_environment(name, here)
    if json_wanted:
        print_json({"name": name, "removed": removed})
        return
    code = "environment_removed" if removed else "environment_was_not_there"
    click.echo(text(code, reader_language(), engine=name))


@command.command()
@click.argument("name")
@as_json
def restart(name: str, json_wanted: bool) -> None:
    """End a running engine and start it anew, also one that was given up. Loading shows in status."""
    from ondam.cli.terminal import daemon

    daemon(lambda client: client.restart_engine(name))
    if json_wanted:
        print_json({"name": name})
        return
    click.echo(text("engine_starts_anew", reader_language(), engine=name))


@command.command()
@click.argument("name")
@click.option("-n", "lines", default=100, show_default=True, type=click.IntRange(1, 10_000), help="Lines.")
@click.option("--build", "of_build", is_flag=True, help="The output of the last build instead.")
@as_json
def logs(name: str, lines: int, of_build: bool, json_wanted: bool) -> None:
    """Show the end of what an engine said."""
    from ondam.supervisor.log import tail

    here = places()
    _engine(name, _engines(here))
    path = _build_log(here, name) if of_build else _log(here, name)
    if not path.exists():
        raise EngineError("engine_log_missing", engine=name, path=path)
    found = tail(path, lines)
    if json_wanted:
        print_json({"name": name, "path": str(path), "lines": found})
        return
    for line in found:
        click.echo(line)


def _log(here: Places, name: str) -> Path:
    """Where it wrote last: one that took over from another (`ondam switch`) has a log beside that one's."""
    first, second = here.logs / f"engine-{name}.log", here.logs / f"engine-{name}-b.log"
    if not second.exists():
        return first
    return max((path for path in (first, second) if path.exists()), key=lambda path: path.stat().st_mtime)


def _engines(here: Places) -> dict[str, EngineFolder]:
    from ondam.supervisor.manifest import engine_roots, find_engines

    return find_engines(engine_roots(here.user_engines))


def _engine(name: str, found: Mapping[str, EngineFolder]) -> EngineFolder:
    if name in found:
        return found[name]
    close = difflib.get_close_matches(name, found, n=1, cutoff=0.5)
    near = f" ({close[0]}?)" if close else ""
    raise EngineError("engine_unknown", name=name, near=near, known=", ".join(found))


def _planned(
    found: Mapping[str, EngineFolder], here: Places, sight: Callable[[], Sight], *, needed: bool = False
) -> dict[str, str]:
    """Engines of this machine's plan, each with its variant. Without a plan none, unless it is ``needed``."""
    from ondam.config import load
    from ondam.models.catalog import Catalog
    from ondam.models.lookup import WantedModels
    from ondam.models.store import Store
    from ondam.planner import measured
    from ondam.planner.choose import choose
    from ondam.planner.probe import probe

    try:
        store = Store(here.models)
        wanted = WantedModels(Catalog.union(found, store.imported()), store)
        plan = choose(probe(sight()), load(here.config_file), found, wanted, measured=measured.load(here))
    except OndamError:
        if needed:
            raise
        return {}  # ondam doctor tells why; an engine can be listed and built all the same
    return {planned.engine: planned.variant for planned in plan.launched}


def _launched(found: Mapping[str, EngineFolder], here: Places) -> tuple[PlannedEngine, ...]:
    """Engines of this machine's plan, whose weights are there. Raises ConfigError, ModelError."""
    from ondam.config import load
    from ondam.models.catalog import Catalog
    from ondam.models.lookup import WholeModels
    from ondam.models.store import Store
    from ondam.planner import measured
    from ondam.planner.choose import choose
    from ondam.planner.gpus import look
    from ondam.planner.probe import probe

    store = Store(here.models)
    models = WholeModels(Catalog.union(found, store.imported()), store)
    known = measured.load(here)
    return choose(probe(look()), load(here.config_file), found, models, measured=known).launched


def _variant(engine: EngineFolder, sight: Callable[[], Sight]) -> str:
    """For an engine that the plan does not use: what suits this machine."""
    from ondam.supervisor.environment import variant_for

    cards = sight().cards if len(engine.manifest.environment.locks) > 1 else ()
    return variant_for(engine, cards[0].driver if cards else None)


def _row(engine: EngineFolder, here: Places, planned: str | None) -> dict[str, Any]:
    """``planned``: the variant that the plan wants; None where it does not use the engine."""
    from ondam.supervisor.environment import environment_used, is_current
    from ondam.supervisor.stamp import Stamp

    manifest, root = engine.manifest, environment_used(engine, here)
    stamp = Stamp.read(root)
    if stamp is None:
        state = "missing"
    elif planned not in (None, stamp.variant):
        state = "other"
    else:
        known = stamp.variant in manifest.environment.locks
        state = "current" if known and is_current(engine, stamp.variant, here) else "stale"
    return {
        "name": engine.name,
        "stage": manifest.stage,
        "protocol": manifest.protocol,
        "environment": state,
        "variant": stamp.variant if stamp else None,
        "planned_variant": planned,
        "variants": list(manifest.environment.locks),
        "languages": manifest.capabilities.languages,
        "licence": manifest.licence,
        "folder": str(engine.path),
        "environment_path": str(root),
        "needs_compiler": manifest.environment.needs_compiler,
        "summary": {"en": manifest.summary_en, "ko": manifest.summary_ko},
    }


def _build_log(here: Places, name: str) -> Path:
    return here.logs / f"build-{name}.log"


class _Display:
    """A bar per engine on a terminal; elsewhere lines, and for a long compilation one every tenth of it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = Console(stderr=True)
        columns = (
            TextColumn("{task.fields[engine]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._progress = Progress(*columns, console=self._console, disable=not self._console.is_terminal)

    def __enter__(self) -> _Display:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def line(self, engine: str) -> _Line:
        """Where one engine's build is shown."""
        if self._console.is_terminal:
            return _Bar(self._progress, self._progress.add_task("", total=None, engine=engine))
        return _Line(
            engine, lambda told: self._console.print(told, markup=False, highlight=False, soft_wrap=True)
        )


class _Line:
    """Implements ``environment.Progress`` with lines."""

    def __init__(self, engine: str, say: Callable[[str], None]) -> None:
        self._engine, self._say = engine, say
        self._tenth = -1
        self._lock = threading.Lock()

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """A line when there is something new to say."""
        with self._lock:
            if done is None or not total:
                self._say(f"{self._engine}: {text}")
            elif (tenth := done * 10 // total) != self._tenth:
                self._tenth = tenth
                self._say(f"{self._engine}: [{done}/{total}] {text}")

    def done(self, text: str) -> None:
        """The last line."""


class _Bar(_Line):
    """Implements ``environment.Progress`` with a bar."""

    def __init__(self, progress: Any, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Moves the bar where the end is known."""
        if done is None:
            self._progress.update(self._task, description=text)
        else:
            self._progress.update(self._task, description=text, completed=done, total=total)

    def done(self, text: str) -> None:
        """The bar is full."""
        self._progress.update(self._task, description=text, completed=1, total=1)
