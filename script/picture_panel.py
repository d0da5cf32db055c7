"""Takes pictures of the panel: a daemon with the embedded engines, some turns, a browser.

    script/picture_panel.py                 docs/images/panel-*.png, for the README and docs/panel.md
    script/picture_panel.py --all FOLDER    every page in both languages, both colour schemes, wide and narrow

Needs what the tests need (script/test installs it): the development packages, chromium, the prepared engines.
Korean is shown in a Korean font where there is one (fonts-noto-cjk).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from playwright.async_api import Page, async_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.panel.conftest import CHROMIUM, PAGES, go, opened, panel_of  # noqa: E402
from tests.scenarios.house import House  # noqa: E402

from ondam.measure.clips import clips  # noqa: E402

SHOWN = (
    ("now", "en", "light"),
    ("now", "ko", "light"),
    ("turns", "en", "light"),
    ("numbers", "en", "light"),
    ("budget", "ko", "dark"),
)
"""Which pages the documentation shows, and how. A page in both languages has the language in its name."""


async def speak(house: House, turns: int) -> None:
    """So many questions, one after another."""
    async with house.client() as client:
        for number in range(turns):
            await client.wav_turn(clips("en")[number % 8].wav, "en", reset_history=number % 4 == 0)


async def ready(page: Page, name: str) -> None:
    """On a page, with something on it to look at."""
    await go(page, name)
    if name == "turns":
        await page.locator(".turn").nth(1).click()
    if name == "engines":
        await page.locator("summary").first.click()
    await page.wait_for_timeout(400)  # what is drawn at its own width is drawn
    await page.evaluate("scrollTo(0, 0)")


async def main(every: Path | None, turns: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        question = Path(folder) / "question.wav"
        question.write_bytes(clips("en")[2].wav)
        house = House(
            Path(folder),
            {"language": "en", "listen.mode": "muted", "llm.max_tokens": "40"},
            microphone=f"wav:{question}",
        )
        house.open()
        try:
            await house.ready()
            await speak(house, turns)
            async with panel_of(house.home) as (address, _), async_playwright() as playwright:
                chromium = await playwright.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox", "--font-render-hinting=none"]
                )
                combinations: Sequence[tuple[str, str, str, int]] = [(*one, 1040) for one in SHOWN]
                if every is not None:
                    combinations = list(product(PAGES, ("en", "ko"), ("light", "dark"), (1280, 390)))
                for name, language, scheme, width in combinations:
                    locale = "ko-KR" if language == "ko" else "en-GB"
                    async with opened(chromium, address, locale=locale, scheme=scheme, width=width) as (
                        page,
                        looked,
                    ):
                        await ready(page, name)
                        if name == "now":
                            await during(house, page)
                        looked.clean()
                        if every is not None:
                            path = every / f"{name}-{language}-{scheme}-{width}.png"
                            await page.screenshot(path=path, full_page=True)
                        else:
                            both = sum(shown == name for shown, _, _ in SHOWN) > 1
                            picture = f"panel-{name}{f'-{language}' if both else ''}.png"
                            await page.screenshot(path=ROOT / "docs" / "images" / picture)
                await chromium.close()
        finally:
            house.close()


async def during(house: House, page: Page) -> None:
    """While an answer is spoken: the microphone hears its question when it is opened."""
    async with house.client() as client:
        await client.set_mode("muted")
        await page.wait_for_selector("[data-turn=running]", state="detached", timeout=60_000)
        await client.set_mode("open")
    await page.wait_for_selector("[data-turn=running] .stage-tts_first_audio", timeout=60_000)
    await page.wait_for_timeout(700)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", type=Path, metavar="FOLDER", dest="every")
    parser.add_argument("--turns", type=int, default=24)
    given = parser.parse_args()
    if given.every is not None:
        given.every.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(given.every, given.turns))
