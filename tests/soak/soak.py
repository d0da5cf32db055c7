"""One house through its course: turns and faults in rounds, and a look at it between them."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from tests.soak.course import ALONE, Fault, Planned, rounds
from tests.soak.growth import growth, over
from tests.soak.inject import Victim
from tests.soak.readings import Readings
from tests.soak.verdict import verdict, verdict_of_error

from ondam.audio import resampled
from ondam.control import wire
from ondam.control.client import Client
from ondam.control.sound import decode, encode
from ondam.errors import OndamError
from ondam.measure.clips import clips
from ondam.types import HEARING_RATE_HZ, Audio

WELL_WITHIN_S = 150.0
"""After the faults of a round every engine is ready again, every device back, and no turn under way.

Longer than an engine may load (120 s for the embedded ones): one that is stopped meanwhile looks like that.
"""

WAV_LANES = 3
"""Conversations side by side, beside the one at the daemon's own devices."""

FILLED_FROM = 100
"""Turns of a course that is long enough to be worth filling the engines first."""

FILL = {"clauses": 1000, "questions": 60, "sounds": 40, "turns": 20}

WORDS = [
    "the",
    "sun",
    "is",
    "shining",
    "over",
    "all",
    "hills",
    "of",
    "this",
    "country",
    "and",
    "seven",
    "trains",
    "leave",
    "for",
    "the",
    "coast",
    "at",
    "noon",
    "while",
    "nobody",
    "in",
    "the",
    "town",
    "has",
    "seen",
    "the",
    "old",
    "clock",
    "stop",
]

LEAVES_AFTER_S = 0.4

DEVICES = ("speaker_", "microphone_", "device_", "portaudio_")
"""How codes begin that tell of one."""

TURNED_AWAY = frozenset(
    {"control_too_many_clients", "daemon_failed", "daemon_gone", "daemon_not_running", "daemon_silent"}
)
"""Codes of a call that got no answer of the daemon's. Only while it is hindered are they no surprise."""

TRACEBACK = re.compile(r"Traceback \(most recent call last\):(?:\n[ \t].*)*\n?(.*)")

LIMIT = 0.05
"""What may be added to anything between the settled beginning and the end."""

LEAST = {"daemon descriptors": 6, "daemon threads": 4, "daemon tasks": 4}
"""Whole numbers so small that one more is over the limit: so many more are no growth."""


@dataclass
class Soak:
    """Runs ``planned`` on ``victim``; ``report`` says what came of it."""

    name: str
    victim: Victim
    planned: list[Planned]
    say: Callable[[str], None] = print
    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    turned_away: int = 0
    """Calls that a daemon that was stopped, full or short of descriptors took only at a later try."""
    unexplained: list[str] = field(default_factory=list)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    _waiting: list[tuple[str, float]] = field(default_factory=list)
    """Faults that are over and after which no turn has been answered yet, and when they ended."""
    _faults: set[asyncio.Task[None]] = field(default_factory=set)
    _clips: dict[str, bytes] = field(default_factory=dict)
    _running: int = 0

    async def run(self) -> None:
        """The whole course. Raises AssertionError when the daemon dies or does not get well."""
        await self._well()
        await self._opened()
        if self.name == "real" and len(self.planned) >= FILLED_FROM:
            await self._fill()
        watching = asyncio.create_task(self._watch())
        try:
            await self._rounds()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _opened(self) -> None:
        """Return when an answer was heard: a speaker is opened beside the start, or after it."""
        async with self.victim.house.client() as client:
            for _ in range(20):
                if (await client.ask("Are you there?", speak=True))["audio"]["seconds"]:
                    return
                await asyncio.sleep(0.2)
        raise AssertionError("the speaker does not open")

    async def _fill(self) -> None:
        """Work of every size without a fault, until caches and arenas are as large as they get.

        Measured without faults, engines as shipped: piper's memory stands still from about 900 clauses of 2
        to 18 words on, llama_server's when its cache of prompts is full. That is their ceiling.
        """
        draw = random.Random(1)
        async with self.victim.house.client() as client:
            for _ in range(FILL["clauses"]):
                await client.synthesize(f"{' '.join(draw.choices(WORDS, k=draw.randint(2, 18)))}.", "en")
            for number in range(FILL["questions"]):
                words = " ".join(draw.choices(WORDS, k=6))
                await client.ask(f"What is {number} and {words}?", speak=False)
            for number in range(FILL["sounds"]):
                # What the course is made of, its longest too, and as many at once.
                kinds = ("wav", "barge", "barge")
                await asyncio.gather(
                    *(client.transcribe(self._sound(kind, number + n), "en") for n, kind in enumerate(kinds))
                )
        # The daemon's arenas as well: whole turns, as many side by side as in the course.
        for number in range(FILL["turns"]):
            await asyncio.gather(
                *(self._filling("barge" if lane == 0 else "wav", number + lane) for lane in range(WAV_LANES))
            )
        self.readings.settle(await self._well())
        self.say(f"real: filled: { {k: round(v) for k, v in self.readings.ceilings.items()} }")

    async def _filling(self, kind: str, number: int) -> None:
        async with self.victim.house.client() as client:
            await client.wav_turn(self._sound(kind, number), "en")

    async def _watch(self) -> None:
        """What the daemon tells of its devices: nobody wonders at a silence that is explained."""
        while True:
            with suppress(OndamError):
                async with self.victim.house.client() as client, aclosing(client.events()) as events:
                    async for event in events:
                        if event["type"] == "fault" and event["fault"]["code"].startswith(DEVICES):
                            self.victim.device_gone(0.0)
            await asyncio.sleep(0.2)

    async def _rounds(self) -> None:
        done = 0
        for some in rounds(self.planned):
            alone = [one for one in some if one.kind in ALONE]
            beside = [one for one in some if one.kind not in ALONE]
            lanes = [alone, *(beside[lane::WAV_LANES] for lane in range(WAV_LANES))]
            await asyncio.gather(*map(self._lane, lanes))
            done += len(some)
            status = await self._well()
            await self.readings.take(self.victim.house, status, done)
            if done % 100 < len(some):
                self.say(f"{self.name}: {done} of {len(self.planned)} turns, {dict(self.verdicts)}")

    async def _lane(self, planned: list[Planned]) -> None:
        for one in planned:
            if one.fault is not None:
                task = asyncio.create_task(self._befall(one.fault))
                self._faults.add(task)
            await self._turn(one)

    async def _befall(self, fault: Fault) -> None:
        await asyncio.sleep(fault.after_s)
        try:
            made = await self.victim.befall(fault)
        except Exception as error:
            raise AssertionError(f"{fault} could not be made: {error!r}") from error
        if made:
            self._waiting.append((fault.kind, time.monotonic()))

    async def _turn(self, one: Planned) -> None:
        self.kinds[one.kind] += 1
        began = asyncio.get_running_loop().time()
        aloud = one.kind != "shown"
        try:
            turn = await asyncio.wait_for(self._taken(one), 60.0)
        except TimeoutError:
            self._silent(one, "no answer within 60 s")
            return
        except OndamError as error:
            process = self.victim.house.process
            assert process is not None and process.poll() is None, "the daemon has ended"
            found = verdict_of_error(error.code, one.kind)
            if found == "silent":
                self._silent(one, error.code)
                return
            self.verdicts[found] += 1
            self.causes[error.code] += 1
            return
        if turn is None:
            self.verdicts["ended by its user"] += 1
            return
        gone = self.victim.device_gone_until > began
        found = verdict(turn, one.kind, aloud=aloud, device_gone=gone, others=False)
        if found == "silent":
            facts = {key: turn.get(key) for key in ("outcome", "fault", "cause", "audio", "voice")}
            self._silent(one, str(facts))
            return
        self.verdicts[found] += 1
        if found == "excused":
            self.causes[turn["cause"] or turn["fault"] or "?"] += 1
        if found == "answered":
            now = time.monotonic()
            for kind, since in self._waiting:
                self.recoveries.setdefault(kind, []).append(max(0.0, now - since))
            self._waiting.clear()

    async def _taken(self, one: Planned) -> wire.Turn | None:
        """The turn, once the daemon takes it: a call that it turned away was none."""
        while True:
            began = asyncio.get_running_loop().time()
            try:
                async with self.victim.house.client() as client:
                    return await self._made(client, one)
            except OndamError as error:
                if error.code not in TURNED_AWAY or self.victim.hindered_until < began:
                    raise
                self.turned_away += 1
                await asyncio.sleep(0.2)

    def _silent(self, one: Planned, why: str) -> None:
        self.verdicts["silent"] += 1
        self.unexplained.append(f"{self.name} turn {one.number} ({one.kind}, {one.fault}): {why}")

    async def _made(self, client: Client, one: Planned) -> wire.Turn | None:
        match one.kind:
            case "ask":
                return await client.ask(f"What time is it, number {one.number}?", speak=True)
            case "shown":
                return await client.ask(f"What is {one.number} and one?", speak=False)
            case "say":
                said = await client.say("All is well.")
                turn = (await client.turns(1))[0]
                heard = said["audio"]["seconds"] > 0
                return {**turn, "outcome": "said" if heard else turn["outcome"], "audio": said["audio"]}
            case "stop":
                asked = asyncio.create_task(client.ask("Tell me a story.", speak=True))
                await asyncio.sleep(LEAVES_AFTER_S * (1 + one.number % 3) / 2)
                with suppress(OndamError):
                    await client.stop_speaking()
                return await asked
            case "leave":
                with suppress(TimeoutError):
                    async with asyncio.timeout(LEAVES_AFTER_S * (1 + one.number % 5)):
                        await client.wav_turn(self._sound("question", one.number), "en")
                return None
            case kind:
                return (await client.wav_turn(self._sound(kind, one.number), "en"))[0]

    def _sound(self, kind: str, number: int) -> bytes:
        """A WAV for that kind of turn; another question each time on real engines."""
        which = 0 if self.name == "stub" else number % len(clips("en"))
        key = f"{kind} {which}"
        if key not in self._clips:
            self._clips[key] = encode(_made_of(kind, which, whole=self.name == "real"))
        return self._clips[key]

    async def _well(self) -> wire.Status:
        """Return when all faults of the round are over, every engine is ready and every device is back."""
        await asyncio.gather(*self._faults)
        self._faults.clear()
        process, end = self.victim.house.process, time.monotonic() + WELL_WITHIN_S
        status: wire.Status | None = None
        while True:
            assert process is not None and process.poll() is None, "the daemon has ended"
            with suppress(OndamError):
                async with self.victim.house.client() as client:
                    status = await client.status()
                devices = (status["microphone"]["state"], status["speaker"]["state"])
                idle = status["state"] == "listening" and "missing" not in devices
                if idle and all(engine["state"] == "ready" for engine in status["engines"]):
                    await asyncio.sleep(0.3)  # what was begun for the turn is let go
                    return status
            assert time.monotonic() < end, ("not well again", status and (status["state"], status["engines"]))
            await asyncio.sleep(0.1)

    def report(self) -> dict[str, Any]:
        """Everything that came of it, as JSON."""
        ceilings = self.readings.ceilings
        grown = {
            name: over(ceilings[name], [value for _, value in series]) if name in ceilings else growth(series)
            for name, series in self.readings.series.items()
        }
        return {
            "turns": sum(self.kinds.values()),
            "kinds": dict(sorted(self.kinds.items())),
            "verdicts": dict(self.verdicts.most_common()),
            "causes": dict(self.causes.most_common()),
            "faults": sum(self.victim.injected.values()),
            "not_made": dict(sorted(self.victim.not_made.items())),
            "turned_away": self.turned_away,
            "recovery_s": {
                kind: {
                    "count": self.victim.injected[kind],
                    "p50": round(median(self.recoveries[kind]), 1) if kind in self.recoveries else None,
                    "max": round(max(self.recoveries[kind]), 1) if kind in self.recoveries else None,
                }
                for kind in sorted(self.victim.injected)
            },
            "growth": {
                name: {
                    "first": round(found.first, 1),
                    "last": round(found.last, 1),
                    "share": round(found.share, 4),
                    "readings": found.readings,
                    "judged": found.readings >= _readings_for(name),
                    "against": "ceiling" if name in ceilings else "line",
                }
                for name, found in grown.items()
            },
            "unexplained": self.unexplained,
        }


def _readings_for(name: str) -> int:
    """From how many readings on it is judged. Memory comes and goes with what is computed at the moment."""
    return 2 if name in LEAST else 12


def grows(report: dict[str, Any]) -> list[str]:
    """What grew by more than ``LIMIT``, of what was read often enough to say so (``judged``)."""
    return [
        f"{name}: {found['first']} to {found['last']}"
        for name, found in report["growth"].items()
        if found["judged"] and found["share"] > LIMIT and found["last"] - found["first"] > LEAST.get(name, 0)
    ]


def tracebacks(log: str) -> list[str]:
    """The last line of each traceback in a daemon's log: what it broke down with."""
    return TRACEBACK.findall(log)


def _made_of(kind: str, which: int, *, whole: bool) -> Audio:
    question = resampled(decode(clips("en")[which].wav, 10**7), HEARING_RATE_HZ).samples
    if not whole:
        question = question[:HEARING_RATE_HZ]
    pause = np.zeros(HEARING_RATE_HZ, np.int16)
    match kind:
        case "barge":
            samples = np.concatenate([question, pause, pause[: HEARING_RATE_HZ // 4], question])
        case "noise":
            noise = np.random.default_rng(which).normal(0, 2500, HEARING_RATE_HZ // 2)
            samples = np.concatenate([pause[:8000], noise.astype(np.int16), pause[:8000]])
        case _:
            samples = question
    return Audio(samples, HEARING_RATE_HZ)
