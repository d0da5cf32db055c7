"""Figures over time are made seldom, however many ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.control import series
from ondam.control.client import Client
from ondam.errors import ControlError, JournalError
from ondam.journal.reading import Selection

SETTINGS = {"steady_turns": 10, "steady_within": 0.1, "budget_ms": 800.0}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Selection]:
    """What had to be made, each in two seconds."""
    asked: list[Selection] = []

    async def apart(journal: Path, selection: Selection, settings: Any) -> dict[str, Any]:
        asked.append(selection)
        CLOCK.now += 2.0
        return {"turns": len(asked)}

    monkeypatch.setattr(series, "_apart", apart)
    return asked


CLOCK = Clock()


async def test_making_it_anew_keeps_a_core_busy_for_a_twentieth_of_the_time(
    made: list[Selection], tmp_path: Path
) -> None:
    journal = tmp_path / "turns.sqlite"
    journal.write_bytes(b"1")
    maker = series.SeriesMaker(journal, clock=CLOCK)
    assert (await maker.series(Selection(), "7d", SETTINGS))["turns"] == 1
    CLOCK.now += 37.9
    journal.write_bytes(b"22")  # a turn has ended
    for _ in range(20):
        old = await maker.series(Selection(), "7d", SETTINGS)
        assert (old["turns"], old["behind"]) == (1, True)
    CLOCK.now += 0.2  # 2 s in 40 s
    new = await maker.series(Selection(), "7d", SETTINGS)
    assert (new["turns"], new["behind"]) == (2, False)
    CLOCK.now += 290  # nothing was written since
    assert await maker.series(Selection(), "7d", SETTINGS) == new


async def test_another_question_is_another_answer(made: list[Selection], tmp_path: Path) -> None:
    maker = series.SeriesMaker(tmp_path / "turns.sqlite", clock=CLOCK)
    for window in ("7d", "24h", "7d"):
        await maker.series(Selection(), window, SETTINGS)
    await maker.series(Selection(), "7d", {**SETTINGS, "budget_ms": 500.0})
    assert len(made) == 3


async def test_a_journal_that_is_none_is_told(tmp_path: Path) -> None:
    journal = tmp_path / "turns.sqlite"
    journal.write_bytes(b"no database at all, and long enough to be looked at " * 20)
    with pytest.raises(JournalError) as told:
        await series.SeriesMaker(journal).series(Selection(), "", SETTINGS)
    assert "not a database" in str(told.value)


async def test_a_client_asks_for_it(client: Client, daemon: FakeDaemon) -> None:
    await client.series({"since": "7d", "plan": "01"})
    ((name, selection, window),) = daemon.asked
    assert isinstance(selection, Selection)
    assert (name, selection.plan, window) == ("series", "01", "7d")
    with pytest.raises(ControlError):
        await client.series({"since": "bogus"})
