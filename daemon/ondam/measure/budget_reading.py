"""This machine's newest turns, from its journal's file, for the budget."""

from __future__ import annotations

from pathlib import Path

from ondam.config import MeasureConfig
from ondam.errors import JournalError
from ondam.journal.reading import newest
from ondam.journal.steady import Steadiness
from ondam.measure.budget import Engine
from ondam.measure.budget_own import TURNS, Own, own
from ondam.messages import Phrase

AT_ONCE: dict[Engine, int] = {"stt": 1, "llm": 1, "tts": 1}
"""Our engines serve one request at a time."""


def own_of(journal: Path, measure: MeasureConfig) -> Own:
    """Of the newest ``TURNS``; of none where there is no journal yet, or where it cannot be read."""
    try:
        rows = newest(journal, TURNS) if journal.exists() else []
    except JournalError as error:
        return Own(None, 0, 0, Phrase(error.code, **error.facts))
    return own(rows, Steadiness(measure.steady_turns, measure.steady_within), AT_ONCE)
