"""The fault matrix: what docs/faults.toml promises of each case, and how a test holds it.

A test makes the fault inside ``watched``, has a turn meet it, and ends it; then ``recovered`` wants three
things: that everything was told that the table says, that nothing was lost (every turn is in the journal),
and that the next good turn came in time.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.scenarios.house import House

from ondam.control import wire
from ondam.control.client import Client
from ondam.control.sound import decode, encode
from ondam.errors import OndamError
from ondam.measure.clips import clips
from ondam.types import Audio, Stage

TABLE = Path(__file__).parents[2] / "docs" / "faults.toml"

CASES = tomllib.loads(TABLE.read_text("utf-8"))

AT_ONCE_S = 10.0
"""A case that promises "at once" (0): the next turn is good, and itself takes no longer than this."""

Ask = Callable[[Client], Awaitable[wire.Turn]]


def question() -> bytes:
    """A second of speech."""
    sound = decode(clips("en")[0].wav, 10**7)
    return encode(Audio(sound.samples[: sound.rate_hz], sound.rate_hz))


async def spoken(client: Client) -> wire.Turn:
    """One whole turn."""
    return (await client.wav_turn(question(), "en"))[0]


async def typed(client: Client) -> wire.Turn:
    """One turn whose answer is spoken."""
    return await client.ask("What time is it?", speak=True)


@dataclass
class Trial:
    """One fault, and who met it."""

    house: House
    told: set[str] = field(default_factory=set)
    turns: list[wire.Turn] = field(default_factory=list)
    before: tuple[int, int] = (0, 0)
    """Turns of the daemon, and rows of its journal, when this began."""

    async def turn(self, ask: Ask = spoken) -> wire.Turn:
        """A turn that meets the fault. It ends, is heard or excused, and is remembered here."""
        async with self.house.client() as client:
            made = await ask(client)
        self.turns.append(made)
        if made["fault"]:
            self.told.add(made["fault"])
        if made["filler_ms"] is not None:
            self.told.add("filler_moment")
        return made

    async def recovered(self, name: str, ask: Ask = spoken, *, stage: Stage | None = None) -> None:
        """The fault is over: holds the three promises of case ``name``."""
        case = CASES[name]
        began = time.monotonic()
        while True:
            met = await self.turn(ask)
            took = time.monotonic() - began
            good = met["outcome"] == "answered" and met["voice"] != "espeak"
            within_s = case["within_s"] or (AT_ONCE_S if good else 0)
            assert took < within_s, f"after {took:.1f} s: {met['outcome']}, {met['cause']}"
            if good:
                break
            await asyncio.sleep(0.1)
        for code in case["told"]:
            # "|": one of them, as the case may be.
            wanted = set(code.format(stage=stage).split("|"))
            await until(partial(wanted.intersection, self.told), f"{wanted} in {self.told}")
        gone = any(code.startswith("speaker_") for code in self.told)
        for turn in self.turns:
            explained = turn["outcome"] == "answered" or turn["fault"] or turn["audio"]["seconds"]
            assert explained or gone, "silence"
        await self.nothing_lost()

    async def nothing_lost(self, within_s: float = 10.0) -> None:
        """Every turn since this began is in the journal, which is sound."""
        turns_before, rows_before = self.before
        async with self.house.client() as client:
            made = (await client.status())["turns"] - turns_before
        await until(lambda: rows(self.house) - rows_before >= made, f"{made} turns in the journal", within_s)


@asynccontextmanager
async def watched(house: House) -> AsyncIterator[Trial]:
    """Everything that the daemon tells meanwhile."""
    async with house.client() as client:
        trial = Trial(house, before=((await client.status())["turns"], rows(house)))
    subscribed = asyncio.Event()

    async def listen() -> None:
        async with house.client() as client, aclosing(client.events()) as events:
            async for event in events:
                subscribed.set()
                if event["type"] == "fault":
                    trial.told.add(event["fault"]["code"])
                elif event["type"] == "notice":
                    trial.told.add(event["code"])

    listening = asyncio.create_task(listen())
    await subscribed.wait()
    try:
        yield trial
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def rows(house: House) -> int:
    """Turns in the journal's file; none where it cannot be read."""
    try:
        with closing(sqlite3.connect(f"{house.places.journal.as_uri()}?mode=ro", uri=True)) as file:
            found: int = file.execute("SELECT count(*) FROM turns").fetchone()[0]
            return found
    except sqlite3.Error:
        return 0


async def until(true: Callable[[], object], what: str, within_s: float = 5.0) -> None:
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, f"not so after {within_s:g} s: {what}"
        await asyncio.sleep(0.02)


async def well(house: House, within_s: float = 20.0) -> wire.Status:
    """Return when every engine is ready."""
    end = time.monotonic() + within_s
    while True:
        try:
            async with house.client() as client:
                status = await client.status()
        except OndamError:
            status = None
        if status is not None and all(engine["state"] == "ready" for engine in status["engines"]):
            return status
        assert time.monotonic() < end, status and status["engines"]
        await asyncio.sleep(0.05)
