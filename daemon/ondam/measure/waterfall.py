"""Draws one turn as a waterfall: which stage ran when, from the user's last voiced sample on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ondam import messages
from ondam.types import Language

ROWS: tuple[tuple[str, str, str], ...] = (
    ("endpoint", "last_voiced", "endpoint"),
    ("stt", "stt_sent", "stt_final"),
    ("llm_first_token", "llm_sent", "llm_first_token"),
    ("first_clause", "llm_first_token", "first_clause"),
    ("tts_first_audio", "tts_sent", "tts_first_audio"),
    ("playback_buffer", "tts_first_audio", "dac_first_sample"),
)
"""Stage, and the marks between which it ran. ``ipc`` is what lies between the bars."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of the drawing: ``bar`` is ``width`` characters wide."""

    stage: str
    label: str
    bar: str
    ms: float | None


def waterfall(turn: Mapping[str, Any], language: Language, width: int = 48) -> list[Bar]:
    """The bars of a turn (as ``Turn.as_json`` gives it), in order of the stages; none without first audio."""
    marks: Mapping[str, float] = turn["marks_ms"]
    stages: Mapping[str, float | None] = turn["stages_ms"]
    whole = turn["first_audio_ms"]
    if not whole or whole <= 0:
        return []
    bars = []
    for stage, begin, end in ROWS:
        label = messages.text(f"stage_{stage}", language)
        if begin in marks and end in marks:
            first = _column(marks[begin], whole, width)
            last = max(_column(marks[end], whole, width), first + (marks[end] > marks[begin]))
            bar = " " * first + "█" * (last - first) + " " * (width - max(last, first))
            bars.append(Bar(stage, label, bar[:width].ljust(width), stages[stage]))
        if stage == "endpoint":
            bars.append(Bar("ipc", messages.text("stage_ipc", language), "·" * width, stages["ipc"]))
    return bars


def _column(at_ms: float, whole: float, width: int) -> int:
    return min(width, max(0, round(at_ms / whole * width)))
