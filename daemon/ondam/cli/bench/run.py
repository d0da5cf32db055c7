"""One run of the benchmark, from the daemon's start to its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ondam.cli.bench.questions import without_words
from ondam.cli.own_daemon import own_daemon, until_ready
from ondam.messages import reader_language, text
from ondam.places import Places

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.measure.bench import Question


class Bench:
    """One run, from the daemon's start to its end."""

    def __init__(
        self,
        here: Places,
        config: Config,
        questions: Sequence[Question],
        turns: int,
        settle: int,
        settings: Mapping[str, str],
        against: Mapping[str, object] | None,
    ) -> None:
        self._here = here
        self._config = config
        self._questions = questions
        self._turns = turns
        self._settle = settle
        self._settings = settings
        self._against = against

    async def run(self, stub_ms: Mapping[str, float] | None, sockets: Path, *, alone: bool) -> dict[str, Any]:
        """Everything that ``--json`` prints. ``alone``: only a daemon of our own will do."""
        from ondam.control.client import Client
        from ondam.measure.stubs import heard_short, stub_engines

        async with AsyncExitStack() as running:
            if stub_ms:
                await running.enter_async_context(stub_engines(sockets, stub_ms))
            await running.enter_async_context(own_daemon(self._here, self._settings, alone=alone))
            client = await running.enter_async_context(Client(self._here.control_socket, reader_language()))
            await until_ready(client)
            return await self._measured(client, stub_ms, heard_short if stub_ms else lambda turn: False)

    async def _measured(
        self, client: Any, stub_ms: Mapping[str, float] | None, early: Callable[[Mapping[str, Any]], bool]
    ) -> dict[str, Any]:
        from rich.console import Console
        from rich.progress import Progress

        from ondam.measure.bench import measure
        from ondam.measure.raw import RawEngines

        language = self._config.spoken_language
        engines = RawEngines.of(await client.status(), self._here, self._config, language)
        load_before = os.getloadavg()[0]
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(
                text("bench_progress", reader_language()), total=self._settle + self._turns
            )
            run = await measure(
                client,
                engines,
                self._questions if not stub_ms else [without_words(q) for q in self._questions],
                language=language,
                turns=self._turns,
                settle=self._settle,
                against=self._against,
                displace=not stub_ms,
                early=early,
                tick=lambda: progress.advance(task),
            )
        status = await client.status()
        conditions = {
            **status["conditions"],
            "clips": len(self._questions),
            "turns_before": self._settle,
            "settled_turns": sum(1 for turn in run.turns if turn.get("settled")),
            "budget_ms": self._config.measure.budget_ms,
            "load_average_before": round(load_before, 2),
            "load_average_1min": round(os.getloadavg()[0], 2),
            "interleaved": ["turn", *(["against"] if self._against is not None else []), "raw"],
            "raw": "engines in turn over their own sockets, without the daemon",
        }
        if stub_ms:
            conditions["stub_ms"] = dict(stub_ms)
        return {
            "conditions": conditions,
            **run.as_json(budget_ms=self._config.measure.budget_ms, against=self._against),
        }
