"""A browser, and the panel as a process, for tests that look at the page as a person does."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import axe_playwright_python
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

CHROMIUM = os.environ.get("ONDAM_TEST_CHROMIUM", "/usr/bin/chromium")

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"


@dataclass
class Looked:
    """What a browser did beside what it showed."""

    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def clean(self) -> None:
        """Nothing went wrong, and nothing was asked of anybody else."""
        assert self.errors == []
        assert self.elsewhere == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # --no-sandbox: as root there is none. The tests show it only pages of ours.
        made = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        await made.close()


@asynccontextmanager
async def opened(
    browser: Browser, address: str, *, locale: str = "en-GB", scheme: str = "light", width: int = 1280
) -> AsyncIterator[tuple[Page, Looked]]:
    """The panel's page, open and let in."""
    context = await browser.new_context(
        locale=locale,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 900},
    )
    looked = Looked()
    page = await context.new_page()
    page.on("console", lambda said: looked.errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: looked.errors.append(str(error)))
    page.on(
        "request",
        lambda asked: (
            None
            if re.match(r"(http://127\.0\.0\.1:|blob:http://127\.0\.0\.1:|data:)", asked.url)
            else looked.elsewhere.append(asked.url)
        ),
    )
    page.set_default_timeout(10_000)
    try:
        await page.goto(address)
        yield page, looked
    finally:
        await context.close()


@asynccontextmanager
async def panel_of(home: Path) -> AsyncIterator[tuple[str, subprocess.Popen[str]]]:
    """``ondam panel`` as a person starts it on a server; its address."""
    process = await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, "-m", "ondam", "panel", "--no-open"],
        env={**os.environ, "ONDAM_HOME": str(home), "ONDAM_LANGUAGE": "en"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = (await asyncio.to_thread(process.stdout.readline)).strip()
        assert address, process.stderr.read() if process.stderr else ""
        yield address, process
    finally:
        process.terminate()
        await asyncio.to_thread(process.communicate, timeout=10)


async def serious(page: Page) -> list[str]:
    """What an accessibility scan finds that keeps somebody from using the page."""
    await page.evaluate(AXE.read_text("utf-8"))
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


PAGES = ("now", "turns", "numbers", "engines", "budget", "settings")


async def go(page: Page, name: str) -> None:
    """To one of the pages, and until everything that it asks for is there."""
    await page.evaluate(f"location.hash = '{name}'")
    await page.wait_for_selector(f".page-{name}")
    await expect(page.locator("main .busy")).to_have_count(0, timeout=20_000)
