"""One run of the benchmark, from the daemon's start to its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil

from ondam.cli.bench.profile import Sides
from ondam.cli.bench.questions import without_words
from ondam.cli.bench.started import Wanted, refuse_failed
from ondam.cli.bench.stored import FORMAT
from ondam.cli.own_daemon import home_beside
from ondam.errors import ControlError, EngineError
from ondam.messages import reader_language, text
from ondam.places import Places

if TYPE_CHECKING:
    from ondam.control.client import Client
    from ondam.measure.bench import Question, Run, Side
    from ondam.measure.prompt import SystemPrompt, ToolsSent
    from ondam.types import Language

MEMORY_BESIDE = 1.2
"""A second set of engines is started where so many times the memory of the first is left."""

Told = dict[str, Any]


@dataclass
class Bench:
    """What is to be measured, and what was. ``settle`` None: until the engines have settled. ``settings``:
    what every daemon of our own is started with. ``alone``: only one of our own will do."""

    here: Places
    sides: Sides
    language: Language
    questions: Sequence[Question]
    turns: int
    settle: int | None
    seed: int
    settings: Mapping[str, str]
    alone: bool
    folder: Path
    """For sockets of stubs and what daemons read."""
    prompt: SystemPrompt | None = None
    stub_ms: Mapping[str, float] | None = None
    result: Told | None = field(default=None, init=False)
    """Everything that ``--json`` prints; there as well when it was stopped after a counted turn."""
    _tools_sent: dict[str, ToolsSent | None] = field(default_factory=dict, init=False)
    """By side."""

    async def run(self) -> Told:
        """Raises what ended it, unless a turn was measured and it is the daemon that went away."""
        from ondam.measure.stubs import stub_engines

        async with AsyncExitStack() as running:
            if self.stub_ms:
                await running.enter_async_context(stub_engines(self.folder, self.stub_ms))
            clients = [await self._daemon(running, "a", self.here, None)]
            if self.sides.b is not None and self.sides.apart:
                _refuse_without_memory(await clients[0].status(), self.sides.differ)
                home, there = running.enter_context(home_beside(self.here))
                clients.append(await self._daemon(running, "b", there, home))
                return await self._measured(clients, [self.here, there])
            return await self._measured(clients, [self.here])

    async def _daemon(
        self, running: AsyncExitStack, side: Literal["a", "b"], here: Places, home: Path | None
    ) -> Client:
        profile = self.sides.a if side == "a" else self.sides.b
        assert profile is not None
        started = await Wanted(
            here,
            profile.config,
            self.settings,
            profile.settings,
            alone=self.alone or bool(profile.settings) or self.sides.apart,
            folder=self.folder,
            home=home,
            prompt=self.prompt,
            waits_only=bool(self.stub_ms),
        ).start(running)
        await refuse_failed(started.client, side.upper() if self.sides.b is not None else "", profile.name)
        self._tools_sent[side] = started.tools_sent
        answering = replace(profile, config=started.config)
        self.sides = replace(self.sides, a=answering) if side == "a" else replace(self.sides, b=answering)
        return started.client

    async def _measured(self, clients: Sequence[Client], homes: Sequence[Places]) -> Told:
        from rich.console import Console
        from rich.progress import Progress

        from ondam.measure.bench import Run, measure
        from ondam.measure.stubs import heard_short

        before = [await client.status() for client in clients]
        sides = self._asked(clients, homes, before)
        settling = self.sides.a.config.measure
        settle = settling.settled_answers if self.settle is None else self.settle
        moment = Moment.now()
        run = Run()
        early: Callable[[Mapping[str, Any]], bool] = heard_short if self.stub_ms else lambda turn: False
        questions = [without_words(q) for q in self.questions] if self.stub_ms else self.questions
        try:
            with Progress(console=Console(stderr=True), transient=True) as progress:
                task = progress.add_task(text("bench_progress", reader_language()), total=settle + self.turns)
                await measure(
                    sides,
                    questions,
                    language=self.language,
                    turns=self.turns,
                    settle=settle,
                    until_settled=self.settle is None,
                    settled_s=settling.settled_s,
                    seed=self.seed,
                    displace=not self.stub_ms,
                    early=early,
                    tick=lambda: progress.advance(task),
                    into=run,
                )
            after = [await client.status() for client in clients]
        except ControlError as error:
            if not run.turns:
                raise
            told = error.message(reader_language())
            stopped = {"code": told.code, "text": told.text, "next": told.next, "exit_code": error.exit_code}
            self.result = {"stopped": stopped, **self._told(run, before, moment)}
        except asyncio.CancelledError:
            if run.turns:
                by_hand = {"code": "bench_interrupted", "text": text("bench_interrupted", reader_language())}
                self.result = {"stopped": by_hand, **self._told(run, before, moment)}
            raise
        else:
            self.result = self._told(run, after, moment)
        return self.result

    def _asked(
        self, clients: Sequence[Client], homes: Sequence[Places], statuses: Sequence[Any]
    ) -> list[Side]:
        from ondam.measure.bench import Side
        from ondam.measure.raw import RawEngines

        a, b = self.sides.a, self.sides.b
        engines = RawEngines.of(statuses[0], homes[0], a.config, self.language)
        asked = [Side(clients[0], engines, a.conversation)]
        if b is not None and len(clients) > 1:
            others = RawEngines.of(statuses[1], homes[1], b.config, self.language)
            asked.append(Side(clients[1], others, b.conversation))
        elif b is not None:
            asked.append(Side(clients[0], engines, b.conversation))
        return asked

    def _told(self, run: Run, statuses: Sequence[Any], began: Moment) -> Told:
        a, b = self.sides.a, self.sides.b
        budget_ms = a.config.measure.budget_ms
        own = self._beside(statuses)
        conditions = conditions_of(statuses[0]["conditions"], own["a"])
        _named(run.turns, conditions, own["a"])
        against: Told | None = None
        if b is not None:
            other = conditions_of(statuses[-1]["conditions"], own["b"])
            _named(run.against, other, own["b"])
            settings = b.conversation or {}
            against = {"profile": b.name, "settings": settings, "conditions": other}
        conditions["run"] = self._run_conditions(run, began, statuses)
        made = run.as_json(budget_ms=budget_ms, against=against)
        return {"bench": FORMAT, "conditions": conditions, "profile": a.name, **made}

    def _beside(self, statuses: Sequence[Any]) -> dict[Literal["a", "b"], Mapping[str, Any] | None]:
        """What stands in each side's conditions beside what its daemon says. Two daemons that do not tell
        their difference themselves are told apart by the keys in which they were set otherwise."""
        a, b = self.sides.a, self.sides.b
        if b is None or not self.sides.apart:
            return {"a": a.conversation, "b": b.conversation if b is not None else None}
        if statuses[0]["conditions"].get("name") != statuses[-1]["conditions"].get("name"):
            return {"a": None, "b": None}
        return {"a": {"set": self.sides.differences(a)}, "b": {"set": self.sides.differences(b)}}

    def _run_conditions(self, run: Run, began: Moment, statuses: Sequence[Any]) -> Told:
        from ondam.measure.bench import order
        from ondam.measure.distribution import distribution, is_answered

        answered = [turn for turn in run.turns if is_answered(turn)]
        now = Moment.now()
        told: Told = {
            "started_at": began.at.isoformat(timespec="seconds"),
            "seconds": round((now.at - began.at).total_seconds()),
            "seed": self.seed,
            "clips": [question.as_json() for question in self.questions],
            "turns_before": run.before,
            "settled_turns": sum(1 for turn in run.turns if turn.get("settled")),
            "budget_ms": self.sides.a.config.measure.budget_ms,
            "prompt": self.prompt.as_json(self._tools_sent.get("a")) if self.prompt else None,
            **{
                f"{key}_tokens_p50": distribution(turn["tokens"][key] for turn in answered)["p50"]
                for key in ("prompt", "cached", "output")
            },
            "answer_s_p50": distribution(turn["audio"]["seconds"] for turn in answered)["p50"],
            "load_average_before": began.load,
            "load_average_after": now.load,
            "cpu_mhz_before": began.cpu_mhz,
            "cpu_mhz_after": now.cpu_mhz,
            "machine_uptime_s": round(now.at.timestamp() - psutil.boot_time()),
            "interleaved": order(0, against=self.sides.b is not None, apart=self.sides.apart),
            "raw": "engines in turn over their own sockets, without the daemon",
        }
        if self.sides.b is not None:
            told["differ"] = list(self.sides.differ)
            if self.prompt and self.sides.apart:
                told["tools_sent_against"] = self._tools_sent.get("b")
            told["memory_mib"] = {
                side: _memory(status) for side, status in zip(("a", "b"), statuses, strict=False)
            }
            told["engines_resident"] = "both sets at once" if self.sides.apart else "one set"
            told["settled_turns_against"] = sum(1 for turn in run.against if turn.get("settled"))
        if self.stub_ms:
            told["stub_ms"] = dict(self.stub_ms)
        return told


def _memory(status: Mapping[str, Any]) -> dict[str, float | None]:
    """MiB resident: of the daemon and of each of its engines; None of one outside."""
    daemon: float | None = status["conditions"].get("daemon_rss_mib")
    return {"daemon": daemon, **{engine["name"]: engine["rss_mib"] for engine in status["engines"]}}


def _refuse_without_memory(status: Mapping[str, Any], differ: Sequence[str]) -> None:
    used = sum(mib or 0.0 for mib in _memory(status).values())
    left = psutil.virtual_memory().available / 2**20
    if left < MEMORY_BESIDE * used:
        needed = round(MEMORY_BESIDE * used)
        raise EngineError("bench_no_room", keys=", ".join(differ), needed=needed, left=round(left))


@dataclass(frozen=True, slots=True)
class Moment:
    """The machine at one moment."""

    at: datetime
    load: float
    cpu_mhz: float | None

    @classmethod
    def now(cls) -> Moment:
        """Read it."""
        clock = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
        return cls(datetime.now().astimezone(), round(os.getloadavg()[0], 2), clock and round(clock.current))


def conditions_of(told: Mapping[str, Any], conversation: Mapping[str, Any] | None) -> Told:
    """Those of a daemon, with what a side's conversations do otherwise, under their own name."""
    from ondam.cli.bench.profile import laid_upon
    from ondam.journal.conditions import Conditions
    from ondam.journal.reading import OF_THE_MOMENT

    if not conversation:
        return dict(told)
    moment = {key: value for key, value in told.items() if key in OF_THE_MOMENT}
    facts = laid_upon({key: value for key, value in told.items() if key not in OF_THE_MOMENT}, conversation)
    return {**moment, "name": Conditions.of(facts).name, **facts}


def _named(turns: Sequence[Told], conditions: Mapping[str, Any], conversation: object) -> None:
    """Rows under their side's conditions, where it is we who know them."""
    if conversation:
        for turn in turns:
            turn["conditions"] = conditions["name"]
