"""The panel when its daemon is not there, comes, goes, or refuses; the daemon answers by heart."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from unittest.mock import patch

import pytest
from playwright.async_api import Browser, Page, expect
from tests.panel.conftest import go, opened, serious
from tests.unit.control import fake_daemon
from tests.unit.control.fake_daemon import FakeDaemon, engine, turn, until

from ondam.control import wire
from ondam.control.client import Client
from ondam.control.server import Server
from ondam.errors import ControlError
from ondam.journal.reading import Selection
from ondam.measure.budget_answer import Wanted, answer
from ondam.measure.budget_data import knowledge
from ondam.measure.budget_own import Own
from ondam.types import Language
from ondam_ui.panel.server import Panel

UNREACHABLE = "not reachable: whether it hears you is not known"

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@asynccontextmanager
async def panel(socket: Path) -> AsyncIterator[str]:
    ended, told = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(Panel(socket).run(0, told.set_result, ended))
    try:
        yield await told
    finally:
        ended.set()
        await asyncio.wait_for(serving, 5)


@asynccontextmanager
async def serving(daemon: FakeDaemon, socket: Path) -> AsyncIterator[None]:
    server = Server(daemon, socket)
    await server.start()
    try:
        yield
    finally:
        await server.stop()


@pytest.fixture
def socket() -> object:
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        yield Path(folder) / "run" / "control.sock"


async def banner(page: Page) -> str:
    await page.wait_for_selector(".banner:not([hidden])")
    return await page.locator(".banner").inner_text()


async def test_the_page_says_that_the_daemon_is_not_there_and_goes_on_when_it_is(
    browser: Browser, socket: Path
) -> None:
    async with panel(socket) as address, opened(browser, address) as (page, looked):
        said = await banner(page)
        assert "Ondam is not running" in said and "→" not in said and "ondam up" in said
        assert await page.locator("#state").inner_text() == "not running"
        for _ in range(2):
            async with serving(FakeDaemon(), socket):
                await page.wait_for_selector("#state[data-state=listening]")
                assert await page.locator(".banner").is_hidden()
            assert "ondam" in (await banner(page)).lower()
        looked.clean()


async def test_the_page_says_that_the_panel_has_ended(browser: Browser, socket: Path) -> None:
    async with AsyncExitStack() as looking:
        async with serving(FakeDaemon(), socket), panel(socket) as address:
            page, _ = await looking.enter_async_context(opened(browser, address))
            await page.wait_for_selector("#state[data-state=listening]")
        await expect(page.locator(".banner")).to_contain_text("Ondam window has ended")
        assert await page.locator("#state").inner_text() == UNREACHABLE


async def test_of_a_daemon_that_may_not_be_asked_nothing_is_claimed(
    browser: Browser, socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(client: Client, **_asked: object) -> AsyncIterator[wire.Event]:
        raise ControlError("control_socket_closed_to_you", path=str(socket))
        yield

    monkeypatch.setattr(Client, "events", refused)
    async with panel(socket) as address, opened(browser, address) as (page, _):
        assert "belongs to another user" in await banner(page)
        assert await page.locator("#state").inner_text() == UNREACHABLE
        assert await page.locator("p.state").inner_text() == UNREACHABLE


async def test_what_the_daemon_refuses_is_told_in_words_where_it_was_asked_for(
    browser: Browser, socket: Path
) -> None:
    daemon = FakeDaemon()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, _):
        page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
        await go(page, "engines")
        await page.wait_for_selector(".engine")
        daemon.failing = ControlError("control_not_permitted", uid=1000, permission="admin")
        await page.get_by_role("button", name="Restart").first.click()
        alert = page.locator(".engine [role=alert]").first
        await alert.wait_for()
        assert "User 1000 may not do this" in await alert.inner_text()
        daemon.failing = None
        await page.get_by_role("button", name="Restart").first.click()
        await alert.wait_for(state="detached")
        assert ("restart_engine", "faster_whisper") in daemon.asked


async def test_an_old_address_lets_nobody_in_and_says_what_to_do(browser: Browser, socket: Path) -> None:
    async with panel(socket) as address, opened(browser, address.split("#")[0] + "#token=old") as (page, _):
        assert "not opened with the address" in await page.locator("[role=alert]").inner_text()
        assert await page.locator(".next").inner_text() == "ondam panel"
        assert await page.locator("nav").count() == 0


async def test_the_token_leaves_the_address_and_a_new_page_of_the_browser_is_let_in(
    browser: Browser, socket: Path
) -> None:
    there = serving(FakeDaemon(), socket)
    async with there, panel(socket) as address, opened(browser, address) as (page, looked):
        await page.wait_for_selector("#state[data-state=listening]")
        assert "token" not in page.url
        await page.reload()
        await page.wait_for_selector("#state[data-state=listening]")
        other = await page.context.new_page()
        await other.goto(page.url)
        await other.wait_for_selector("#state[data-state=listening]")
        looked.clean()


async def test_a_turn_that_ends_is_in_the_list_without_loading_the_page_again(
    browser: Browser, socket: Path
) -> None:
    daemon = FakeDaemon()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await page.wait_for_selector("#state[data-state=listening]")
        daemon.broadcast.publish({"type": "state", "session": "s", "state": "thinking"})
        await page.wait_for_selector("#state[data-state=thinking]")
        daemon.broadcast.publish({"type": "turn", "session": "s", "turn": turn(9)})
        await page.wait_for_selector("[data-turn='test/9']")
        assert await page.locator(".running .big").inner_text() == "640 ms"
        looked.clean()


async def test_the_language_changes_in_place(browser: Browser, socket: Path) -> None:
    there = serving(FakeDaemon(), socket)
    async with there, panel(socket) as address, opened(browser, address, locale="ko-KR") as (page, looked):
        await page.wait_for_selector("h1:has-text('지금')")
        await page.locator("#language").click()
        await page.wait_for_selector("h1:has-text('Now')")
        assert await page.evaluate("document.documentElement.lang") == "en"
        await page.reload()
        await page.wait_for_selector("h1:has-text('Now')")
        looked.clean()


async def watched(daemon: FakeDaemon, page: Page) -> None:
    """Return when the page is told what is fleeting."""
    await page.wait_for_selector("#state[data-state=listening]")
    await until(lambda: daemon.broadcast.followers == 1)


async def test_a_microphone_that_delivers_exact_silence_is_said_to(browser: Browser, socket: Path) -> None:
    daemon = FakeDaemon()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await page.clock.install()
        await page.reload()
        await watched(daemon, page)
        # The level stays as it is, and is told once.
        daemon.broadcast.publish({"type": "levels", "microphone_db": -100.0, "speaker_db": None})
        await expect(page.get_by_role("meter", name="Microphone")).to_have_attribute("aria-valuenow", "-70")
        assert await page.locator(".deaf").count() == 0
        await page.clock.fast_forward(4000)
        assert await page.locator(".deaf").count() == 0
        await page.clock.fast_forward(2000)
        await page.wait_for_selector(".deaf")
        looked.clean()


def mark(name: str, draft: int | None) -> wire.MarkEvent:
    return {"type": "mark", "turn": 4, "draft": draft, "name": name, "at_ms": None}


async def test_drafts_are_counted_also_before_the_endpoint(browser: Browser, socket: Path) -> None:
    daemon = FakeDaemon()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await watched(daemon, page)
        for name, draft in (("pause_seen", None), ("stt_sent", 1), ("stt_sent", 2), ("pause_seen", None)):
            daemon.broadcast.publish(mark(name, draft))
        await expect(page.locator("[data-turn=running] .draft.dropped")).to_have_count(2)
        assert await page.locator(".draft.kept").count() == 0
        daemon.broadcast.publish(mark("stt_sent", 3))
        await expect(page.locator("[data-turn=running] .draft.kept")).to_have_count(1)
        assert await page.locator(".draft.dropped").count() == 2
        looked.clean()


async def test_figures_of_a_running_turn_are_what_somebody_waited_for(browser: Browser, socket: Path) -> None:
    daemon = FakeDaemon()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await watched(daemon, page)
        for name, at_ms in (
            ("last_voiced", 0.0),
            ("stt_sent", 60.0),
            ("stt_final", 200.0),
            ("llm_sent", 200.0),
            ("llm_first_token", 330.0),
            ("endpoint", 580.0),
            ("first_clause", 700.0),
            ("tts_sent", 700.0),
            ("tts_first_audio", 900.0),
            ("dac_first_sample", 910.0),
        ):
            daemon.broadcast.publish({**mark(name, None), "at_ms": at_ms})
            await asyncio.sleep(0)  # nobody falls behind by more than the fake keeps
        figures = page.locator("[data-turn=running] .waterfall li:not(.axis) .ms")
        await expect(figures).to_have_text(["580", "–", "0", "0", "120", "200", "10"])
        looked.clean()


async def test_a_turn_whose_end_nobody_told_is_over_when_the_daemon_says_that_it_listens(
    browser: Browser, socket: Path
) -> None:
    daemon = FakeDaemon()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await watched(daemon, page)
        daemon.broadcast.publish(mark("stt_sent", 1))
        await page.wait_for_selector(".running[data-turn=running]")
        for name in ("turns", "now"):  # each is another connection
            await go(page, name)
        await page.wait_for_selector(".running[data-turn='test/3']")
        looked.clean()


async def test_a_setting_that_was_changed_elsewhere_is_shown(browser: Browser, socket: Path) -> None:
    daemon = FakeDaemon()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await go(page, "settings")
        listens = page.locator('select[data-key="listen.mode"]')
        await expect(listens).to_have_value("Always")
        daemon.mode = "muted"
        daemon.broadcast.publish({"type": "settings", "keys": ["listen.mode"]})
        await expect(listens).to_have_value("Never")
        looked.clean()


@dataclass
class Spoken(FakeDaemon):
    """There are figures of one turn."""

    async def series(self, selection: Selection, window: str) -> wire.Series:
        answer = await super().series(selection, window)
        figures = {"n": 1, "p50": 640.0, "p90": 640.0, "p95": 1640.0, "p99": 640.0, "over_budget": 0}
        stages = dict.fromkeys(turn()["stages_ms"], figures)
        both = {"first_audio_ms": figures, "answer_ms": figures}
        one = {"turns": 1, "answered": 1, **both, "stages_ms": stages}
        kinds = ("settled", "after_idle", "cold")
        answer["turns"] = 1
        answer["populations"] = dict.fromkeys(kinds, one)
        answer["conditions"] = [
            {"name": name, "turns": 1, "newest": turn()["started_at"]} for name in ("0123", "4567")
        ]
        at = turn()["started_at"]
        answer["buckets"] = [{"at": at, "conditions": "0123", "populations": {"settled": one}}]
        answer["histogram"] = {"step_ms": 500, "counts": {kind: [0, 1] for kind in kinds}}
        return answer


async def test_numbers_say_what_they_wait_for_and_every_plot_is_a_table_too(
    browser: Browser, socket: Path
) -> None:
    daemon = Spoken(hold=asyncio.Event())
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await page.evaluate("location.hash = 'numbers'")
        await expect(page.locator(".page-numbers .busy").first).to_have_text(
            "Figures are being computed from the journal…"
        )
        await expect(page.get_by_label("Period")).to_be_visible()
        assert daemon.hold is not None
        daemon.hold.set()
        values = page.locator(".plot details")
        await expect(values).to_have_count(9)
        await values.first.locator("summary").click()
        assert await values.first.locator("td").all_inner_texts() == ["1,640", "640"]
        assert await values.last.locator("tbody th").all_text_contents() == ["0–500", "≥ 500"]
        assert await serious(page) == []
        looked.clean()


async def test_what_is_drawn_anew_keeps_the_focus_and_what_was_opened(browser: Browser, socket: Path) -> None:
    daemon = Spoken()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await go(page, "numbers")
        told = page.locator(".plot details").first
        for held in (page.get_by_label("Conditions"), told.locator("summary")):
            await held.focus()
            await page.keyboard.press("Enter")
            asked = len(daemon.asked)
            daemon.broadcast.publish({"type": "turn", "session": "s", "turn": turn(9)})
            await until(lambda asked=asked: len(daemon.asked) > asked)  # type: ignore[misc]
            await expect(held).to_be_focused()
        await expect(told).to_have_attribute("open", "")

        await go(page, "engines")
        told = page.locator(".engine details").first
        await told.locator("summary").focus()
        await page.keyboard.press("Enter")
        changed = engine() | {"restarts": 7}
        with patch.object(fake_daemon, "engine", lambda *_args, **_more: changed):
            daemon.broadcast.publish({"type": "engine", "engine": changed})
            await expect(page.locator(".engine dd", has_text="7").first).to_be_visible()
        await expect(told).to_have_attribute("open", "")
        await expect(told.locator("summary")).to_be_focused()
        looked.clean()


async def test_a_device_is_chosen_for_now_and_with_keep_for_good(browser: Browser, socket: Path) -> None:
    daemon = FakeDaemon()
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await go(page, "settings")
        microphone = page.locator('select[data-key="microphone"]')
        await microphone.focus()
        await microphone.select_option("headset")
        await expect(page.get_by_role("status")).not_to_be_empty()
        await expect(microphone).to_have_value("headset")
        await expect(microphone).to_be_focused()
        await page.get_by_label("Keep").check()
        await microphone.select_option("")
        await until(lambda: ("choose_devices", {"microphone": None}, True) in daemon.asked)
        await expect(microphone).to_have_value("")
        assert ("choose_devices", {"microphone": "headset"}, False) in daemon.asked
        length = page.locator('[data-key="llm.max_tokens"]')
        await length.fill("17")
        await length.press("Tab")
        await until(lambda: ("set_settings", {"llm.max_tokens": 17}, True, "en") in daemon.asked)
        looked.clean()


@dataclass
class Measured(FakeDaemon):
    """It has medians of its own: another preset's."""

    async def budget(self, wanted: Wanted, language: Language) -> wire.Budget:
        await self._note("budget", wanted, language)
        own = Own(knowledge().presets["laptop"], settled=20, turns=30)
        return cast(wire.Budget, answer(wanted, knowledge(), own, 800.0, language))


async def test_one_click_fills_the_budget_with_this_machines_own_figures(
    browser: Browser, socket: Path
) -> None:
    daemon = Measured()
    measured = knowledge().presets["laptop"].stages["stt"].ms
    async with serving(daemon, socket), panel(socket) as address, opened(browser, address) as (page, looked):
        await go(page, "budget")
        await page.select_option("#preset", "h100")
        exact = page.get_by_label("recognition, ms")
        await exact.fill("777")
        await exact.press("Tab")
        await until(lambda: "777.0" in str(daemon.asked[-1]))
        await page.locator("#own").click()
        await until(lambda: "this-machine" in str(daemon.asked[-1]))
        assert "777" not in str(daemon.asked[-1])
        await expect(page.locator("#preset")).to_have_value("this-machine")
        await expect(exact).to_have_value(f"{measured:.0f}")
        looked.clean()
