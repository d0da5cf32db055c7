"""This machine's newest turns, from its journal's file, for the budget."""

from __future__ import annotations

from pathlib import Path

from ondam.config import MeasureConfig
from ondam.journal.recorder import read_turns
from ondam.journal.steady import Steadiness
from ondam.measure.budget import Engine
from ondam.measure.budget_own import TURNS, Own, own

AT_ONCE: dict[Engine, int] = {"stt": 1, "llm": 1, "tts": 1}
"""Our engines serve one request at a time."""


def own_of(journal: Path, measure: MeasureConfig) -> Own:
    """Of the newest ``TURNS``; of none where there is no journal yet."""
    steadiness = Steadiness(measure.steady_turns, measure.steady_within)
    return own(read_turns(journal, limit=TURNS), steadiness, AT_ONCE)
