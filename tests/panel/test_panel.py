"""The panel in a browser, with a daemon behind it that really hears and answers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from tests.panel.conftest import PAGES, go, opened, panel_of, serious
from tests.scenarios.house import House

from ondam.control import wire
from ondam.journal.recorder import read_turns
from ondam.measure.clips import clips

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    home = tmp_path_factory.mktemp("panel")
    question = home / "question.wav"
    question.write_bytes(clips("en")[0].wav)
    # It hears the question when it is told to listen, and silence afterwards.
    settings = {"language": "en", "llm.max_tokens": "24", "listen.mode": "muted"}
    made = House(home, settings, microphone=f"wav:{question}")
    made.open()
    try:
        await made.ready()
        yield made
    finally:
        made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def address(house: House) -> AsyncIterator[str]:
    async with panel_of(house.home) as (told, _):
        yield told


def whole(ms: float) -> str:
    """Whole milliseconds as the page shows them; a half is rounded up, in Python to the even one."""
    return f"{int(ms + 0.5):,}"


async def ask(house: House) -> wire.Turn:
    async with house.client() as client:
        turn, _ = await client.wav_turn(clips("en")[0].wav, "en", reset_history=True)
    return turn


async def written(house: House, turn: wire.Turn) -> dict[str, Any]:
    """The journal's own row."""
    for _ in range(100):
        for row in read_turns(house.places.journal, limit=50):
            if (row["session"], row["id"]) == (turn["session"], turn["id"]):
                return row
        await asyncio.sleep(0.05)
    raise AssertionError("the turn was not written")


async def test_a_turn_appears_as_it_happens_and_its_numbers_are_the_journals(
    house: House, address: str, browser: Browser
) -> None:
    async with opened(browser, address) as (page, looked):
        async with house.client() as client:
            for mode in ("open", "muted"):  # what unmuting brings back
                await client.set_mode(mode)
            before = (await client.status())["turns"]
        await page.wait_for_selector("#state[data-state=muted]")
        await page.get_by_role("button", name="Unmute the microphone").click()
        heard = page.get_by_role("meter", name="Microphone")
        await expect(heard).to_have_attribute("aria-valuetext", re.compile(r"-\d\d dB"))
        await page.wait_for_selector("[data-turn=running] .bar.stage-endpoint")
        await expect(page.locator(".live .you")).not_to_be_empty()
        await expect(page.locator(".live .ondam")).not_to_be_empty()
        async with house.client() as client:
            assert (await client.status())["turns"] == before, "all of that while it runs"
        await page.wait_for_selector(".running:not([data-turn='']):not([data-turn=running])")
        async with house.client() as client:
            (turn,) = await client.turns(1)
        key = f"{turn['session']}/{turn['id']}"
        await page.wait_for_selector(f'[data-turn="{key}"] .waterfall')
        row = await written(house, turn)
        first = f"{whole(row['first_audio_ms'])} ms"
        assert await page.locator(".running .big").inner_text() == first
        figures = await page.locator(".running .waterfall li:not(.axis) .ms").all_inner_texts()
        assert figures == ["–" if ms is None else whole(ms) for ms in row["stages_ms"].values()]
        said = await page.locator(".exchanges .said").all_inner_texts()
        assert said == [turn["transcript"], turn["reply"]]

        await go(page, "turns")
        one = page.locator(f'.turn[data-key="{key}"]')
        await one.focus()
        await page.keyboard.press("Enter")
        assert await one.get_attribute("aria-expanded") == "true"
        marks = page.locator(".detail table").first.locator("td")
        shown = [float(ms.replace(",", "")) for ms in await marks.all_inner_texts()]
        assert shown == [pytest.approx(ms, abs=0.051) for ms in row["marks_ms"].values()]
        # Somebody who cannot see the bars is told the same.
        told = await one.locator(".hidden").last.inner_text()
        assert told.startswith(f"first audio {first}, endpoint")

        await go(page, "numbers")
        rows = read_turns(house.places.journal, limit=50)
        # Those of other conditions (a test before this one may have changed a setting) are shown apart.
        answered = [
            other["first_audio_ms"]
            for other in rows
            if other["conditions"] == row["conditions"] and other["first_audio_ms"] is not None
        ]
        # Cold turns, settled ones and those after a rest are told apart; together they are all of them.
        spread = page.locator(".page-numbers .legend li", has=page.locator(".settled, .after_idle, .cold"))
        # What the page was given may be some seconds old; it asks again by itself.
        for _ in range(60):
            counts = [int(re.findall(r"\((\d+)\)", told)[0]) for told in await spread.all_inner_texts()]
            if sum(counts) == len(answered):
                break
            await asyncio.sleep(1)
        assert sum(counts) == len(answered)
        kind = await page.get_by_label("Turns that are").input_value()
        of_kind = [
            other["first_audio_ms"]
            for other in rows
            if other["conditions"] == row["conditions"]
            and other["first_audio_ms"] is not None
            and other["population"] == kind
        ]
        percentiles = page.get_by_role("region", name="Percentiles").locator("tbody tr").first
        cells = [int(cell.replace(",", "")) for cell in await percentiles.locator("td").all_inner_texts()]
        assert cells[:2] == [len(of_kind), pytest.approx(statistics.median(of_kind), abs=0.56)]
        looked.clean()


async def test_the_budget_page_computes_what_the_command_computes(
    house: House, address: str, browser: Browser
) -> None:
    command = [sys.executable, "-m", "ondam", "budget", "--json", "--preset", "h100", "--against", "laptop"]
    command += ["--set", "stt=250", "--no-drafts", "--target", "900"]
    environ = {**os.environ, "ONDAM_HOME": str(house.home), "ONDAM_LANGUAGE": "en"}
    ran = await asyncio.to_thread(
        subprocess.run, command, env=environ, capture_output=True, text=True, check=True
    )
    told = json.loads(ran.stdout)
    async with opened(browser, address) as (page, looked):
        await go(page, "budget")
        await page.select_option("#preset", "h100")
        await page.select_option("#against", "laptop")
        await page.fill('[aria-label="recognition, ms"]', "250")
        await page.press('[aria-label="recognition, ms"]', "Tab")
        await page.get_by_label("Answers are begun in the pause").uncheck()
        await page.get_by_label("Target, ms").fill("900")
        await page.get_by_label("Target, ms").press("Tab")
        await page.wait_for_selector(f'.page-budget[data-total="{told["total_ms"]:g}"]')
        rows = page.locator("h2:has-text('Where the figures') + .scroll tbody tr")
        waterfall = page.locator(".waterfall").first.locator("li:not(.axis) .ms")
        assert await waterfall.all_inner_texts() == [whole(one["ms"]) for one in told["stages"]]
        gains = await page.locator(".page-budget .faults li p:first-child").all_inner_texts()
        assert [float(re.split(" ", gain)[0]) for gain in gains] == [
            pytest.approx(one["gain_ms"], abs=0.51) for one in told["remedies"]
        ]
        beside = page.locator("h2:has-text('Side by side') + .scroll tbody tr").last.locator("td")
        totals = [told["total_ms"], told["against"]["total_ms"]]
        assert (await beside.all_inner_texts())[:2] == list(map(whole, totals))
        assert await rows.count() == 7
        # A slider asks the same model, which is not in the page.
        slider = page.locator("#stage-tts_first_audio")
        await slider.focus()
        before = await page.get_attribute(".page-budget", "data-total")
        await page.keyboard.press("End")
        await expect(page.locator(".page-budget")).not_to_have_attribute("data-total", before or "")
        looked.clean()


async def test_nobody_comes_in_without_the_address_under_another_name_or_from_another_page(
    address: str,
) -> None:
    base, token = address.split("#token=")
    origin = base.split("/", 3)[:3]
    here = "/".join(origin)
    host = here.removeprefix("http://")
    port = host.split(":")[1]
    async with aiohttp.ClientSession() as session:

        async def status(method: str, path: str, **asked: Any) -> int:
            async with session.request(method, base + path, **asked) as answer:
                return answer.status

        async def upgraded(**headers: str) -> int:
            try:
                async with session.ws_connect(f"{base}api/events", headers=headers):
                    return 101
            except aiohttp.WSServerHandshakeError as error:
                return error.status

        ours = {"Origin": here}
        assert await status("GET", "api/status") == 401
        assert await upgraded(**ours) == 401
        assert await status("POST", "session", data="wrong", headers=ours) == 401
        assert await status("POST", "session", data=token[:-1], headers=ours) == 401
        assert await status("POST", "session", data=token, headers={"Origin": "http://evil.example"}) == 403
        assert await status("POST", "session", data=token) == 403, "a browser always says where it is"
        async with session.post(f"{base}session", data=token, headers=ours) as entered:
            cookie = entered.headers["Set-Cookie"]
            assert entered.status == 200
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
            assert f"Path=/{base.split('/')[3]}/" in cookie
        let_in = {"Cookie": cookie.split(";")[0]}
        assert await status("GET", "api/status", headers=let_in) == 200
        assert await upgraded(**let_in, **ours) == 101
        for name in (f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "evil.example", "0.0.0.0", ""):
            assert await status("GET", "api/status", headers={**let_in, "Host": name}) == 403, name
            assert await status("GET", "", headers={"Host": name}) == 403, name
            assert await upgraded(**let_in, Host=name, Origin=f"http://{name}") == 403, name
        # Another port of this machine is another's page, though a browser calls it the same site.
        for page in ("http://evil.example", "http://127.0.0.1:1", f"https://{host}", "null"):
            elsewhere = {**let_in, "Origin": page}
            assert await status("GET", "api/status", headers=elsewhere) == 403, page
            assert await status("POST", "api/stop", headers=elsewhere) == 403, page
            assert await upgraded(**elsewhere) == 403, page
        assert await upgraded(**let_in) == 403
        assert await status("GET", "api/status", headers={**let_in, "Sec-Fetch-Site": "same-site"}) == 403
        # An ssh tunnel's near end has another port.
        near = {**let_in, "Host": "localhost:9", "Origin": "http://localhost:9"}
        assert await status("POST", "api/stop", headers=near) == 200
        for path in ("../", "page/../server.py", "page/%2e%2e/server.py", "api/shutdown"):
            assert await status("GET", path, headers=let_in) in (403, 404), path


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_page_keeps_anybody_out(house: House, address: str, browser: Browser, scheme: str) -> None:
    if not read_turns(house.places.journal, limit=1):
        await ask(house)
    # Korean in one and English in the other: what is lacking in either is seen.
    locale, first = ("ko-KR", "지금") if scheme == "dark" else ("en-GB", "Now")
    async with opened(browser, address, locale=locale, scheme=scheme) as (page, looked):
        assert await page.locator("h1").inner_text() == first
        for name in PAGES:
            await go(page, name)
            if name == "turns":
                await page.locator(".turn").first.click()
                await expect(page.locator(".detail .busy")).to_have_count(0)
            if name == "engines":
                await page.locator("summary").first.click()
            assert await serious(page) == [], name
            text = await page.locator("body").inner_text()
            assert not re.search(r"\b(panel|cli|stage|finding)_\w+|\{\w+[}:]|undefined|NaN", text), name
            await page.set_viewport_size({"width": 390, "height": 800})
            wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} is wider than a phone"
            await page.set_viewport_size({"width": 1280, "height": 900})
        looked.clean()


async def test_the_command_prints_its_address_and_ends_when_it_is_asked(house: House) -> None:
    async with panel_of(house.home) as (address, process):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{16}/#token=[\w-]{43}", address)
        port = address.split(":")[2].split("/")[0]
        async with _ran(house, "panel", "--port", port) as (code, errors):
            assert code == 4
            assert f"cannot use port {port}" in errors and "Traceback" not in errors
        process.terminate()
        assert await asyncio.to_thread(process.wait, 5) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


@asynccontextmanager
async def _ran(house: House, *arguments: str) -> AsyncIterator[tuple[int, str]]:
    environ = {**os.environ, "ONDAM_HOME": str(house.home), "ONDAM_LANGUAGE": "en"}
    command = [sys.executable, "-m", "ondam", *arguments]
    done = await asyncio.to_thread(
        subprocess.run, command, env=environ, capture_output=True, text=True, timeout=30, check=False
    )
    yield done.returncode, done.stderr


async def test_a_setting_is_changed_and_diagnostics_are_saved_from_the_page(
    house: House, address: str, browser: Browser
) -> None:
    async with house.client() as client:
        await client.ask("Where is the lighthouse of Marmaduke?", speak=False)
    async with opened(browser, address) as (page, looked):
        await go(page, "settings")
        length = page.locator('[data-key="llm.max_tokens"]')
        await length.fill("17")
        await length.press("Tab")
        for _ in range(100):
            async with house.client() as client:
                found = (await client.settings())["settings"]
            if next(one["value"] for one in found if one["key"] == "llm.max_tokens") == 17:
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("the daemon has not taken the setting over")
        async with page.expect_download() as saved:
            await page.locator("a[download]").click()
        file = await (await saved.value).path()
        text = file.read_text("utf-8")
        assert json.loads(text)["status"]["mode"]
        assert "Marmaduke" not in text
        looked.clean()
