"""``ondam bench --cold``: a process per utterance against the resident engines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from ondam.cli.bench.modes import Asked, Running, Table, Told, progress
from ondam.cli.terminal import say
from ondam.errors import EngineError

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.control import wire
    from ondam.measure.cold import Alone, Job, Sides, Stage
    from ondam.supervisor.process import Launch

SETTLE = 1
"""Pairs that do not count: the weights come into the page cache."""


class Cold:
    """Implements ``modes.Mode``; a turn is a pair of each stage."""

    def check(self, config: Config, asked: Asked) -> None:
        """An engine outside is no process of ours."""
        if config.stt.address and config.tts.address:
            raise EngineError("cold_nothing")

    async def run(self, running: Running) -> Told:
        """Both stages that have an engine of ours which can do it."""
        from ondam.measure.cold import measure

        sides, skipped = await self._sides(running)
        if not sides:
            raise EngineError("cold_nothing")
        jobs = _jobs(running)
        asked = running.asked
        settle = SETTLE if asked.settle is None else asked.settle
        with progress(settle + asked.turns) as tick:
            made = await measure(sides, jobs, pairs=asked.turns, settle=settle, tick=tick)
        run = {
            "pairs": asked.turns,
            "pairs_before": settle,
            "clips": len(jobs),
            "skipped": skipped,
            "threads": {engine["name"]: _threads(engine) for engine in self._engines},
        }
        return {"run": run, **made.as_json()}

    def draw(self, result: Told) -> None:
        """A line a stage and side, and how many times as long."""
        table = Table(("ms", "p50", "p90", "max", "n"))
        for stage in ("stt", "tts"):
            if (told := result[stage]) is None:
                continue
            for side in ("resident", "process"):
                figures = told[f"{side}_ms"]
                name = say(f"cold_{side}", stage=say(f"cold_{stage}"), engine=told["engine"])
                table.rows.append((name, *(figures[key] for key in ("p50", "p90", "max", "n"))))
        table.print()
        for stage in ("stt", "tts"):
            if (told := result[stage]) is not None:
                print_times(stage, told)
        run = result["conditions"]["run"]
        for reason in run["skipped"].values():
            click.echo(reason)
        click.echo(say("cold_conditions", pairs=run["pairs"], load=run["load_average_after"]))

    def __init__(self) -> None:
        self._engines: Sequence[wire.EngineStatus] = ()

    async def _sides(self, running: Running) -> tuple[dict[Stage, Sides], dict[str, str]]:
        from ondam.measure.cold import Sides

        status = await running.client.status()
        ways = await _Ways.of(running)
        sides: dict[Stage, Sides] = {}
        skipped: dict[str, str] = {}
        for stage in ways.resident:
            able = [e for e in status["engines"] if e["stage"] == stage and e["state"] == "ready"]
            engine = min(able, key=lambda one: one["spare"], default=None)
            if engine is None:
                raise EngineError(f"{stage}_down")
            if engine["outside"] or (launch := ways.launch(engine)) is None:
                skipped[stage] = say("cold_skipped", engine=engine["name"])
                continue
            self._engines = (*self._engines, engine)
            sides[stage] = Sides(engine["name"], ways.resident[stage](engine), ways.alone(stage, launch))
        return sides, skipped


def print_times(stage: str, told: Told) -> None:
    """How many times as long, and where the time of a process goes."""
    times = told["times_as_long"]
    facts: dict[str, Any] = {key: times[key] for key in ("median", "min", "max")}
    click.echo(say("cold_times", stage=say(f"cold_{stage}"), **facts))


class _Ways:
    """From an engine of the status to how it is asked, and how it is launched for one job."""

    def __init__(self, running: Running) -> None:
        from ondam.app import installed_engines, planned

        self._running = running
        self._plan = {one.engine: one for one in planned(running.config, running.here).launched}
        self._folders = installed_engines(running.here)
        self.resident: dict[Stage, Callable[[wire.EngineStatus], Callable[[Job], Awaitable[None]]]] = {
            "stt": self._hear,
            "tts": self._speak,
        }

    @classmethod
    async def of(cls, running: Running) -> _Ways:
        """Looking at the machine and the weights takes a moment."""
        import asyncio

        return await asyncio.to_thread(cls, running)

    def _hear(self, engine: wire.EngineStatus) -> Callable[[Job], Awaitable[None]]:
        from ondam.clients.wyoming_stt import WyomingRecognizer

        recognizer = WyomingRecognizer(self._address(engine))

        async def hear(job: Job) -> None:
            await recognizer.transcribe(job.audio, self._running.language)

        return hear

    def _speak(self, engine: wire.EngineStatus) -> Callable[[Job], Awaitable[None]]:
        from ondam.clients.wyoming_tts import WyomingSynthesizer

        voice = WyomingSynthesizer(self._address(engine))

        async def speak(job: Job) -> None:
            async for _ in voice.synthesize(job.words, self._running.language):
                pass

        return speak

    def _address(self, engine: wire.EngineStatus) -> str:
        return f"unix://{self._running.here.engine_answers(engine['name'])}"

    def alone(self, stage: Literal["stt", "tts"], launch: Launch) -> Callable[[Job], Awaitable[Alone]]:
        """A process for each job."""
        from ondam.measure.cold import run_once

        async def once(job: Job) -> Alone:
            given = job.audio.samples.astype("<i2").tobytes() if stage == "stt" else job.words.encode()
            return await run_once(launch, given)

        return once

    def launch(self, engine: wire.EngineStatus) -> Launch | None:
        """With the model, threads and options of the resident one; None where it cannot do one job."""
        import os
        from dataclasses import replace

        from ondam.supervisor.environment import installed
        from ondam.supervisor.family import Identity
        from ondam.supervisor.launch import launch

        plan, folder = self._plan.get(engine["name"]), self._folders.get(engine["name"])
        if plan is None or folder is None or not folder.manifest.launch.once:
            return None
        manifest, isolation = folder.manifest, self._running.config.supervisor.isolation
        once = manifest.launch.model_copy(update={"command": manifest.launch.once})
        return launch(
            replace(plan, threads=_threads(engine) or plan.threads),
            manifest=manifest.model_copy(update={"launch": once}),
            home=installed(folder, self._running.here),
            places=self._running.here,
            daemon=Identity.of(os.getpid()),
            environ=os.environ,
            # As the resident one is: what takes the network away takes time at each start.
            isolated=isolation != "off",
            required=isolation == "require",
        )


def _threads(engine: wire.EngineStatus) -> int | None:
    told = (engine["report"] or {}).get("threads")
    return told if isinstance(told, int) else None


def _jobs(running: Running) -> list[Job]:
    from ondam.cli.bench.questions import questions
    from ondam.measure.clips import clips
    from ondam.measure.cold import Job
    from ondam.speech import reading

    spoken = [clip.words for clip in clips(running.language)]
    asked = questions(running.asked.folder, running.language)
    return [
        # What a voice is given, and something to say where it is not known what is said.
        Job(one.name, one.audio, reading(one.words or spoken[n % len(spoken)], running.language))
        for n, one in enumerate(asked)
    ]
