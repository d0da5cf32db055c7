"""The daemon's budget: its journal's turns, its own target."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.unit.journal.test_report import sqlite
from tests.unit.measure.test_budget_answer import turn

from ondam.assistant import Assistant
from ondam.config import load
from ondam.measure.budget_answer import Wanted


async def test_the_daemons_budget_is_of_its_journal_and_its_target(tmp_path: Path) -> None:
    journal = sqlite(tmp_path / "journal.sqlite", [turn(n) for n in range(12)])
    config = load(None, {"measure": {"budget_ms": 500.0}})
    daemon: Any = SimpleNamespace(config=config, _places=SimpleNamespace(journal=journal))
    told = await Assistant.budget(cast(Assistant, daemon), Wanted(), "en")
    assert (told["preset"], told["total_ms"], told["over_target"]) == ("this-machine", 512.0, True)
    empty: Any = SimpleNamespace(config=config, _places=SimpleNamespace(journal=tmp_path / "none"))
    told = await Assistant.budget(cast(Assistant, empty), Wanted(), "en")
    assert (told["preset"], told["notes"][0]["code"]) == ("embedded-cpu", "budget_no_own")
