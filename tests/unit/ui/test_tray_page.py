"""The window's process as the tray sees it: what is said where no page comes up."""

from __future__ import annotations

import asyncio
import sys

import pytest

from ondam_ui.tray.page import NotOpened, Page

SHOWS = "print('http://127.0.0.1:1/#token=a', flush=True); sys.stdin.read()"


def page(program: str) -> Page:
    """Its command does ``program``, whatever it is asked for."""
    return Page((sys.executable, "-I", "-S", "-c", f"import sys; {program}"))


def browser(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> list[str]:
    """What it was asked to show."""
    shown: list[str] = []

    def show(address: str) -> bool:
        shown.append(address)
        return there

    monkeypatch.setattr("webbrowser.open", show)
    return shown


async def test_it_is_started_once_and_ends_when_its_stdin_does(monkeypatch: pytest.MonkeyPatch) -> None:
    of = page(SHOWS)
    shown = browser(monkeypatch, there=True)
    assert [await of.open(), await of.open()] == [None, None]
    assert shown == ["http://127.0.0.1:1/#token=a"] * 2
    process = of._process
    assert process is not None and process.stdin is not None
    process.stdin.close()  # as when the tray is killed
    assert await asyncio.wait_for(process.wait(), 5) == 0


async def test_a_page_that_no_browser_shows_is_not_called_one_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = page(SHOWS)
    browser(monkeypatch, there=False)
    assert await of.open() == NotOpened("tray_no_browser", {})
    of.close()
    assert of._process is not None
    await of._process.wait()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("sys.exit('Port 80 is taken.\\n→ ondam panel --port 81')", "Port 80 is taken."),
        ("sys.exit(4)", "exit code 4"),
    ],
)
async def test_one_that_does_not_come_up_says_why(program: str, reason: str) -> None:
    assert await page(program).open() == NotOpened("tray_panel_failed", {"reason": reason})
