"""The other ways to measure: ``--cold``, ``--concurrency``, ``--quality``. What they share."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import click

from ondam.cli.bench.started import Wanted
from ondam.cli.terminal import columns, print_json, width
from ondam.messages import reader_language, text
from ondam.places import Places, places

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.control.client import Client
    from ondam.measure.prompt import SystemPrompt
    from ondam.types import Language

Name: TypeAlias = str
"""``cold``, ``concurrency`` or ``quality``."""

Told: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for."""

    turns: int
    settle: int | None
    seed: int
    folder: Path | None
    settings: Sequence[str]
    """``KEY=VALUE``."""
    language: Language | None = None
    """None: the one of the daemon that runs, else of the configuration."""
    prompt: Path | None = None
    stub_ms: Mapping[str, float] | None = None
    steps: tuple[int, ...] = ()
    names: tuple[str, ...] | None = None
    """None: those of the configuration."""
    sentences: Path | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon that is ready, and what is asked of it."""

    here: Places
    config: Config
    asked: Asked
    client: Client

    @property
    def language(self) -> Language:
        """Of questions and answers."""
        return self.config.spoken_language


class Mode(Protocol):
    """One way to measure."""

    def check(self, config: Config, asked: Asked) -> None:
        """Raise OndamError for what can be known to be wrong before anything is started."""

    async def run(self, running: Running) -> Told:
        """What ``--json`` prints, without the daemon's conditions; its own under ``run``."""

    def draw(self, result: Told) -> None:
        """The same for a person, on stdout."""


def measure(name: Name, mode: Mode, asked: Asked, *, json_wanted: bool) -> int:
    """Run ``mode`` on the daemon that runs, or on one of our own, and show what came of it."""
    from ondam.cli.own_daemon import asked_in
    from ondam.cli.up import laid_over
    from ondam.config import load
    from ondam.deploy.prepare import prepare
    from ondam.measure.stubs import stub_settings
    from ondam.models.progress import Bars

    here = places()
    with tempfile.TemporaryDirectory(prefix="ondam-stub-") as sockets:
        changed = list(asked.settings)
        if asked.stub_ms:
            changed += [f"{key}={value}" for key, value in stub_settings(Path(sockets)).items()]
        named = asked_in(here, asked.language)
        changed += [f"language={named}"] if named else []
        language = load(here.config_file, laid_over(changed)).spoken_language
        changed.append(f"language={language}")
        prompt: SystemPrompt | None = None
        if asked.prompt is not None:
            from ondam.cli.bench.profile import toml
            from ondam.measure.prompt import read_prompt

            prompt = read_prompt(asked.prompt)
            told = prompt.settings(language, "field", Path(sockets))
            changed += [f"{key}={toml(value)}" for key, value in told.items()]
        config = load(here.config_file, laid_over(changed))
        mode.check(config, asked)
        with Bars() as bars:
            prepare(config, here, bars)
        wanted = Wanted(
            here,
            config,
            dict(one.split("=", 1) for one in changed),
            {},
            alone=any(not one.startswith("language=") for one in changed),
            folder=Path(sockets),
            prompt=prompt,
            waits_only=bool(asked.stub_ms),
        )
        result = asyncio.run(_run(name, mode, asked, wanted))
    if json_wanted:
        print_json(result)
    else:
        mode.draw(result)
    return 0


async def _run(name: Name, mode: Mode, asked: Asked, wanted: Wanted) -> Told:
    from ondam.cli.bench.run import Moment
    from ondam.measure.stubs import stub_engines

    async with AsyncExitStack() as running:
        if asked.stub_ms:
            await running.enter_async_context(stub_engines(wanted.folder, asked.stub_ms))
        started = await wanted.start(running)
        began = Moment.now()
        made = await mode.run(Running(wanted.here, started.config, asked, started.client))
        now = Moment.now()
        status = await started.client.status()
    run = {
        "started_at": began.at.isoformat(timespec="seconds"),
        "seconds": round((now.at - began.at).total_seconds()),
        "load_average_before": began.load,
        "load_average_after": now.load,
        **({"stub_ms": dict(asked.stub_ms)} if asked.stub_ms else {}),
        **({"prompt": wanted.prompt.as_json(started.tools_sent)} if wanted.prompt else {}),
        **made.pop("run"),
    }
    return {"mode": name, "conditions": {**status["conditions"], "run": run}, **made}


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr; call what it gives for each of ``total``."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(text("bench_progress", reader_language()), total=total)
        yield lambda: shown.advance(task)


@dataclass
class Table:
    """Columns of figures, the first of words."""

    titles: Sequence[str]
    rows: list[Sequence[object]] = field(default_factory=list)

    def print(self) -> None:
        """On stdout; what is not known is a dash. Titles are broken between words, figures never."""
        rows = [["–" if cell is None else str(cell) for cell in row] for row in self.rows]
        heads = [
            _broken(title, [row[number] for row in rows]) if number else [title]
            for number, title in enumerate(self.titles)
        ]
        deepest = max(map(len, heads))
        titles = [list(line) for line in zip(*(_lowered(head, deepest) for head in heads), strict=True)]
        for line in columns([*titles, *rows], right=range(1, len(heads))):
            click.echo(line)


def _broken(title: str, cells: Sequence[str]) -> list[str]:
    """``title`` in lines no wider than its longest word, or than the widest of ``cells``."""
    most = max(map(width, [*title.split(), *cells]))
    lines = [""]
    for word in title.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if width(longer) > most:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _lowered(lines: Sequence[str], height: int) -> list[str]:
    return [*[""] * (height - len(lines)), *lines]
