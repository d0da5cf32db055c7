"""What `ondam panel` opens is the Ondam window wherever a person reads of it; a panel is the desktop's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ondam.cli import COMMANDS
from ondam.messages import catalog

ROOT = Path(__file__).parents[3]

PANEL = re.compile(r"(?<!ondam )\bpanels?\b(?![./\-])|패널", re.IGNORECASE)
"""Not the command, a page or a picture named after it."""

OF_THE_DESKTOP = {"tray_no_host"}

PAGES = ("README.md", "README.ko.md", "docs/panel.md", "docs/ko/panel.md", "docs/control-api.md")


def texts(entry: object) -> str:
    return "\n".join(map(texts, entry.values())) if isinstance(entry, dict) else str(entry)


def test_no_message_calls_it_a_panel() -> None:
    assert {code for code, entry in catalog().items() if PANEL.search(texts(entry))} == OF_THE_DESKTOP


@pytest.mark.parametrize("page", PAGES)
def test_no_page_calls_it_a_panel(page: str) -> None:
    told = re.sub(r"\]\([^)]*\)|`[^`]*`", "", (ROOT / page).read_text("utf-8"))
    assert [line for line in told.splitlines() if PANEL.search(line)] == []


def test_menu_page_and_help_say_the_same_word() -> None:
    assert "Ondam window" in catalog()["tray_panel"]["en"] and "온담 창" in catalog()["tray_panel"]["ko"]
    assert "Ondam window" in catalog()["panel_how_to_end"]["en"]
    assert COMMANDS["panel"].summary.startswith("The Ondam window")
    assert (ROOT / "docs/panel.md").read_text("utf-8").startswith("# The Ondam window\n")
    assert (ROOT / "docs/ko/panel.md").read_text("utf-8").startswith("# 온담 창\n")
