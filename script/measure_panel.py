"""What the panel costs: how long it takes to open, what twenty of them take of the daemon, and of turns.

    .venv/bin/python script/measure_panel.py [--turns 10000] [--panels 20] [--pairs 40] [--seconds 60]

A daemon whose engines only wait (100 ms each), with a journal of so many turns; a panel; a browser for the
opening times. Whoever looks on in the other measurements is connected as an open page is (a quarter each as
Now, with levels, marks and the answer as it is spoken, Turns, Numbers and Engines), asks what that page asks
after a turn or from time to time, and draws nothing: what Chromium takes of the machine is not the panel's.

ONDAM_HOME must hold the prepared models. Prints JSON: ``opens_ms`` (to the state, the last turn and no longer
busy, per page; Numbers until it says what it waits for, and ``numbers_figures`` until its plots are there),
``cpu`` (of one core, in percent, of daemon and panel, nobody looking on and all of them, at rest and in a
conversation), ``pairs`` (first audio with all of them looking on less without, turn by turn, in ms; each
follows at once upon another turn, after which the pages ask).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import psutil
import soundfile
from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.panel.conftest import CHROMIUM, PAGES, go, opened, panel_of  # noqa: E402
from tests.scenarios.house import House  # noqa: E402

from ondam.journal.recorder import read_turns  # noqa: E402
from ondam.measure.clips import clips  # noqa: E402
from ondam.measure.stubs import stub_engines, stub_settings  # noqa: E402

STUBS_MS = {"stt": 100.0, "ttft": 100.0, "clause": 180.0, "tts": 100.0}

NOISE = 12.0
"""Of 32768: -69 dB, far below a voice."""

LOOKED_AT = {"now": None, "turns": "turns?limit=50", "numbers": "series?since=7d", "engines": "status"}
"""Pages that somebody leaves open, and what each asks for. Budget and Settings ask when they are opened."""

AFTER_A_TURN_S = {"turns": 0.7, "numbers": 1.5}
BEHIND_S = 15.0
"""Figures that are some seconds old are asked for again."""

ENGINES_S = 5.0

T_95 = ((10, 2.26), (20, 2.09), (30, 2.05), (40, 2.02), (60, 2.0), (10**9, 1.98))
"""Student's t for a two-sided 95 %, by the number of pairs at most."""


def fill(journal: Path, turns: int) -> None:
    """Rows like the newest one, over the last thirty days, every tenth of them cold."""
    rows = read_turns(journal, limit=1)
    row, chance, now = rows[0], random.Random(1), datetime.now(UTC)
    with closing(sqlite3.connect(journal, timeout=30)) as connection, connection:
        for number in range(turns):
            at = now - timedelta(days=30) * (1 - number / turns)
            factor = chance.lognormvariate(0, 0.25)
            stages = {name: ms and round(ms * factor, 2) for name, ms in row["stages_ms"].items()}
            first = round(sum(filter(None, stages.values())), 2)
            cold = number % 10 == 0
            made = row | {
                "id": number,
                "session": f"filled-{number // 100}",
                "started_at": at.isoformat(timespec="milliseconds"),
                "stages_ms": stages,
                "first_audio_ms": first,
                "answer_ms": first + 1500,
                "population": "cold" if cold else "settled",
                "settled": not cold,
            }
            connection.execute(
                "INSERT INTO turns (session, turn, started_at, outcome, settled, first_audio_ms, answer_ms,"
                " record) VALUES (?, ?, ?, 'answered', ?, ?, ?, ?)",
                (
                    made["session"],
                    number,
                    made["started_at"],
                    not cold,
                    first,
                    first + 1500,
                    json.dumps(made),
                ),
            )


async def opening(browser: Browser, address: str, times: int) -> dict[str, dict[str, float]]:
    """From the first request until the page has what it shows."""
    found: dict[str, list[float]] = {name: [] for name in (*PAGES, "numbers_figures")}
    for _ in range(times):
        for name in PAGES:
            async with opened(browser, "about:blank") as (page, _looked):
                # In before, so that the address can name the page.
                await page.goto(address)
                await page.wait_for_selector("#state[data-state=listening]")
                place = page.url.split("#")[0]
                await page.goto("about:blank")
                began = time.monotonic()
                await page.goto(f"{place}#{name}")
                await page.wait_for_selector("#state[data-state=listening]")
                if name != "numbers":  # findings come after the plots
                    await go(page, name)
                else:
                    await page.wait_for_selector(".page-numbers select")
                if name == "now":
                    await page.wait_for_selector(".running .waterfall")
                if name == "turns":
                    await page.wait_for_selector(".turn")
                found[name].append(1000 * (time.monotonic() - began))
                if name == "numbers":
                    await page.wait_for_selector(".plot svg")
                    found["numbers_figures"].append(1000 * (time.monotonic() - began))
    return {name: _spread(values) for name, values in found.items()}


@asynccontextmanager
async def looking(address: str, panels: int) -> AsyncIterator[None]:
    """So many pages, connected as open ones are and asking what those ask; what they show first is there."""
    base, token = address.split("#token=")
    origin = {"Origin": "/".join(base.split("/")[:3])}
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
        AsyncExitStack() as all_,
    ):
        async with session.post(f"{base}session", data=token, headers=origin) as entered:
            entered.raise_for_status()
        reading = []
        for name in islice(cycle(LOOKED_AT), panels):
            stream = await all_.enter_async_context(
                session.ws_connect(f"{base}api/events?levels={int(name == 'now')}", headers=origin)
            )
            page = Page(session, base, name)
            await page.ask()
            reading.append(asyncio.create_task(page.look_on(stream)))
        try:
            yield
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)


@dataclass(frozen=True)
class Page:
    """What ui/ondam_ui/panel/page/NAME.js asks for, and when."""

    session: aiohttp.ClientSession
    base: str
    name: str

    async def ask(self) -> dict[str, Any]:
        """What it shows, where it is not told by events."""
        if (call := LOOKED_AT[self.name]) is None:
            return {}
        async with self.session.get(f"{self.base}api/{call}") as answer:
            answer.raise_for_status()
            found: dict[str, Any] = await answer.json()
            return found

    async def look_on(self, stream: aiohttp.ClientWebSocketResponse) -> None:
        """Until the stream ends."""
        async with asyncio.TaskGroup() as asking:
            if self.name == "engines":
                asking.create_task(self._from_time_to_time())
            after: asyncio.Task[None] | None = None
            async for message in stream:
                told = message.json()["type"] == "turn" and self.name in AFTER_A_TURN_S
                if told and (after is None or after.done()):
                    after = asking.create_task(self._after_a_turn())

    async def _after_a_turn(self) -> None:
        wait_s = AFTER_A_TURN_S[self.name]
        while True:
            await asyncio.sleep(wait_s)
            if not (await self.ask()).get("behind"):
                return
            wait_s = BEHIND_S

    async def _from_time_to_time(self) -> None:
        while True:
            await asyncio.sleep(ENGINES_S)
            await self.ask()


async def busy(processes: dict[str, psutil.Process], seconds: float) -> dict[str, float]:
    """Percent of one core."""
    before = {name: sum(process.cpu_times()[:2]) for name, process in processes.items()}
    began = time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    return {
        name: round(100 * (sum(process.cpu_times()[:2]) - before[name]) / took, 2)
        for name, process in processes.items()
    }


async def turn(house: House, number: int) -> float | None:
    async with house.client() as client:
        made, _ = await client.wav_turn(clips("en")[number % 8].wav, "en", reset_history=True)
    return made["first_audio_ms"]


async def pairs(house: House, address: str, panels: int, count: int) -> dict[str, Any]:
    """With and without, one right after the other, in an order by chance."""
    chance, differences = random.Random(7), []
    for number in range(count):
        both: dict[bool, float | None] = {}
        for watched in chance.sample([True, False], 2):
            async with AsyncExitStack() as stack:
                if watched:
                    await stack.enter_async_context(looking(address, panels))
                await turn(house, number)
                both[watched] = await turn(house, number)
        if both[True] is not None and both[False] is not None:
            differences.append(both[True] - both[False])
    mean = statistics.mean(differences)
    t = next(value for most, value in T_95 if len(differences) <= most)
    half = t * statistics.stdev(differences) / math.sqrt(len(differences))
    return {
        "pairs": len(differences),
        "mean_ms": round(mean, 2),
        "interval_95_ms": [round(mean - half, 2), round(mean + half, 2)],
        "median_ms": round(statistics.median(differences), 2),
    }


async def conversation(house: House) -> None:
    """One turn after another, until cancelled."""
    number = 0
    while True:
        await turn(house, number)
        number += 1


async def main(turns: int, panels: int, count: int, seconds: float, opens: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        # A quiet room, for as long as this may take: levels that never change would not be sent.
        room = Path(folder) / "room.wav"
        noise = np.random.default_rng(1).normal(0, NOISE, 16_000 * 1800).astype(np.int16)
        soundfile.write(room, noise, 16_000)
        stubs = Path(folder) / "stubs"
        stubs.mkdir()
        house = House(
            Path(folder) / "home",
            {"language": "en", **stub_settings(stubs)},
            microphone=f"wav:{room}",
        )
        async with stub_engines(stubs, STUBS_MS):
            house.open()
            try:
                await house.ready()
                await turn(house, 0)
                await asyncio.sleep(1)  # until it is written
                fill(house.places.journal, turns)
                await turn(house, 1)
                async with panel_of(house.home) as (address, process):
                    async with async_playwright() as playwright:
                        browser = await playwright.chromium.launch(
                            executable_path=CHROMIUM, args=["--no-sandbox"]
                        )
                        opens_ms = await opening(browser, address, opens)
                        await browser.close()
                    assert house.process is not None
                    both = {"daemon": psutil.Process(house.process.pid), "panel": psutil.Process(process.pid)}
                    cpu: dict[str, Any] = {"at_rest": {"nobody": await busy(both, seconds)}}
                    async with looking(address, panels):
                        await asyncio.sleep(2)
                        cpu["at_rest"]["all"] = await busy(both, seconds)
                    talking = asyncio.create_task(conversation(house))
                    await asyncio.sleep(2)
                    cpu["in_a_conversation"] = {"nobody": await busy(both, seconds)}
                    async with looking(address, panels):
                        await asyncio.sleep(2)
                        cpu["in_a_conversation"]["all"] = await busy(both, seconds)
                    talking.cancel()
                    await asyncio.gather(talking, return_exceptions=True)
                    return {
                        "turns_in_the_journal": turns,
                        "panels": panels,
                        "opens_ms": opens_ms,
                        "cpu": cpu,
                        "pairs": await pairs(house, address, panels, count),
                    }
            finally:
                house.close()


def _spread(values: list[float]) -> dict[str, float]:
    return {"n": len(values), "median": round(statistics.median(values)), "most": round(max(values))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("turns", 10_000), ("panels", 20), ("pairs", 40), ("opens", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    made = asyncio.run(main(given.turns, given.panels, given.pairs, given.seconds, given.opens))
    print(json.dumps(made, indent=2))
